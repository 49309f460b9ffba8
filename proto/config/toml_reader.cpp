#include "proto/config/toml_reader.h"

#include <algorithm>

namespace gradwire {
namespace {

struct TomlAssertion {};
[[noreturn]] void toml_assertion_failed() { throw TomlAssertion{}; }

}  // namespace
}  // namespace gradwire

// toml++ asserts (in release builds: assumes) conditions that some malformed files violate ("[=" or
// "1979-05-27Ti"). Here a failed assertion throws, in every build. toml++ uses our macro only without NDEBUG.
#undef NDEBUG
#define TOML_ASSERT(condition) (static_cast<bool>(condition) ? void() : ::gradwire::toml_assertion_failed())
#include <toml++/toml.h>

namespace gradwire {
namespace {

Value list_value(const toml::array& array) {
  std::vector<std::int64_t> integers;
  for (const toml::node& element : array) {
    const auto* integer = element.as_integer();
    if (integer == nullptr) return OtherValue{"a list of other things"};
    integers.push_back(integer->get());
  }
  return integers;
}

Value to_value(const toml::node& node) {
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* array = node.as_array()) return list_value(*array);
  return OtherValue{node.is_table() ? "a table" : "a date or time"};
}

// Bytes of the UTF-8 sequence that starts at text[i]; 0 when there is none. Overlong forms are left to
// toml++.
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
  const unsigned first = byte(i);
  const std::size_t length = first < 0x80       ? 1
                             : first >> 5 == 6  ? 2
                             : first >> 4 == 14 ? 3
                             : first >> 3 == 30 ? 4
                                                : 0;
  for (std::size_t k = 1; k < length; ++k)
    if (byte(i + k) >> 6 != 2) return 0;
  return length;
}

// Invalid UTF-8 is found here, because toml++ reads ahead and reports the wrong line for it.
void check_utf8(std::string_view text) {
  std::uint32_t line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) throw TomlError(line, "a byte that is not UTF-8; save the file as UTF-8");
    line += text[i] == '\n';
    i += length;
  }
}

std::uint32_t line_of(const toml::key& key, const toml::node& node) {
  const auto line = key.source().begin.line;
  return line != 0 ? line : node.source().begin.line;
}

bool fails_assertion(std::string_view text) {
  try {
    const toml::table ignored = toml::parse(text);
  } catch (const TomlAssertion&) {
    return true;
  } catch (const toml::parse_error&) {
  }
  return false;
}

// The line that fails an assertion: the first line at which the text up to its end fails.
std::uint32_t line_of_assertion(std::string_view text) {
  std::vector<std::size_t> line_ends;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') line_ends.push_back(i + 1);
  const auto first = std::partition_point(line_ends.begin(), line_ends.end(), [&](std::size_t end) {
    return !fails_assertion(text.substr(0, end));
  });
  return static_cast<std::uint32_t>(first - line_ends.begin()) + 1;
}

std::vector<TomlEntry> flatten(const toml::table& document) {
  std::vector<TomlEntry> entries;
  for (const auto& [key, node] : document) {
    const std::uint32_t line = line_of(key, node);
    const toml::table* section = node.as_table();
    if (section == nullptr) {
      entries.push_back({"", std::string(key.str()), false, to_value(node), line});
      continue;
    }
    const std::string name(key.str());
    entries.push_back({name, "", true, {}, line});
    for (const auto& [inner_key, inner] : *section)
      entries.push_back(
          {name, std::string(inner_key.str()), false, to_value(inner), line_of(inner_key, inner)});
  }
  // toml++ sorts by name.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const TomlEntry& a, const TomlEntry& b) { return a.line < b.line; });
  return entries;
}

// Each key below `table`, without its key `left_out`.
void list_choices(const toml::table& table, const std::string& above, std::string_view left_out,
                  TomlChoices& to) {
  for (const auto& [key, node] : table) {
    if (above.empty() && key.str() == left_out) continue;
    const std::string path = above + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      list_choices(*inner, path + ".", {}, to);
      continue;
    }
    TomlChoice choice{path, {}, false, line_of(key, node)};
    if (const toml::array* list = node.as_array()) {
      choice.is_list = true;
      for (const toml::node& element : *list) choice.values.push_back(to_value(element));
    } else {
      choice.values.push_back(to_value(node));
    }
    to.push_back(std::move(choice));
  }
}

TomlChoices choices_of(const toml::table& table, std::string_view left_out = {}) {
  TomlChoices choices;
  list_choices(table, "", left_out, choices);
  std::stable_sort(choices.begin(), choices.end(),
                   [](const TomlChoice& a, const TomlChoice& b) { return a.line < b.line; });
  return choices;
}

}  // namespace

TomlSweep read_toml_sweep(std::string_view text, std::string_view section, std::string_view tables) {
  const toml::table document = toml::parse(text);
  TomlSweep sweep;
  const toml::table* table = document[section].as_table();
  if (table == nullptr) return sweep;
  sweep.keys = choices_of(*table, tables);
  const toml::node* nested = table->get(tables);
  if (nested == nullptr) return sweep;
  const auto wrong = [&](const toml::node& node) {
    return TomlError(node.source().begin.line, "write [[" + std::string(section) + "." + std::string(tables) +
                                                   "]] for each of them, and its keys below");
  };
  const toml::array* list = nested->as_array();
  if (list == nullptr) throw wrong(*nested);
  for (const toml::node& element : *list) {
    if (element.as_table() == nullptr) throw wrong(element);
    sweep.tables.push_back(choices_of(*element.as_table()));
  }
  return sweep;
}

std::vector<TomlEntry> read_toml(std::string_view text) {
  check_utf8(text);
  try {
    return flatten(toml::parse(text));
  } catch (const toml::parse_error& error) {
    throw TomlError(error.source().begin.line, std::string(error.description()));
  } catch (const TomlAssertion&) {
    throw TomlError(line_of_assertion(text), "not TOML; look for a misspelt [section], date or time");
  }
}

std::optional<Value> read_toml_value(std::string_view text) {
  try {
    const toml::table document = toml::parse("value = " + std::string(text));
    // A line break in `text` could start another key.
    if (document.size() != 1) return std::nullopt;
    return to_value(*document.get("value"));
  } catch (const toml::parse_error&) {
    return std::nullopt;
  } catch (const TomlAssertion&) {
    return std::nullopt;
  }
}

}  // namespace gradwire
