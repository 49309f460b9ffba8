// The TOML file of an experiment (docs/experiment_file.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/bad_input.h"
#include "config/experiment.h"

namespace gradwire {

// The file, or a --set, cannot be used. what() is the whole line: "FILE:LINE: message" or "--set a.b:
// message".
class ExperimentError : public BadInput {
 public:
  using BadInput::BadInput;
};

struct TomlEntry;

inline constexpr std::size_t kMaxExperimentBytes = 1 << 20;

struct LoadedExperiment {
  Experiment experiment;       // complete and checked
  std::filesystem::path file;  // as it was given
  // Where each key ("problem.kind") and section ("problem") stands; kFromSet: it comes from --set.
  std::map<std::string, std::uint32_t> lines;
  static constexpr std::uint32_t kFromSet = 0;

  // What the paths in the experiment are relative to.
  std::filesystem::path folder() const;
};

// Reads and checks. `overrides` are the arguments of --set, "a.b=v": v is a TOML value, or else a string.
// Throws ExperimentError.
LoadedExperiment load_experiment(const std::filesystem::path& file,
                                 std::span<const std::string> overrides = {});
LoadedExperiment parse_experiment(std::string_view toml, const std::filesystem::path& name_for_errors,
                                  std::span<const std::string> overrides = {});

// One run of a file with a [sweep], which other readers refuse: `chosen` are the keys and values of this run,
// each with its line of the file. `overrides` come last. Throws ExperimentError.
inline constexpr const char* kSweepSection = "sweep";
LoadedExperiment parse_run_of_sweep(std::string_view toml, const std::filesystem::path& name_for_errors,
                                    std::span<const TomlEntry> chosen,
                                    std::span<const std::string> overrides);

// The text of a file. Throws ExperimentError.
std::string read_experiment_text(const std::filesystem::path& file);
// The key that an argument of --set names.
std::string key_of_override(std::string_view override_text);

// Adds file and line of the key to an error that was found later, e.g. by resolve().
ExperimentError locate(const LoadedExperiment& loaded, const ConfigError& error);

// Replaces each path (of problem.data, problem.test, run.x0) by f(path).
void map_paths(Experiment& experiment,
               const std::function<std::filesystem::path(const std::filesystem::path&)>& f);
// Makes a copy of the file work in another folder: a path that exists beside `base` becomes absolute; other
// paths stay as they are and are looked up in $GRADWIRE_DATA.
void make_paths_absolute(Experiment& experiment, const std::filesystem::path& base);

}  // namespace gradwire
