#include "config/idle_keys.h"

#include <stdexcept>
#include <string_view>
#include <utility>

namespace gradwire {
namespace {

std::string line(std::string_view key, std::string_view by, const Value& value) {
  return std::string(key) + " has no effect with " + std::string(by) + " = " + toml_literal(value);
}

// Returns `path` ("run.rounds", or "rounds" in `section`) and the value of its key.
std::pair<std::string, Value> find(const std::vector<KeySection>& sections, std::string_view section,
                                   std::string_view path, const ExperimentSpec& e) {
  if (path == "problem.kind") return {std::string(path), std::string(problem_type_name(e))};
  for (const KeySection& s : sections)
    for (const Field& field : s.fields)
      if (s.path(field.key) == path || (s.name == section && field.key == path))
        return {std::string(path), field.get()};
  throw std::logic_error("idle_by names no key: " + std::string(path));
}

// Calls visit(sections, section, field, has_default) for each key except the algorithm's own parameters.
void each_field(ExperimentSpec e, auto&& visit) {
  ExperimentSpec defaults;
  defaults.problem = problem_of(std::string(problem_type_name(e)));
  const std::vector<KeySection> sections = sections_of(e), unset = sections_of(defaults);
  for (std::size_t s = 0; s < sections.size(); ++s)
    for (std::size_t k = 0; k < sections[s].fields.size(); ++k) {
      const Field& field = sections[s].fields[k];
      visit(sections, sections[s], field, field.get() == unset[s].fields[k].get());
    }
}

}  // namespace

std::vector<std::string> idle_keys(const LoadedExperiment& loaded) {
  const ExperimentSpec& e = loaded.experiment;
  std::vector<std::string> lines;
  each_field(e, [&](const auto& sections, const KeySection& section, const Field& field, bool has_default) {
    if (field.constraints.idle_by.empty() || loaded.lines.count(section.path(field.key)) == 0 ||
        (!field.constraints.quiet && has_default))
      return;
    const auto [by, value] = find(sections, section.name, field.constraints.idle_by, e);
    lines.push_back(line(field.key, by, value));
  });
  for (const IdleParameter& idle : idle_parameters(e)) lines.push_back(line(idle.key, idle.by, idle.value));
  return lines;
}

std::string unused_test(const ExperimentSpec& e) {
  const SampleSource* const source = sources_of(e.problem);
  if (rows_of(e.problem) == nullptr || info_of(e.problem).has_classes ||
      (source->test.empty() && source->test_share == 0))
    return "";
  return std::string(source->test.empty() ? "test_share" : "test") +
         " changes no metric of a run with problem.kind = \"" + std::string(problem_type_name(e)) +
         "\", which has no accuracy; `gradwire evaluate` measures RMSE and R^2 on the test samples";
}

std::vector<IdleParameter> idle_parameters(const ExperimentSpec& e) {
  std::vector<IdleParameter> idle = idle_parameters(algorithm_spec(e));
  std::erase_if(idle,
                [&](const IdleParameter& p) { return p.has_default || (p.monitored && e.run.monitor); });
  return idle;
}

std::vector<std::string> keys_of(RunIn place, const LoadedExperiment& loaded) {
  std::vector<std::string> paths;
  each_field(loaded.experiment,
             [&](const auto&, const KeySection& section, const Field& field, bool has_default) {
               if (field.constraints.place == place && !has_default) paths.push_back(section.path(field.key));
             });
  return paths;
}

}  // namespace gradwire
