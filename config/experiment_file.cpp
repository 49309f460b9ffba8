#include "config/experiment_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "base/suggest.h"
#include "config/client_latency.h"
#include "config/known_keys.h"
#include "config/renamed_entries.h"
#include "config/renamed_keys.h"
#include "config/shipped_experiments.h"
#include "config/toml_reader.h"

namespace gradwire {
namespace {

constexpr std::size_t kLongestMessage = 500;

// Returns `text` as a single line. Escapes control characters, which a key or a value may contain.
std::string one_line(const std::string& text) { return printable(text, kLongestMessage); }

// Returns "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t k = 0; k < words.size(); ++k)
    text += (k == 0 ? "" : k + 1 == words.size() ? " and " : ", ") + words[k];
  return text;
}

// ---- reading ----

void set_parameter(Options& parameters, const std::string& key, const Value& value) {
  if (std::holds_alternative<OtherValue>(value) || std::holds_alternative<std::vector<std::int64_t>>(value))
    throw ConfigError("algorithm." + key,
                      key + " must be a number, a string, true or false, not " + describe(value));
  const auto at =
      std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.first == key; });
  if (at == parameters.end()) {
    parameters.emplace_back(key, text_of(value));
  } else {
    at->second = text_of(value);
  }
}

// Returns whether the last value of the key turns it off. The problem type does not have the key.
bool is_taken_back(const TomlEntry& entry, const std::vector<TomlEntry>& entries) {
  const auto last = std::find_if(entries.rbegin(), entries.rend(), [&](const TomlEntry& other) {
    return other.section == entry.section && other.key == entry.key;
  });
  return is_nothing(last->value);
}

// Returns whether a later --set replaces the value. The old value may then not fit the other keys.
bool is_replaced(const TomlEntry& entry, const std::vector<TomlEntry>& entries) {
  const auto after = entries.begin() + (&entry - entries.data()) + 1;
  return std::any_of(after, entries.end(), [&](const TomlEntry& other) {
    return !other.is_header && other.section == entry.section && other.key == entry.key;
  });
}

bool is_list(const Value& value) {
  if (const auto* const other = std::get_if<OtherValue>(&value)) return other->is_list;
  const auto* const text = std::get_if<std::string>(&value);
  return std::holds_alternative<std::vector<std::int64_t>>(value) ||
         (text != nullptr && text->find(',') != std::string::npos);
}

// Sets a field. A list where a number is expected is a sweep.
void set_field(const Field& field, const std::string& path, const Value& value) {
  const Value now = field.get();
  const bool is_number = std::holds_alternative<std::int64_t>(now) || std::holds_alternative<double>(now);
  try {
    field.set(path, value);
  } catch (const ConfigError& error) {
    if (!is_number || !is_list(value)) throw;
    throw ConfigError(error.key(), std::string(error.what()) + "; several values are a sweep: " +
                                       (path == "seed" ? "gradwire compare FILE --seeds N, or " : "") + path +
                                       " = [...] in [sweep], and gradwire sweep");
  }
}

// Applies one of `entries`. REQUIRES: check_known() passes, and the problem type is set.
void apply(ExperimentSpec& e, const TomlEntry& entry, const std::vector<TomlEntry>& entries) {
  const std::string path = path_of(entry.section, entry.key);
  if (entry.is_header || path == "problem.kind" || is_replaced(entry, entries)) return;
  for (const KeySection& section : sections_of(e)) {
    if (section.name != entry.section) continue;
    for (const Field& field : section.fields)
      if (field.key == entry.key) return set_field(field, path, entry.value);
  }
  if (entry.section == "algorithm") return set_parameter(e.algorithm.parameters, entry.key, entry.value);
  if (!is_taken_back(entry, entries))
    throw ConfigError(path, entry.key + " is a key of " + listed(find_key(entry.section, entry.key)->kinds) +
                                ", not kind '" + std::string(problem_type_name(e)) + "'");
}

// Reads "a.b=v", or "b=v" if key_of_word() knows b. A text key takes v literally if v is not a TOML string:
// --set name=7.
TomlEntry read_override(const std::string& text, LoadedExperiment& loaded) {
  const std::size_t equals = text.find('=');
  const std::string typed = text.substr(0, equals);
  if (equals == std::string::npos || typed.empty())
    throw ExperimentError("--set " + one_line(text) + ": write it as KEY=VALUE, as in run.rounds=100");
  const std::string path = key_of_word(typed).value_or(typed), spelled = text.substr(equals + 1);
  TomlEntry entry;
  const std::size_t dot = path.find('.');
  if (dot != std::string::npos) entry.section = path.substr(0, dot);
  entry.key = dot == std::string::npos ? path : path.substr(dot + 1);
  entry.value = read_toml_value(spelled).value_or(spelled);
  use_current_names(entry, "--set ", loaded.warnings);
  const std::string current = path_of(entry.section, entry.key);
  loaded.typed_sets.erase(current);
  if (current != typed) loaded.typed_sets[current] = typed;
  const KnownKey* known = find_key(entry.section, entry.key);
  if (known != nullptr && known->takes_any_text && !std::holds_alternative<std::string>(entry.value))
    entry.value = spelled;
  return entry;
}

// Sets the problem type that the last entry for problem.kind names.
void choose_problem_type(ExperimentSpec& e, const std::vector<TomlEntry>& entries) {
  std::string kind;
  const Field field = problem_type_field(kind);
  for (const TomlEntry& entry : entries)
    if (entry.section == "problem" && entry.key == "kind") field.set("problem.kind", entry.value);
  if (kind.empty()) throw ConfigError("problem.kind", "required: " + field.expected());
  e.problem = problem_of(kind);
}

void fill_in(LoadedExperiment& loaded) {
  if (SampleSource* const source = sources_of(loaded.experiment.problem)) {
    source->data = full_source(source->data);
    source->test = full_source(source->test);
  }
  ExperimentSpec& e = loaded.experiment;
  if (loaded.lines.count("name") == 0) e.name = loaded.file.stem().string();
  if (e.run.x0.empty()) e.run.x0 = info_of(e.problem).is_network ? "model" : "zeros";
  bool plain = false, weighted = false;
  for (const Field& field : problem_fields(e.problem)) {
    plain |= field.key == "regularizer" && is_nothing(field.get());
    weighted |= field.key == "lambda" && !is_nothing(field.get());
  }
  if (plain && weighted && loaded.lines.count("problem.regularizer") == 0)
    throw ConfigError("problem.lambda", "lambda has no effect without regularizer = \"l2\" or \"nonconvex\"");
}

// Returns "; did you mean 'NAME'?" if a TOML file in the same folder or a shipped experiment has nearly the
// name of the file, else "".
std::string name_like(const std::filesystem::path& file) {
  std::vector<std::string> names;
  std::error_code error;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".toml") names.push_back(at->path().filename().string());
  if (std::string near = did_you_mean(file.filename().string(), names); !near.empty()) return near;
  if (const std::string own = file.filename().string() + ".toml";
      std::find(names.begin(), names.end(), own) != names.end())
    return "; did you mean '" + own + "'?";
  names.clear();
  for (const ShippedExperiment& shipped : shipped_experiments()) names.emplace_back(shipped.name);
  return did_you_mean(file.stem().string(), names);
}

}  // namespace

std::string read_experiment_text(const std::filesystem::path& file) {
  const std::string name = file.string();
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  const ShippedExperiment* const shipped = find_shipped(name);
  if (shipped != nullptr && !std::filesystem::is_regular_file(status)) return std::string(shipped->toml);
  if (!std::filesystem::exists(status))
    throw ExperimentError(one_line(name + ": no such file" + name_like(file)));
  if (std::filesystem::is_directory(status))
    throw ExperimentError(one_line(name + ": is a folder; name the experiment file in it"));
  for (const char* const ending : {".csv", ".tsv", ".svm", ".libsvm", ".npy", ".npz"})
    if (file.extension() == ending)
      throw ExperimentError(one_line(name + ": is data, not an experiment; make one with gradwire new " +
                                     file.stem().string() + " --data " + name));
  std::ifstream in(file, std::ios::binary);
  std::string text(kMaxExperimentBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad())
    throw ExperimentError(one_line(name + ": cannot be read: " + std::strerror(errno)));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxExperimentBytes)
    throw ExperimentError(one_line(name + ": is larger than 1 MB; an experiment file is a page of TOML"));
  return text;
}

namespace {

// Returns where the path begins, after "SCHEME:", or nullopt if `text` has no path.
std::optional<std::size_t> path_start(const std::string& text) {
  for (const std::string_view scheme : {"libsvm:", "csv:", "npz:", "idx:", "text:", "file:"})
    if (text.starts_with(scheme)) return scheme.size();
  return std::nullopt;
}

// Makes a path of --set absolute if it exists in the working directory but not in `folder`.
void take_from_working_directory(TomlEntry& entry, const std::filesystem::path& folder) {
  std::string* const text = std::get_if<std::string>(&entry.value);
  if (text == nullptr) return;
  if (entry.section == "problem" && (entry.key == "data" || entry.key == "test")) *text = full_source(*text);
  const auto start = path_start(*text);
  if (!start || *start == text->size()) return;
  const std::filesystem::path path = text->substr(*start);
  std::error_code error;
  if (std::filesystem::exists(folder / path, error) || !std::filesystem::exists(path, error)) return;
  const auto absolute = std::filesystem::absolute(path, error).lexically_normal();
  if (!error) *text = text->substr(0, *start) + absolute.string();
}

}  // namespace

std::filesystem::path LoadedExperiment::folder() const {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

namespace {

bool is_valid(const ExperimentSpec& e) {
  try {
    check_experiment(e);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

void set_gd(ExperimentSpec& e, const std::string& step_size) {
  AlgorithmSpec gd;
  gd.name = "gd";
  gd.step_size = step_size;
  set_algorithm(e, gd);
}

// Checks an experiment whose algorithm is replaced, and removes an algorithm that does not fit. Its
// compressor need not fit.
void check_problem_of(ExperimentSpec& e) {
  try {
    check_experiment(e);
  } catch (const ConfigError& error) {
    ExperimentSpec of_gd = e, uncompressed = e;
    uncompressed.algorithm.compressor = "identity";
    if (error.key() == "algorithm.compressor" && is_valid(uncompressed)) return;
    set_gd(of_gd, "theory");
    if (!is_valid(of_gd)) throw;
    e.algorithm.name.clear();
    e.algorithm.parameters.clear();
  }
}

// Checks an experiment whose clients have data of their own, so that problem.data may be missing.
void check_without_data(ExperimentSpec& e) {
  if (rows_of(e.problem) != nullptr)
    if (std::string& data = sources_of(e.problem)->data; data.empty()) data = kGivenSource;
  check_experiment(e);
}

// Reads an experiment. `chosen` has the entries of one run of a [sweep]. It is null if the text may not have
// a [sweep].
LoadedExperiment parse(
    std::string_view toml, const std::filesystem::path& name_for_errors,
    const std::span<const TomlEntry>* chosen, std::span<const std::string> overrides,
    void (*check)(ExperimentSpec&) = [](ExperimentSpec& e) { check_experiment(e); }) {
  LoadedExperiment loaded;
  loaded.file = name_for_errors;
  const std::string name = name_for_errors.string();
  try {
    std::vector<TomlEntry> entries = read_toml(toml);
    use_current_names_in(entries, name, loaded.warnings);
    if (chosen != nullptr) {
      std::erase_if(entries, [](const TomlEntry& entry) { return entry.section == kSweepSection; });
      entries.insert(entries.end(), chosen->begin(), chosen->end());
    }
    if (entries.empty() && overrides.empty())
      throw ExperimentError(
          one_line(name + ":1: the file is empty; an experiment needs problem.kind and algorithm.name"));
    for (const TomlEntry& entry : entries) {
      loaded.lines[path_of(entry.section, entry.key)] = entry.line;
      check_known(entry);
    }
    for (const std::string& text : overrides) {
      entries.push_back(read_override(text, loaded));
      take_from_working_directory(entries.back(), loaded.folder());
      loaded.lines[path_of(entries.back().section, entries.back().key)] = LoadedExperiment::kFromSet;
      check_known(entries.back());
    }
    choose_problem_type(loaded.experiment, entries);
    for (const TomlEntry& entry : entries) apply(loaded.experiment, entry, entries);
    fill_in(loaded);
    check(loaded.experiment);
  } catch (const TomlError& error) {
    throw ExperimentError(one_line(name + ":" + std::to_string(error.line()) + ": " + error.what()));
  } catch (const ConfigError& error) {
    throw locate(loaded, error);
  }
  return loaded;
}

}  // namespace

LoadedExperiment load_experiment(const std::filesystem::path& file, std::span<const std::string> overrides) {
  return parse_experiment(read_experiment_text(file), file, overrides);
}

LoadedExperiment load_server_experiment(const std::filesystem::path& file,
                                        std::span<const std::string> overrides) {
  return parse(read_experiment_text(file), file, nullptr, overrides, check_without_data);
}

LoadedExperiment parse_experiment(std::string_view toml, const std::filesystem::path& name_for_errors,
                                  std::span<const std::string> overrides) {
  return parse(toml, name_for_errors, nullptr, overrides);
}

LoadedExperiment load_problem(const std::filesystem::path& file, std::span<const std::string> overrides) {
  return parse(read_experiment_text(file), file, nullptr, overrides, check_problem_of);
}

LoadedExperiment with_gd(LoadedExperiment loaded, const std::string& step_size) {
  set_gd(loaded.experiment, step_size);
  loaded.experiment.run.monitor = false;
  loaded.experiment.server.overlap = false;
  return loaded;
}

LoadedExperiment parse_run_of_sweep(std::string_view toml, const std::filesystem::path& name_for_errors,
                                    std::span<const TomlEntry> chosen,
                                    std::span<const std::string> overrides) {
  return parse(toml, name_for_errors, &chosen, overrides);
}

std::string key_of_override(std::string_view override_text) {
  const std::string typed(override_text.substr(0, override_text.find('=')));
  return current_path(key_of_word(typed).value_or(typed));
}

ExperimentError locate(const LoadedExperiment& loaded, const ConfigError& error) {
  const std::string& key = error.key();
  const std::string file = loaded.file.string();
  if (const auto at = loaded.lines.find(key); at != loaded.lines.end()) {
    if (at->second == LoadedExperiment::kFromSet) {
      const auto other = loaded.typed_sets.find(key);
      const std::string& typed = other == loaded.typed_sets.end() ? key : other->second;
      return ExperimentError(one_line("--set " + typed + ": " + error.what()));
    }
    return ExperimentError(one_line(file + ":" + std::to_string(at->second) + ": " + error.what()));
  }
  // The key has its default, or is missing: name it, and point at its section.
  const auto section = loaded.lines.find(key.substr(0, key.find('.')));
  const std::uint32_t line = section == loaded.lines.end() ? 1 : std::max(section->second, 1u);
  return ExperimentError(one_line(file + ":" + std::to_string(line) + ": " + key + ": " + error.what()));
}

std::string without_place(std::string_view text, const std::string& file) {
  if (text.starts_with("--set ")) text.remove_prefix(6);
  const std::size_t end = text.find_first_not_of("0123456789", file.size() + 1);
  if (text.starts_with(file + ":") && end != text.npos && text.substr(end).starts_with(": "))
    text.remove_prefix(end + 2);
  return std::string(text);
}

void map_paths(ExperimentSpec& e,
               const std::function<std::filesystem::path(const std::filesystem::path&)>& f) {
  const auto map = [&](std::string& text) {
    if (const auto start = path_start(text)) text = text.substr(0, *start) + f(text.substr(*start)).string();
  };
  if (SampleSource* const source = sources_of(e.problem)) {
    map(source->data);
    map(source->test);
  }
  map(e.run.x0);
  if (const std::string trace = parse_client_latency(e.clients.latency).trace; !trace.empty()) {
    std::string& latency = e.clients.latency;
    latency.replace(latency.find("file:") + 5, trace.size(), f(trace).string());
  }
}

void make_paths_absolute(ExperimentSpec& e, const std::filesystem::path& base) {
  map_paths(e, [&](const std::filesystem::path& path) {
    std::error_code error;
    const auto absolute = std::filesystem::absolute(base / path, error).lexically_normal();
    return !error && std::filesystem::exists(absolute, error) ? absolute : path;
  });
}

}  // namespace gradwire
