// An experiment on the wire and in state folders: every key with its value as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/experiment_spec.h"

namespace gradwire {

// Pairs such as "problem.context" and "8". Equal experiments have equal settings.
using Settings = std::vector<std::pair<std::string, std::string>>;
Settings settings_of(const ExperimentSpec& experiment, Names names = Names::kCurrent);
// Reads settings in either spelling. Throws ConfigError if a setting is unknown, repeated or out of range, or
// if settings do not fit together.
ExperimentSpec experiment_of(const Settings& settings);

// Write and read a serialized wire.Experiment. It has the old names of renamed keys and words, because peers
// and state folders of the previous version know only those. Errors name the setting that cannot be used.
std::string pack_experiment(const ExperimentSpec& experiment);
Result<ExperimentSpec> unpack_experiment(std::string_view bytes);

// The settings that first_difference() compares: those that may not change between two processes of a run, or
// all of them.
enum class Compared : std::uint8_t { kFixed, kAll };
// Returns how the first setting differs, as in "clients.count is 20 now and was 10". Empty if none does.
std::string first_difference(const ExperimentSpec& now, const ExperimentSpec& before,
                             Compared compared = Compared::kFixed);
// Gives `to` the settings of `from` that may change. REQUIRES: first_difference(from, to) is empty.
void copy_what_may_change(const ExperimentSpec& from, ExperimentSpec& to);

}  // namespace gradwire
