// Constants of a run that follow from its experiment and from what the clients said: the same in a simulation
// and in a server that sees no data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "engine/problems/problem.h"
#include "rounds/round_loop.h"

namespace gradwire {

struct Experiment;

// run.x0, shape (d): zeros, normal (standard, a function of the seed), model, or file:PATH with PATH relative
// to `base`. Of a file all numbers are finite, in the experiment's precision too. Throws
// ConfigError("run.x0").
std::vector<double> start_point(const Experiment& experiment, const DataSchema& schema,
                                const std::filesystem::path& base);

// clients.weights: the shares of the samples, shape (n); empty for equal weights.
std::vector<double> client_weights(const Experiment& experiment,
                                   std::span<const std::uint64_t> sample_counts);

// [run] and [server].
// `over_network`: of a server that was started by itself.
RoundLimits round_limits(const Experiment& experiment, bool over_network);

}  // namespace gradwire
