#include "proto/config/experiment.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "algorithms/methods.h"
#include "base/nearest.h"
#include "proto/config/experiment_fields.h"
#include "proto/config/problem_spec.h"
#include "proto/config/toml_reader.h"

namespace gradwire {
namespace {

constexpr std::size_t kLongestMessage = 500;

// Makes one line of `text`, whatever control characters a key or a value holds.
std::string one_line(std::string text) {
  if (text.size() > kLongestMessage) text = text.substr(0, kLongestMessage) + "...";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; },
      ' ');
  return text;
}

std::string path_of(const std::string& section, const std::string& key) {
  return section.empty() ? key : key.empty() ? section : section + "." + key;
}

bool is_section(const std::string& name) {
  const auto names = section_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void refuse_section(const std::string& section, const std::string& path) {
  throw ConfigError(path, "unknown section '" + section + "'" + suggest(section, section_names()));
}

// The error suggests the key of that name in another section if there is one, else the nearest key of this
// section.
[[noreturn]] void refuse_key(const std::string& section, const std::string& key) {
  std::vector<std::string> siblings;
  std::string elsewhere;
  for (const Field& field : experiment_fields()) {
    if (field.section == section) siblings.emplace_back(field.key);
    if (field.key == key && elsewhere.empty()) elsewhere = field.path();
  }
  std::string message = "unknown key '" + key + "'";
  if (!section.empty()) message += " in [" + section + "]";
  if (section.empty() && is_section(key)) {
    message = "'" + key + "' is a section: write [" + key + "], and its keys below";
  } else {
    message += elsewhere.empty() ? suggest(key, siblings) : "; did you mean '" + elsewhere + "'?";
  }
  throw ConfigError(path_of(section, key), message);
}

void set_parameter(proto::Experiment& e, const std::string& key, const TomlValue& value) {
  if (std::holds_alternative<TomlOther>(value) || std::holds_alternative<std::vector<std::int64_t>>(value))
    throw ConfigError("algorithm." + key,
                      key + " must be a number, a string, true or false, not " + describe(value));
  auto& parameters = *e.mutable_algorithm()->mutable_parameters();
  auto at = std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.key() == key; });
  if (at == parameters.end()) {
    proto::Parameter* added = parameters.Add();
    added->set_key(key);
    added->set_value(text_of(value));
  } else {
    at->set_value(text_of(value));
  }
}

void apply(proto::Experiment& e, const TomlEntry& entry) {
  if (!entry.section.empty() && !is_section(entry.section))
    refuse_section(entry.section, path_of(entry.section, entry.key));
  if (entry.is_header) return;
  if (const Field* field = find_field(entry.section, entry.key); field != nullptr) {
    field->set(e, check_field(*field, entry.value));
  } else if (entry.section == "algorithm") {
    set_parameter(e, entry.key, entry.value);
  } else {
    refuse_key(entry.section, entry.key);
  }
}

// Reads "a.b=v". A text key takes v literally when v is no TOML string: --set name=7.
TomlEntry read_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string path = text.substr(0, equals);
  if (equals == std::string::npos || path.empty())
    throw ExperimentError("--set " + one_line(text) + ": write it as KEY=VALUE, as in run.rounds=100");
  const std::string spelled = text.substr(equals + 1);
  TomlEntry entry;
  const std::size_t dot = path.find('.');
  if (dot != std::string::npos) entry.section = path.substr(0, dot);
  entry.key = dot == std::string::npos ? path : path.substr(dot + 1);
  entry.value = read_toml_value(spelled).value_or(spelled);
  const Field* field = find_field(entry.section, entry.key);
  const bool wants_text = field != nullptr && field->type == FieldType::kText;
  if (wants_text && !std::holds_alternative<std::string>(entry.value)) entry.value = spelled;
  return entry;
}

void fill_in(LoadedExperiment& loaded) {
  proto::Experiment& e = loaded.experiment;
  if (loaded.lines.count("name") == 0) e.set_name(loaded.file.stem().string());
  for (const Field& field : experiment_fields()) {
    const Field::OfKind* own = field.of_kind(e.problem().kind());
    if (own != nullptr && loaded.lines.count(field.path()) == 0) field.set(e, own->fallback);
  }
  const bool known = !e.problem().kind().empty();  // else check_experiment() says what is missing
  if (e.run().x0().empty())
    e.mutable_run()->set_x0(known && find_problem_kind(e.problem().kind()).is_network ? "model" : "zeros");
  if (e.problem().lambda() > 0 && e.problem().kind() != "quadratic" &&
      loaded.lines.count("problem.regularizer") == 0)
    throw ConfigError("problem.lambda", "lambda has no use without regularizer = \"l2\" or \"nonconvex\"");
}

std::string read_file(const std::filesystem::path& file) {
  const std::string name = file.string();
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) throw ExperimentError(one_line(name + ": no such file"));
  if (std::filesystem::is_directory(status))
    throw ExperimentError(one_line(name + ": is a folder; name the experiment file in it"));
  std::ifstream in(file, std::ios::binary);
  std::string text(kMaxExperimentBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad()) throw ExperimentError(one_line(name + ": cannot be read"));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxExperimentBytes)
    throw ExperimentError(one_line(name + ": is larger than 1 MB; an experiment file is a page of TOML"));
  return text;
}

// The text after "SCHEME:" of a source or x0 that has a path.
std::optional<std::size_t> path_start(const std::string& text) {
  for (const std::string_view scheme : {"libsvm:", "csv:", "idx:", "text:", "file:"})
    if (text.starts_with(scheme)) return scheme.size();
  return std::nullopt;
}

}  // namespace

std::filesystem::path LoadedExperiment::folder() const {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

proto::Experiment default_experiment() {
  proto::Experiment e;
  for (const Field& field : experiment_fields()) field.set(e, field.fallback);
  return e;
}

LoadedExperiment load_experiment(const std::filesystem::path& file, std::span<const std::string> overrides) {
  return parse_experiment(read_file(file), file, overrides);
}

LoadedExperiment parse_experiment(std::string_view toml, const std::filesystem::path& name_for_errors,
                                  std::span<const std::string> overrides) {
  LoadedExperiment loaded{default_experiment(), name_for_errors, {}};
  const std::string name = name_for_errors.string();
  try {
    const std::vector<TomlEntry> entries = read_toml(toml);
    if (entries.empty())
      throw ExperimentError(
          one_line(name + ":1: the file is empty; an experiment needs problem.kind and algorithm.name"));
    for (const TomlEntry& entry : entries) {
      loaded.lines[path_of(entry.section, entry.key)] = entry.line;
      apply(loaded.experiment, entry);
    }
    for (const std::string& text : overrides) {
      const TomlEntry entry = read_override(text);
      loaded.lines[path_of(entry.section, entry.key)] = LoadedExperiment::kFromSet;
      apply(loaded.experiment, entry);
    }
    fill_in(loaded);
    check_experiment(loaded.experiment);
  } catch (const TomlError& error) {
    throw ExperimentError(one_line(name + ":" + std::to_string(error.line()) + ": " + error.what()));
  } catch (const ConfigError& error) {
    throw locate(loaded, error);
  }
  return loaded;
}

ExperimentError locate(const LoadedExperiment& loaded, const ConfigError& error) {
  const std::string& key = error.key();
  const std::string file = loaded.file.string();
  if (const auto at = loaded.lines.find(key); at != loaded.lines.end()) {
    if (at->second == LoadedExperiment::kFromSet)
      return ExperimentError(one_line("--set " + key + ": " + error.what()));
    return ExperimentError(one_line(file + ":" + std::to_string(at->second) + ": " + error.what()));
  }
  // A default, or a key that is missing: name the key, and point at its section.
  const auto section = loaded.lines.find(key.substr(0, key.find('.')));
  const std::uint32_t line = section == loaded.lines.end() ? 1 : std::max(section->second, 1u);
  return ExperimentError(one_line(file + ":" + std::to_string(line) + ": " + key + ": " + error.what()));
}

AlgorithmSpec algorithm_spec(const proto::Experiment& e) {
  const proto::Algorithm& a = e.algorithm();
  AlgorithmSpec spec{a.name(), a.compressor(), a.step_size(), a.batch(), e.clients().participation(), {}};
  for (const proto::Parameter& p : a.parameters()) spec.parameters.emplace_back(p.key(), p.value());
  return spec;
}

void set_algorithm(proto::Experiment& e, const AlgorithmSpec& spec) {
  proto::Algorithm& a = *e.mutable_algorithm();
  a.set_name(spec.name);
  a.set_compressor(spec.compressor);
  a.set_step_size(canonical_text(spec.step_size));
  a.set_batch(spec.batch);
  a.clear_parameters();
  for (const auto& [key, value] : spec.parameters) {
    proto::Parameter* p = a.add_parameters();
    p->set_key(key);
    p->set_value(canonical_text(value));
  }
  e.mutable_clients()->set_participation(spec.participation);
}

void map_paths(proto::Experiment& e,
               const std::function<std::filesystem::path(const std::filesystem::path&)>& f) {
  const auto mapped = [&](const std::string& text) {
    const auto start = path_start(text);
    return start ? text.substr(0, *start) + f(text.substr(*start)).string() : text;
  };
  e.mutable_problem()->set_data(mapped(e.problem().data()));
  e.mutable_problem()->set_test(mapped(e.problem().test()));
  e.mutable_run()->set_x0(mapped(e.run().x0()));
}

void make_paths_absolute(proto::Experiment& e, const std::filesystem::path& base) {
  map_paths(e, [&](const std::filesystem::path& path) {
    std::error_code error;
    const auto absolute = std::filesystem::absolute(base / path, error).lexically_normal();
    return !error && std::filesystem::exists(absolute, error) ? absolute : path;
  });
}

bool keep_mirrors(const proto::Experiment& e, bool over_network) {
  const std::string& mirrors = e.server().mirrors();
  return mirrors == "auto" ? over_network || e.faults().wiped() > 0 : mirrors == "true";
}

bool is_unrestorable(const proto::Experiment& e) {
  const ClientState state = find_method(e.algorithm().name()).facts.client_state;
  return has(state, ClientState::kPrivate) ||
         (has(state, ClientState::kMirrored) && !keep_mirrors(e, /*over_network=*/true));
}

bool survives_power(const proto::Experiment& e) {
  const std::string& durability = e.server().durability();
  return durability == "auto" ? is_unrestorable(e) : durability == "power";
}

std::span<const KeyHelp> experiment_keys() {
  static const std::vector<KeyHelp> keys = [] {
    std::vector<KeyHelp> all;
    for (const Field& f : experiment_fields())
      all.push_back({f.path(), f.expected(), f.fallback_text(), std::string(f.meaning)});
    return all;
  }();
  return keys;
}

}  // namespace gradwire
