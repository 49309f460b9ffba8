#include "proto/config/idle_keys.h"

#include <stdexcept>
#include <string_view>
#include <utility>

#include "algorithms/methods.h"

namespace gradwire {
namespace {

std::string line(std::string_view key, std::string_view by, const Value& value) {
  return std::string(key) + " has no effect with " + std::string(by) + " = " + toml_literal(value);
}

// Returns the key of `path` ("run.rounds", or "rounds" in `section`) and its value.
std::pair<std::string_view, Value> find(const std::vector<KeySection>& sections, std::string_view section,
                                        std::string_view path, const Experiment& e) {
  if (path == "problem.kind") return {"kind", std::string(kind_name(e))};
  for (const KeySection& s : sections)
    for (const Field& field : s.fields)
      if (s.path(field.key) == path || (s.name == section && field.key == path))
        return {field.key, field.get()};
  throw std::logic_error("idle_by names no key: " + std::string(path));
}

}  // namespace

std::vector<std::string> idle_keys(const LoadedExperiment& loaded) {
  Experiment e = loaded.experiment, defaults;
  defaults.problem = problem_of(std::string(kind_name(e)));
  const std::vector<KeySection> sections = sections_of(e), unset = sections_of(defaults);
  std::vector<std::string> lines;
  for (std::size_t s = 0; s < sections.size(); ++s)
    for (std::size_t k = 0; k < sections[s].fields.size(); ++k) {
      const Field& field = sections[s].fields[k];
      if (field.rules.idle_by.empty() || loaded.lines.count(sections[s].path(field.key)) == 0 ||
          (!field.rules.quiet && field.get() == unset[s].fields[k].get()))
        continue;
      const auto [by, value] = find(sections, sections[s].name, field.rules.idle_by, e);
      lines.push_back(line(field.key, by, value));
    }
  for (const IdleParameter& idle : idle_parameters(algorithm_spec(e)))
    if (!idle.has_default) lines.push_back(line(idle.key, idle.by, idle.value));
  return lines;
}

std::vector<std::string> keys_of_simulations(const LoadedExperiment& loaded) {
  Experiment e = loaded.experiment, defaults;
  defaults.problem = problem_of(std::string(kind_name(e)));
  const std::vector<KeySection> sections = sections_of(e), unset = sections_of(defaults);
  std::vector<std::string> lines;
  for (std::size_t s = 0; s < sections.size(); ++s)
    for (std::size_t k = 0; k < sections[s].fields.size(); ++k) {
      const Field& field = sections[s].fields[k];
      const std::string path = sections[s].path(field.key);
      if ((sections[s].name == "faults" || path == "clients.seconds") &&
          field.get() != unset[s].fields[k].get())
        lines.push_back(path + " has no effect at a server; it is for simulations with gradwire run");
    }
  return lines;
}

}  // namespace gradwire
