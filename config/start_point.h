// Constants of a run that follow from its experiment and the reports of its clients. They are the same in a
// simulation and in a server, which sees no data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "config/sections.h"
#include "engine/problems/problem.h"
#include "rounds/round_loop.h"

namespace gradwire {

struct ExperimentSpec;

// Returns the point that run.x0 names, shape (d): zeros, standard normal numbers (a function of the seed),
// the initial parameters of the model, or those of file:PATH, with PATH relative to `base`. Rejects files
// with numbers that are not finite in the experiment's precision. Throws ConfigError("run.x0").
std::vector<double> start_point(const ExperimentSpec& experiment, const DataSchema& schema,
                                const std::filesystem::path& base);

// Returns a start point that a program gives in place of run.x0. Throws ConfigError("run.x0") if its length
// is not d, or if it has numbers that are not finite in that precision.
std::vector<double> checked_start_point(std::vector<double> x0, std::size_t d, Precision precision);

// Returns clients.weights: the shares of the samples, shape (n), or an empty vector for equal weights.
std::vector<double> client_weights(const ExperimentSpec& experiment,
                                   std::span<const std::uint64_t> sample_counts);

// Returns the limits in [run], [evaluation] and [server]. `over_network` is true for a gradwire-server that
// the user started.
RoundLimits round_limits(const ExperimentSpec& experiment, bool over_network);

}  // namespace gradwire
