#include "report/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/printable.h"
#include "base/suggest.h"

namespace gradwire {
namespace {

using Tokens = std::vector<std::string>;

// Returns the error about a first word that is neither an option nor a command of `app`, else "".
std::string trouble_of_command(const CLI::App& app, const Tokens& words) {
  Tokens known;
  for (const CLI::App* command : app.get_subcommands(nullptr)) known.push_back(command->get_name());
  if (known.empty() || words.empty() || words[0].empty() || words[0][0] == '-' ||
      std::find(known.begin(), known.end(), words[0]) != known.end())
    return "";
  const bool is_file = words[0].find_first_of("./") != std::string::npos;
  if (!is_file) return unknown_command(words[0], known);
  return unknown_command(words[0], {}) + "; to run an experiment: " + app.get_name() + " run " + words[0];
}

const CLI::App& chosen_command(const CLI::App& app, const Tokens& words) {
  for (const CLI::App* command : app.get_subcommands(nullptr))
    if (!words.empty() && command->get_name() == words[0]) return *command;
  return app;
}

Tokens with_keys_as_sets(const CLI::App& command, const Tokens& words, const KeyOfWord& key_of) {
  if (!key_of || command.get_option_no_throw("--set") == nullptr) return words;
  Tokens result;
  for (std::size_t k = 0; k < words.size(); ++k) {
    const std::size_t equals = words[k].find('=');
    const std::string option = words[k].substr(0, equals);
    const bool is_key = option.starts_with("--") && option.size() > 2 &&
                        command.get_option_no_throw(option) == nullptr && key_of(option.substr(2));
    if (!is_key) {
      result.push_back(words[k]);
      continue;
    }
    std::string set = words[k].substr(2);
    const bool is_followed = k + 1 < words.size() && !words[k + 1].starts_with("--");
    if (equals == std::string::npos && is_followed) set += "=" + words[++k];
    result.insert(result.end(), {"--set", set});
  }
  return result;
}

}  // namespace

std::string unknown_command(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t kLongestWord = 100;
  return "unknown command '" + printable(std::string(word), kLongestWord) + "'" + suggest(word, known);
}

std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv, Logger& logger,
                                      const KeyOfWord& key_of) {
  const Tokens words(argv + std::min(argc, 1), argv + argc);
  const std::string see = "; see " + app.get_name();
  if (const std::string trouble = trouble_of_command(app, words); !trouble.empty())
    return logger.fail(trouble + see + " --help", kBadUsage);
  Tokens parsed = with_keys_as_sets(chosen_command(app, words), words, key_of);
  std::reverse(parsed.begin(), parsed.end());  // CLI11 takes the last word first
  try {
    app.parse(std::move(parsed));
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const auto commands = app.get_subcommands();
    const std::string command = commands.empty() ? "" : " " + commands.front()->get_name();
    return logger.fail(std::string(error.what()) + see + command + " --help", kBadUsage);
  }
}

}  // namespace gradwire
