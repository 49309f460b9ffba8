// An experiment as data, and its TOML file (docs/experiment_file.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/support/spec.h"
#include "base/config_error.h"
#include "proto/config/experiment.pb.h"
#include "proto/config/experiment_check.h"

namespace gradwire {

// The file, or a --set, cannot be used. what() is the whole line: "FILE:LINE: message" or "--set a.b:
// message".
class ExperimentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr std::size_t kMaxExperimentBytes = 1 << 20;

struct LoadedExperiment {
  proto::Experiment experiment;  // complete and checked
  std::filesystem::path file;    // as it was given
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

// An experiment in which every key has its default: not usable before the required ones are set.
proto::Experiment default_experiment();

// A file that reads back to the same message: keys in the order of the table, numbers in the shortest form
// that is exact. REQUIRES: check_experiment() passes.
std::string to_toml(const proto::Experiment& experiment);

// [algorithm] and clients.participation. Numbers are respelled in their shortest exact form.
AlgorithmSpec algorithm_spec(const proto::Experiment& experiment);
void set_algorithm(proto::Experiment& experiment, const AlgorithmSpec& spec);

// Replaces each path (of problem.data, problem.test, run.x0) by f(path).
void map_paths(proto::Experiment& experiment,
               const std::function<std::filesystem::path(const std::filesystem::path&)>& f);
// Makes a copy of the file work in another folder: a path that exists beside `base` becomes absolute; other
// paths stay as they are and are looked up in $GRADWIRE_DATA.
void make_paths_absolute(proto::Experiment& experiment, const std::filesystem::path& base);

// server.mirrors, with "auto" decided. `over_network`: clients are processes of their own.
bool keep_mirrors(const proto::Experiment& experiment, bool over_network);

// Whether clients keep some state that nobody can give back to them once server and clients disagree.
bool is_unrestorable(const proto::Experiment& experiment);
// server.durability, with "auto" decided: whether a committed round is to survive a loss of power.
bool survives_power(const proto::Experiment& experiment);

// Adds file and line of the key to an error that was found later, e.g. by resolve().
ExperimentError locate(const LoadedExperiment& loaded, const ConfigError& error);

struct KeyHelp {
  std::string key, type, fallback, meaning;
};
// All keys but the methods' own parameters, sections together.
std::span<const KeyHelp> experiment_keys();

}  // namespace gradwire
