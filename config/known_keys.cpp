#include "config/known_keys.h"

#include <algorithm>

#include "algorithms/algorithms.h"
#include "base/config_error.h"
#include "base/suggest.h"
#include "base/synonyms.h"
#include "config/experiment_file.h"
#include "config/experiment_spec.h"
#include "config/renamed_keys.h"

namespace gradwire {
namespace {

bool is_section(const std::string& name) {
  const auto names = section_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

void add_problem_keys(std::vector<KnownKey>& all) {
  all.push_back({"problem", "kind"});
  for (const ProblemInfo& kind : problem_types()) {
    ProblemType problem = problem_of(std::string(kind.name));
    for (const Field& field : problem_fields(problem)) {
      auto at = std::find_if(all.begin(), all.end(), [&](const KnownKey& known) {
        return known.section == "problem" && known.key == field.key;
      });
      if (at == all.end()) at = all.insert(at, {"problem", std::string(field.key), field.takes_any_text()});
      at->kinds.emplace_back(kind.name);
    }
  }
}

const std::vector<KnownKey>& known_keys() {
  static const std::vector<KnownKey> keys = [] {
    std::vector<KnownKey> all;
    ExperimentSpec e;
    for (const KeySection& section : sections_of(e)) {
      if (section.name == "problem") {
        add_problem_keys(all);
        continue;
      }
      for (const Field& field : section.fields)
        all.push_back({std::string(section.name), std::string(field.key), field.takes_any_text()});
    }
    return all;
  }();
  return keys;
}

// Returns the paths of all keys, those of the algorithms' parameters included.
const std::vector<std::string>& all_paths() {
  static const std::vector<std::string> paths = [] {
    std::vector<std::string> all;
    for (const KnownKey& known : known_keys()) all.push_back(path_of(known.section, known.key));
    for (const AlgorithmInfo& algorithm : all_algorithms())
      for (const ParameterHelp& parameter : algorithm.parameters)
        if (const std::string path = path_of("algorithm", parameter.name);
            std::find(all.begin(), all.end(), path) == all.end())
          all.push_back(path);
    return all;
  }();
  return paths;
}

std::string last_part(const std::string& path) { return path.substr(path.find('.') + 1); }

[[noreturn]] void refuse_section(const std::string& section, const std::string& path) {
  if (section == kSweepSection)
    throw ConfigError(path, "[sweep] describes many runs; start them with gradwire sweep, or leave it out");
  throw ConfigError(path, "unknown section '" + section + "'" + suggest(section, section_names()));
}

// Returns the old name of a key in its section, or "" if it was not renamed.
std::string old_key_of(const KnownKey& known) {
  const std::string path = path_of(known.section, known.key), old = old_path(path);
  return old == path ? "" : old.substr(path.size() - known.key.size());
}

[[noreturn]] void refuse_key(const std::string& section, const std::string& key) {
  std::vector<std::string> siblings;
  std::vector<Renamed> renamed;
  std::string elsewhere;
  for (const KnownKey& known : known_keys()) {
    const std::string old_key = old_key_of(known), path = path_of(known.section, known.key);
    if (known.section == section) siblings.push_back(known.key);
    if (known.section == section && !old_key.empty()) renamed.push_back({old_key, known.key});
    if (section.empty() && !known.section.empty()) renamed.push_back({known.key, path});
    if ((known.key != key && old_key != key) || !elsewhere.empty()) continue;
    elsewhere = known.section.empty()
                    ? "; '" + known.key + "' belongs at the top of the file, before the sections"
                    : "; did you mean '" + path + "'?";
  }
  if (elsewhere.empty() && (section.empty() || !meant_name(key, siblings)))
    if (const auto path = key_of_word(key)) elsewhere = "; did you mean '" + *path + "'?";
  std::string message = "unknown key '" + key + "'";
  if (!section.empty()) message += " in [" + section + "]";
  if (section.empty() && is_section(key)) {
    message = "'" + key + "' is a section: write [" + key + "], and its keys below";
  } else {
    message += elsewhere.empty() ? suggest(key, siblings, renamed) : elsewhere;
  }
  throw ConfigError(path_of(section, key), message);
}

}  // namespace

const KnownKey* find_key(const std::string& section, const std::string& key) {
  for (const KnownKey& known : known_keys())
    if (known.section == section && known.key == key) return &known;
  return nullptr;
}

std::string path_of(const std::string& section, const std::string& key) {
  return section.empty() ? key : key.empty() ? section : section + "." + key;
}

void check_known(const TomlEntry& entry) {
  if (!entry.section.empty() && !is_section(entry.section))
    refuse_section(entry.section, path_of(entry.section, entry.key));
  const bool parameter = entry.section == "algorithm";
  if (!entry.is_header && !parameter && find_key(entry.section, entry.key) == nullptr)
    refuse_key(entry.section, entry.key);
}

std::optional<std::string> key_of_word(std::string_view word) {
  if (const auto meant = meant_name(word, all_paths())) return meant->name;
  const std::string plain = plain_spelling(word);
  std::optional<std::string> found;
  for (std::size_t k = 0; k < all_paths().size(); ++k) {
    if (last_part(all_paths()[k]) != plain) continue;
    const bool is_parameter = k >= known_keys().size();
    if (found && !is_parameter) return std::nullopt;
    if (!found) found = all_paths()[k];
  }
  return found;
}

}  // namespace gradwire
