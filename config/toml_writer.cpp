#include <algorithm>

#include "config/experiment_spec.h"
#include "config/idle_keys.h"
#include "config/renamed_keys.h"

namespace gradwire {
namespace {

bool is_bare_key(const std::string& key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::string line(const std::string& key, const Value& value) {
  return (is_bare_key(key) ? key : toml_literal(key)) + " = " + toml_literal(value) + "\n";
}

}  // namespace

std::string to_toml(const ExperimentSpec& experiment, Names names) {
  ExperimentSpec e = experiment, defaults;
  defaults.problem = problem_of(std::string(problem_type_name(e)));
  const std::vector<KeySection> now = sections_of(e), unset = sections_of(defaults);
  const auto name_of = [&](std::string_view section, std::string_view key) {
    const std::string prefix = section.empty() ? "" : std::string(section) + ".";
    const std::string path = prefix + std::string(key);
    return names == Names::kOld ? old_path(path).substr(prefix.size()) : std::string(key);
  };
  std::string text;
  for (std::size_t s = 0; s < now.size(); ++s) {
    std::string lines;
    if (now[s].name == "problem") lines += line("kind", std::string(problem_type_name(e)));
    for (std::size_t k = 0; k < now[s].fields.size(); ++k) {
      const Field& field = now[s].fields[k];
      const Value value = field.get();
      if (value == Value("") || (field.constraints.quiet && value == unset[s].fields[k].get())) continue;
      lines += line(name_of(now[s].name, field.key), field.get(names));
    }
    if (now[s].name == "algorithm") {
      const std::vector<IdleParameter> idle = idle_parameters(e);
      for (const auto& [key, value] : e.algorithm.parameters)
        if (std::ranges::find(idle, key, &IdleParameter::key) == idle.end())
          lines += line(name_of("algorithm", key), value_of(value));
    }
    if (!lines.empty() && !now[s].name.empty()) text += "\n[" + std::string(now[s].name) + "]\n";
    text += lines;
  }
  return text;
}

}  // namespace gradwire
