// The tables of docs/reference/experiment_file.md and of `gradwire list`.
#include <algorithm>

#include "config/experiment_spec.h"

namespace gradwire {
namespace {

// The texts of one key for one problem type.
struct OfProblemType {
  std::string kind, type, fallback, meaning;
};

std::string fallback_text(const Field& field) {
  if (!field.constraints.note.empty()) return std::string(field.constraints.note);
  return field.constraints.required.empty() ? toml_literal(field.get()) : "required";
}

// Returns the text itself if it is the same for all problem types, else "KIND, KIND: TEXT; KIND: TEXT".
std::string joined(const std::vector<OfProblemType>& kinds, std::string OfProblemType::*text) {
  std::string all;
  std::vector<std::string> done;
  for (const OfProblemType& kind : kinds) {
    const std::string& own = kind.*text;
    if (std::find(done.begin(), done.end(), own) != done.end()) continue;
    done.push_back(own);
    std::string names;
    for (const OfProblemType& other : kinds)
      if (other.*text == own) names += (names.empty() ? "" : ", ") + other.kind;
    all += (all.empty() ? "" : "; ") + names + ": " + own;
  }
  return done.size() == 1 ? done[0] : all;
}

std::string names_of(const std::vector<OfProblemType>& kinds) {
  std::string names;
  for (const OfProblemType& kind : kinds) names += (names.empty() ? "" : ", ") + kind.kind;
  return names;
}

void add_problem_keys(std::vector<KeyHelp>& all) {
  std::string any;
  const Field kind = problem_type_field(any);
  all.push_back({"problem.kind", kind.expected(), fallback_text(kind), std::string(kind.meaning)});
  std::vector<std::pair<std::string, std::vector<OfProblemType>>> keys;
  for (const ProblemInfo& traits : problem_types()) {
    for (const KeyHelp& own : problem_keys(traits.name)) {
      auto at =
          std::find_if(keys.begin(), keys.end(), [&](const auto& known) { return known.first == own.key; });
      if (at == keys.end()) at = keys.insert(at, {own.key, {}});
      at->second.push_back({std::string(traits.name), own.type, own.fallback, own.meaning});
    }
  }
  for (const auto& [key, kinds] : keys) {
    const std::string meaning = joined(kinds, &OfProblemType::meaning);
    const bool named = meaning != kinds[0].meaning;
    all.push_back({key, joined(kinds, &OfProblemType::type), joined(kinds, &OfProblemType::fallback),
                   named ? meaning : names_of(kinds) + ": " + meaning});
  }
}

}  // namespace

std::vector<KeyHelp> problem_keys(std::string_view kind) {
  std::vector<KeyHelp> all;
  ProblemType problem = problem_of(std::string(kind));
  for (const Field& field : problem_fields(problem))
    all.push_back({"problem." + std::string(field.key), field.expected(), fallback_text(field),
                   std::string(field.meaning)});
  return all;
}

std::vector<KeyHelp> experiment_keys() {
  std::vector<KeyHelp> all;
  ExperimentSpec defaults;
  for (const KeySection& section : sections_of(defaults)) {
    if (section.name == "problem") {
      add_problem_keys(all);
      continue;
    }
    for (const Field& field : section.fields)
      all.push_back(
          {section.path(field.key), field.expected(), fallback_text(field), std::string(field.meaning)});
  }
  return all;
}

}  // namespace gradwire
