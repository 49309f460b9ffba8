#include "config/make_plan.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "algorithms/algorithms.h"
#include "base/config_error.h"
#include "compressors/scaled_entries.h"
#include "config/idle_keys.h"
#include "config/start_point.h"

namespace gradwire {
namespace {

// Sets everything that depends on the clients' data, except the constants.
void see_data(RunPlan& plan, const ClientsData& data) {
  plan.schema = data.schema;
  see_schema(plan);
  const auto none = std::find(data.samples.begin(), data.samples.end(), 0u);
  if (info_of(plan.experiment.problem).needs_data() && !data.lacks_clients && none != data.samples.end())
    throw DataError("client " + std::to_string(none - data.samples.begin()) + " has no samples");
  // A function without data counts as one sample.
  plan.samples = std::max<std::uint64_t>(
      std::accumulate(data.samples.begin(), data.samples.end(), std::uint64_t{0}), plan.n());
  if (client_metrics(plan.experiment) != ClientMetrics::kNone) plan.client_samples = data.samples;
  plan.weights = client_weights(plan.experiment, data.samples);
}

// Warns about problem.activation_dtype. The check is here, because a server does not receive warnings of
// clients.
void see_activations(RunPlan& plan) {
  const ProblemSpec spec = problem_spec(plan.experiment);
  std::string warning = plan.experiment.precision == Precision::kFp32
                            ? check_activations<float>(spec, plan.schema)
                            : check_activations<double>(spec, plan.schema);
  if (!warning.empty()) plan.warnings.push_back(std::move(warning));
}

void see_overlap(RunPlan& plan) {
  const AlgorithmSpec spec = algorithm_spec(plan.experiment);
  if (!plan.experiment.server.overlap || (find_algorithm(spec.name).traits.shows_early &&
                                          sends_scaled_entries(uplink_compressor(spec, plan.d, plan.n()))))
    return;
  std::string able;
  for (const AlgorithmInfo& algorithm : all_algorithms())
    if (algorithm.traits.shows_early) able += (able.empty() ? "" : ", ") + std::string(algorithm.traits.name);
  plan.warnings.push_back("server.overlap = true has no effect: clients of " + spec.name + " with " +
                          spec.compressor + " compute the whole reply before they send it; it works for " +
                          able + " with identity, randk, randseqk or permk");
}

void see_backprop_fraction(RunPlan& plan) {
  if (backprop_fraction_of(algorithm_spec(plan.experiment)) < 1 &&
      !has_random_paths(problem_spec(plan.experiment), plan.schema))
    plan.warnings.push_back(
        "algorithm.backprop_fraction has no effect: it needs a network with 48 or more units in a layer that "
        "does not read features");
}

// Throws if the experiment asks for an algorithm that the program does not bring.
void see_custom_algorithm(const ExperimentSpec& e) {
  const bool is_fp32 = e.precision == Precision::kFp32;
  const auto& of = e.algorithm;
  if (e.algorithm.name != kCustomName || (is_fp32 ? of.custom_fp32 != nullptr : of.custom_fp64 != nullptr))
    return;
  throw ConfigError("algorithm.name",
                    "'custom' needs a program that brings the algorithm, in the precision " +
                        std::string(is_fp32 ? "fp32" : "fp64") + " of the run (docs/api.md)");
}

// Throws if L is so small that theory has no step size, which is about 1 / L.
void see_curvature(const RunPlan& plan) {
  constexpr double kSmallest = 1e-290;
  if (plan.needed.smoothness.empty() || !plan.smoothness || plan.smoothness->L > kSmallest ||
      plan.smoothness->L_max() > kSmallest)
    return;
  throw ConfigError(
      plan.needed.smoothness,
      "theory has no step size if L = 0: f has no curvature, as when all features are 0; check the data, or "
      "give a number");
}

}  // namespace

RunPlan make_plan(const LoadedExperiment& loaded, const ClientsData& data) {
  RunPlan plan;
  plan.experiment = loaded.experiment;
  plan.warnings = idle_keys(loaded);
  if (std::string warning = unused_test(loaded.experiment); !warning.empty())
    plan.warnings.push_back(std::move(warning));
  try {
    see_custom_algorithm(plan.experiment);
    see_data(plan, data);
    see_activations(plan);
    plan.x0 = data.x0.empty() ? start_point(plan.experiment, plan.schema, loaded.folder())
                              : checked_start_point(data.x0, plan.d, plan.experiment.precision);
    const AlgorithmSpec asked = algorithm_spec(plan.experiment);
    plan.needed = needed_constants(asked);
    plan.smoothness = data.smoothness(plan);
    see_curvature(plan);
    set_algorithm(plan.experiment, resolve(asked, plan.theory(), plan.warnings));
    see_compressor(plan);
    see_overlap(plan);
    see_backprop_fraction(plan);
    if (!has_minimum(plan.experiment.problem))
      plan.warnings.push_back(
          "problem.lambda = 0: f has no minimum, and the loss falls without bound; give lambda above 0");
  } catch (const ConfigError& error) {
    throw locate(loaded, error);
  }
  plan.asked = loaded.experiment;
  make_paths_absolute(plan.asked, loaded.folder());
  make_paths_absolute(plan.experiment, loaded.folder());
  return plan;
}

RunPlan make_plan_again(ExperimentSpec asked, ExperimentSpec resolved, const ClientsData& data) {
  RunPlan plan;
  plan.asked = std::move(asked);
  plan.experiment = std::move(resolved);
  see_data(plan, data);
  plan.x0.resize(plan.d);
  plan.needed = needed_constants(algorithm_spec(plan.asked));
  plan.smoothness = data.smoothness(plan);
  see_compressor(plan);
  return plan;
}

}  // namespace gradwire
