#include "report/option_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>

namespace gradwire {
namespace {

constexpr std::size_t kHelpColumn = 30;
constexpr const char* kVersion = "--version";

// The words of a command line, sorted by the rows of the table.
struct Parsed {
  explicit Parsed(std::size_t rows) : values(rows) {}

  std::vector<std::vector<std::string>> values;
  std::vector<std::string> unexpected;
  bool help = false, version = false;
  std::string trouble;  // the first value that is missing
};

Parsed sort_words(const OptionTable& table, const std::vector<std::string>& words) {
  Parsed parsed(table.rows.size());
  for (std::size_t k = 0; k < words.size(); ++k) {
    const std::size_t equals = words[k].find('=');
    const std::string name = words[k].substr(0, equals);
    const auto row = std::ranges::find(table.rows, name, &OptionRow::name);
    if (name == "--help" || words[k].starts_with("-h")) {
      parsed.help = true;
    } else if (name == kVersion) {
      parsed.version = true;
    } else if (words[k] == "--") {  // the end of the options
      if (k + 1 < words.size())
        parsed.unexpected.insert(parsed.unexpected.end(), words.begin() + static_cast<std::ptrdiff_t>(k),
                                 words.end());
      break;
    } else if (row == table.rows.end()) {
      parsed.unexpected.push_back(words[k]);
    } else {
      std::string value = equals == name.npos ? "" : words[k].substr(equals + 1);
      const bool is_given = equals != name.npos && !value.empty();
      if (!row->value.empty() && !is_given) {
        if (k + 1 == words.size()) {
          parsed.trouble = name + ": 1 required " + row->value.substr(0, row->value.find('=')) + " missing";
          break;
        }
        value = words[++k];
      }
      parsed.values[static_cast<std::size_t>(row - table.rows.begin())].push_back(std::move(value));
    }
  }
  return parsed;
}

bool is_given(const OptionTable& table, const Parsed& parsed, const std::string& name) {
  const auto row = std::ranges::find(table.rows, name, &OptionRow::name);
  return row != table.rows.end() &&
         !parsed.values[static_cast<std::size_t>(row - table.rows.begin())].empty();
}

// Passes each value to its row. Returns the first trouble, or "".
std::string take_values(const OptionTable& table, const Parsed& parsed) {
  for (std::size_t k = 0; k < table.rows.size(); ++k) {
    const OptionRow& row = table.rows[k];
    const std::vector<std::string>& values = parsed.values[k];
    if (!row.value.empty() && values.size() > 1)
      return row.name + ": At Most 1 required but received " + std::to_string(values.size());
    if (values.empty()) continue;
    if (const std::string trouble = row.take(values.back()); !trouble.empty())
      return row.name + ": " + trouble;
  }
  return "";
}

std::string trouble_of_presence(const OptionTable& table, const Parsed& parsed) {
  for (std::size_t k = 0; k < table.rows.size(); ++k) {
    const OptionRow& row = table.rows[k];
    if (row.required && parsed.values[k].empty()) return row.name + " is required";
    if (!row.needs.empty() && !parsed.values[k].empty() && !is_given(table, parsed, row.needs))
      return row.name + " requires " + row.needs;
  }
  if (parsed.unexpected.empty()) return "";
  std::string text = parsed.unexpected.size() == 1 ? "The following argument was not expected:"
                                                   : "The following arguments were not expected:";
  for (const std::string& word : parsed.unexpected) text += " " + word;
  return text;
}

}  // namespace

std::function<std::string(const std::string&)> set_flag(bool& flag) {
  return [&flag](const std::string& value) {
    constexpr auto kYes = std::to_array<std::string_view>({"", "1", "true", "yes", "on"});
    constexpr auto kNo = std::to_array<std::string_view>({"0", "false", "no", "off"});
    flag = std::ranges::find(kYes, value) != kYes.end();
    return flag || std::ranges::find(kNo, value) != kNo.end() ? ""
                                                              : "'" + value + "' is neither true nor false";
  };
}

std::string help_text(const OptionTable& table) {
  std::string text = table.purpose + "\nUsage: " + table.program + " [OPTIONS]\n\nOptions:\n";
  const auto add = [&text](std::string head, const std::string& help) {
    head = "  " + head;
    if (head.size() >= kHelpColumn) head += "\n" + std::string(kHelpColumn, ' ');
    head.resize(std::max(head.size(), kHelpColumn), ' ');
    text += head + help + "\n";
  };
  add("-h,--help", "Print this help message and exit");
  add(kVersion, "Display program version information and exit");
  for (const OptionRow& row : table.rows)
    add(row.name + (row.value.empty() ? "" : " " + row.value) + (row.required ? " REQUIRED" : "") +
            (row.needs.empty() ? "" : " Needs: " + row.needs),
        row.help);
  return text + "\n" + table.footer + "\n";
}

std::optional<int> parse_options(const OptionTable& table, int argc, char** argv, Logger& logger) {
  const Parsed parsed = sort_words(table, {argv + std::min(argc, 1), argv + argc});
  const auto say = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  };
  std::string trouble = parsed.trouble;
  if (trouble.empty() && parsed.version) return say(table.version + "\n");
  if (trouble.empty()) trouble = take_values(table, parsed);
  if (trouble.empty() && parsed.help) return say(help_text(table));
  if (trouble.empty()) trouble = trouble_of_presence(table, parsed);
  if (trouble.empty()) return std::nullopt;
  return logger.fail(trouble + "; see " + table.program + " --help", kBadUsage);
}

}  // namespace gradwire
