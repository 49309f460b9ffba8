#include "config/renamed_keys.h"

#include <algorithm>
#include <map>
#include <utility>

#include "algorithms/algorithms.h"
#include "config/experiment_spec.h"

namespace gradwire {
namespace {

struct RenamedKeys {
  std::vector<Renamed> keys;
  std::map<std::string, Renamed, std::less<>> words;  // by the path of their key
};

void add(RenamedKeys& to, std::string_view section, std::string_view old_key, std::string_view key) {
  const std::string prefix = section.empty() ? "" : std::string(section) + ".";
  const Renamed renamed{prefix + std::string(old_key), prefix + std::string(key)};
  const auto is_same = [&](const Renamed& other) { return other.name == renamed.name; };
  if (std::none_of(to.keys.begin(), to.keys.end(), is_same)) to.keys.push_back(renamed);
}

void add(RenamedKeys& to, const KeySection& section) {
  for (const Field& field : section.fields) {
    const Constraints& c = field.constraints;
    if (!c.old_key.empty()) add(to, section.name, c.old_key, field.key);
    if (!c.renamed_word.word.empty())
      to.words.insert({section.path(field.key),
                       {std::string(c.renamed_word.old_word), std::string(c.renamed_word.word)}});
  }
}

const RenamedKeys& all() {
  static const RenamedKeys renamed = [] {
    RenamedKeys found;
    ExperimentSpec e;
    for (const KeySection& section : sections_of(e))
      if (section.name != "problem") add(found, section);
    for (const ProblemInfo& kind : problem_types()) {
      ProblemType problem = problem_of(std::string(kind.name));
      add(found, {"problem", problem_fields(problem)});
    }
    for (const AlgorithmInfo& algorithm : all_algorithms())
      for (const ParameterHelp& parameter : algorithm.parameters)
        if (!parameter.old_name.empty()) add(found, "algorithm", parameter.old_name, parameter.name);
    return found;
  }();
  return renamed;
}

std::string warning(const std::string& old_name, const std::string& name) {
  return old_name + " is now " + name + "; the old name works until version " + std::string(kOldNamesEnd);
}

}  // namespace

const std::vector<Renamed>& renamed_keys() { return all().keys; }

std::string current_path(const std::string& path) {
  for (const Renamed& key : renamed_keys())
    if (key.old_name == path) return key.name;
  return path;
}

std::string old_path(const std::string& path) {
  for (const Renamed& key : renamed_keys())
    if (key.name == path) return key.old_name;
  return path;
}

std::optional<Renamed> renamed_word_of(std::string_view path) {
  const auto at = all().words.find(path);
  return at == all().words.end() ? std::nullopt : std::optional(at->second);
}

std::vector<std::string> use_current_names(std::string& path, Value& value) {
  std::vector<std::string> warnings;
  if (std::string current = current_path(path); current != path) {
    warnings.push_back(warning(path, current));
    path = std::move(current);
  }
  if (const auto word = renamed_word_of(path); word && value == Value(word->old_name)) {
    warnings.push_back(warning(path + " = " + toml_literal(value), toml_literal(Value(word->name))));
    value = word->name;
  }
  return warnings;
}

}  // namespace gradwire
