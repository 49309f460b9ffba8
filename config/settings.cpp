#include "config/settings.h"

#include <algorithm>
#include <set>

#include "config/renamed_keys.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

constexpr std::string_view kKind = "problem.kind", kParameter = "algorithm.";
constexpr int kMostSettings = 1000;

const Field* find(const std::vector<KeySection>& sections, const std::string& path) {
  for (const KeySection& section : sections)
    for (const Field& field : section.fields)
      if (section.path(field.key) == path) return &field;
  return nullptr;
}

}  // namespace

Settings settings_of(const ExperimentSpec& experiment, Names names) {
  ExperimentSpec e = experiment, defaults;
  defaults.problem = problem_of(std::string(problem_type_name(e)));
  Settings settings = {{std::string(kKind), std::string(problem_type_name(e))}};
  const std::vector<KeySection> sections = sections_of(e), unset = sections_of(defaults);
  for (std::size_t s = 0; s < sections.size(); ++s)
    for (std::size_t k = 0; k < sections[s].fields.size(); ++k) {
      const Field& field = sections[s].fields[k];
      if (field.constraints.sent_if_set && field.get() == unset[s].fields[k].get()) continue;
      settings.emplace_back(sections[s].path(field.key), field.text(names));
    }
  for (const auto& [key, value] : e.algorithm.parameters)
    settings.emplace_back(std::string(kParameter) + key, value);
  if (names == Names::kOld)
    for (auto& [path, text] : settings) path = old_path(path);
  return settings;
}

ExperimentSpec experiment_of(const Settings& given) {
  Settings settings = given;
  for (auto& [path, text] : settings) path = current_path(path);
  ExperimentSpec e;
  std::set<std::string> seen;
  for (const auto& [path, text] : settings) {
    check_printable("a setting", path);
    if (!seen.insert(path).second) throw ConfigError(path, "'" + path + "' is given twice");
    if (path == kKind) e.problem = problem_of(text);
  }
  if (seen.count(std::string(kKind)) == 0) throw ConfigError(std::string(kKind), "required");
  const std::vector<KeySection> sections = sections_of(e);
  for (const auto& [path, text] : settings) {
    if (path == kKind) continue;
    if (const Field* field = find(sections, path)) {
      field->from_text(path, text);
    } else if (path.starts_with(kParameter)) {
      e.algorithm.parameters.emplace_back(path.substr(kParameter.size()), text);
    } else {
      throw ConfigError(path, "unknown key '" + path + "'");
    }
  }
  check_experiment(e);
  return e;
}

std::string pack_experiment(const ExperimentSpec& experiment) {
  wire::Experiment message;
  for (const auto& [path, text] : settings_of(experiment, Names::kOld)) {
    wire::Setting& setting = *message.add_settings();
    setting.set_path(path);
    setting.set_text(text);
  }
  return message.SerializeAsString();
}

Result<ExperimentSpec> unpack_experiment(std::string_view bytes) {
  wire::Experiment message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || message.settings_size() == 0 ||
      message.settings_size() > kMostSettings)
    return Error{"the experiment is damaged"};
  Settings settings;
  for (const wire::Setting& setting : message.settings()) {
    if (!setting.has_path() || !setting.has_text()) return Error{"the experiment is damaged"};
    settings.emplace_back(setting.path(), setting.text());
  }
  try {
    return experiment_of(settings);
  } catch (const ConfigError& error) {
    return Error{"the experiment cannot be used: " + error.key() + ": " + error.what()};
  }
}

std::string first_difference(const ExperimentSpec& now, const ExperimentSpec& before, Compared compared) {
  const auto changed = [](const std::string& path, const std::string& is, const std::string& was) {
    return path + " is " + is + " now and was " + was;
  };
  ExperimentSpec a = now, b = before;
  const std::string mine(problem_type_name(a)), theirs(problem_type_name(b));
  if (mine != theirs) return changed(std::string(kKind), toml_literal(mine), toml_literal(theirs));
  const std::vector<KeySection> as = sections_of(a), bs = sections_of(b);
  for (std::size_t s = 0; s < as.size(); ++s)
    for (std::size_t k = 0; k < as[s].fields.size(); ++k) {
      const Field &field = as[s].fields[k], &other = bs[s].fields[k];
      if (compared == Compared::kFixed && field.constraints.may_change) continue;
      if (field.get() != other.get())
        return changed(as[s].path(field.key), toml_literal(field.get()), toml_literal(other.get()));
    }
  const auto text_in = [](const Options& parameters, const std::string& key) {
    for (const auto& [name, text] : parameters)
      if (name == key) return toml_literal(value_of(text));
    return std::string("not set");
  };
  const Options &is = a.algorithm.parameters, &was = b.algorithm.parameters;
  for (const Options* parameters : {&is, &was})
    for (const auto& [key, text] : *parameters)
      if (text_in(is, key) != text_in(was, key))
        return changed(kParameter.data() + key, text_in(is, key), text_in(was, key));
  return "";
}

void copy_what_may_change(const ExperimentSpec& from, ExperimentSpec& to) {
  ExperimentSpec source = from;
  const std::vector<KeySection> theirs = sections_of(source), mine = sections_of(to);
  for (std::size_t s = 0; s < mine.size(); ++s)
    for (std::size_t k = 0; k < mine[s].fields.size(); ++k)
      if (const Field& field = mine[s].fields[k]; field.constraints.may_change)
        field.set(mine[s].path(field.key), theirs[s].fields[k].get());
}

}  // namespace gradwire
