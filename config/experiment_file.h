// The TOML file of an experiment (docs/reference/experiment_file.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/experiment_spec.h"
#include "gradwire/bad_input.h"

namespace gradwire {

// The error of a file or a --set that cannot be used. what() is the whole line: "FILE:LINE: message" or
// "--set a.b: message".
class ExperimentError : public BadInput {
 public:
  using BadInput::BadInput;
};

struct TomlEntry;

inline constexpr std::size_t kMaxExperimentBytes = 1 << 20;

struct LoadedExperiment {
  ExperimentSpec experiment;   // complete and checked
  std::filesystem::path file;  // as the user gave it
  // The line of each key ("problem.kind") and section ("problem"); kFromSet if the key comes from --set.
  std::map<std::string, std::uint32_t> lines;
  static constexpr std::uint32_t kFromSet = 0;
  // The words that --set used in place of a key's current path, by that path: old names, and words of
  // key_of_word().
  std::map<std::string, std::string> typed_sets;
  // A warning for each old name of a key or word in the file and in --set (config/renamed_keys.h). Programs
  // that read the user's file print them.
  std::vector<std::string> warnings;

  // Returns the folder that paths in the experiment are relative to.
  std::filesystem::path folder() const;
};

// Read and check an experiment: the file, or the shipped experiment of that name if there is no such file.
// `overrides` are the arguments of --set, "a.b=v", or "b=v" if only one key ends so. v is read as a TOML
// value, or as a string if it is none. Throw ExperimentError.
LoadedExperiment load_experiment(const std::filesystem::path& file,
                                 std::span<const std::string> overrides = {});
// Reads the experiment of a server, which opens no data: problem.data may be absent.
LoadedExperiment load_server_experiment(const std::filesystem::path& file,
                                        std::span<const std::string> overrides);
LoadedExperiment parse_experiment(std::string_view toml, const std::filesystem::path& name_for_errors,
                                  std::span<const std::string> overrides = {});

// Reads an experiment for a command that replaces its algorithm. The compressor need not fit the algorithm.
// If the algorithm does not fit otherwise, its name is empty and its parameters are left out; its compressor,
// batch and participation remain. Throws ExperimentError.
LoadedExperiment load_problem(const std::filesystem::path& file, std::span<const std::string> overrides);

// Returns the experiment with gd, which runs on every problem, in place of its algorithm.
LoadedExperiment with_gd(LoadedExperiment loaded, const std::string& step_size);

// Reads one run of a file with a [sweep]; the other functions reject such files. `chosen` has the keys of
// this run, under their current names, with values and lines in the file. `overrides` are applied last.
// Throws ExperimentError.
inline constexpr const char* kSweepSection = "sweep";
LoadedExperiment parse_run_of_sweep(std::string_view toml, const std::filesystem::path& name_for_errors,
                                    std::span<const TomlEntry> chosen,
                                    std::span<const std::string> overrides);

// Returns the text of a file, or of a shipped experiment. Throws ExperimentError.
std::string read_experiment_text(const std::filesystem::path& file);
// Returns the key in an argument of --set, under its current name.
std::string key_of_override(std::string_view override_text);

// Adds the file and line of the key to an error that was found later, for example by resolve().
ExperimentError locate(const LoadedExperiment& loaded, const ConfigError& error);
// Removes the place from such an error, "--set " or FILE:LINE.
std::string without_place(std::string_view text, const std::string& file);

// Replaces each path (in problem.data, problem.test, run.x0 and clients.latency) with f(path).
void map_paths(ExperimentSpec& experiment,
               const std::function<std::filesystem::path(const std::filesystem::path&)>& f);
// Makes a copy of the file work in another folder. A path that exists relative to `base` becomes absolute;
// other paths do not change, and are searched for in $GRADWIRE_DATA.
void make_paths_absolute(ExperimentSpec& experiment, const std::filesystem::path& base);

}  // namespace gradwire
