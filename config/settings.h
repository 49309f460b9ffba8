// An experiment as it travels and is kept: every key with its value as text.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/experiment.h"

namespace gradwire {

// "problem.context" and "8". Equal experiments have equal settings.
using Settings = std::vector<std::pair<std::string, std::string>>;
Settings settings_of(const Experiment& experiment);
// Throws ConfigError where a setting is unknown, repeated or out of range, or where they do not fit together.
Experiment experiment_of(const Settings& settings);

// A serialised wire.Experiment. Errors say which setting cannot be used.
std::string pack_experiment(const Experiment& experiment);
Result<Experiment> unpack_experiment(std::string_view bytes);

// "KEY = VALUE" of the first setting of `now` that differs from `before` and may not change from one process
// of a run to the next; empty: there is none.
std::string first_difference(const Experiment& now, const Experiment& before);
// Gives `to` the settings of `from` that may change. REQUIRES: first_difference(from, to) is empty.
void copy_what_may_change(const Experiment& from, Experiment& to);

}  // namespace gradwire
