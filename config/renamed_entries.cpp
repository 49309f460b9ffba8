#include "config/renamed_entries.h"

#include <algorithm>
#include <cstddef>

#include "base/printable.h"
#include "config/experiment_file.h"
#include "config/renamed_keys.h"

namespace gradwire {
namespace {

constexpr std::size_t kLongestPlace = 500;

std::string path_of(const TomlEntry& entry) {
  return entry.section.empty() ? entry.key : entry.section + "." + entry.key;
}

std::string place_in(const std::string& file, std::size_t line) {
  return printable(file, kLongestPlace) + ":" + std::to_string(line) + ": ";
}

}  // namespace

void use_current_names(TomlEntry& entry, const std::string& place, std::vector<std::string>& warnings) {
  if (entry.is_header) return;
  std::string path = path_of(entry);
  const std::size_t prefix = path.size() - entry.key.size();
  for (const std::string& warning : use_current_names(path, entry.value))
    if (std::find(warnings.begin(), warnings.end(), place + warning) == warnings.end())
      warnings.push_back(place + warning);
  entry.key = path.substr(prefix);
}

void use_current_names_in(std::vector<TomlEntry>& entries, const std::string& file,
                          std::vector<std::string>& warnings) {
  std::vector<std::string> typed;
  for (TomlEntry& entry : entries) {
    typed.push_back(path_of(entry));
    use_current_names(entry, place_in(file, entry.line), warnings);
  }
  for (std::size_t k = 0; k < entries.size(); ++k) {
    const std::string path = path_of(entries[k]);
    if (entries[k].is_header || path == typed[k]) continue;
    const auto other = std::find(typed.begin(), typed.end(), path);
    if (other == typed.end()) continue;
    const auto line =
        std::max(entries[k].line, entries[static_cast<std::size_t>(other - typed.begin())].line);
    throw ExperimentError(place_in(file, line) + typed[k] + " is the old name of " + path +
                          "; remove one of the two");
  }
}

}  // namespace gradwire
