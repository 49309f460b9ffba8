#include "experiments/simulate/prepare.h"

#include "base/value.h"
#include "engine/smoothness/estimate_smoothness.h"
#include "fl_client/local_problem.h"
#include "proto/config/make_plan.h"

namespace gradwire {
namespace {

// The constants are reported even when no step size needs them, unless computing them takes long.
bool is_cheap(const SharedSamples& samples) {
  if (samples.made.part) return false;
  constexpr std::size_t kCheapNonzeros = 5'000'000;
  constexpr std::size_t kNonzerosPerClient = 1'000;  // that cost as much as what is computed once per client
  std::size_t nonzeros = 0;
  for (std::uint32_t i = 0; i < samples.clients() && nonzeros <= kCheapNonzeros; ++i)
    nonzeros += samples.train_count(i) * (samples.train.value.size() / (samples.train.rows() + 1) + 1) +
                kNonzerosPerClient;
  return nonzeros <= kCheapNonzeros;
}

Smoothness estimate(const ProblemSpec& problem, const SharedSamples& samples, RunPlan& plan) {
  Smoothness s = estimate_smoothness(*make_population<double>(problem, plan.agreement, samples), plan.weights,
                                     plan.x0, plan.experiment.seed);
  plan.warnings.push_back(
      "kind " + std::string(problem.kind().name) +
      " has no closed-form constants: theory uses estimates, L = " + number_text(s.L) +
      " and L_max = " + number_text(s.L_max()) +
      ", the largest curvatures met near x0; if the run diverges, take a smaller multiple, as "
      "in \"theory*0.5\"");
  return s;
}

std::optional<Smoothness> constants(const ProblemSpec& problem, const SharedSamples& samples, RunPlan& plan) {
  if (!problem.kind().has_smoothness)
    return plan.needed.smoothness.empty() ? std::nullopt : std::optional(estimate(problem, samples, plan));
  if (!plan.needed.any() && !is_cheap(samples)) return std::nullopt;
  if (samples.made.part)
    throw DataError(
        "the constants of synthetic data that are not stored would take all rows at once; give "
        "algorithm.step_size (and what else theory would choose) as a number, or fewer samples");
  return smoothness(problem, plan.agreement, samples.all_parts(), plan.weights);
}

}  // namespace

Prepared prepare(const LoadedExperiment& loaded) {
  Prepared p;
  p.problem = problem_spec(loaded.experiment);
  p.data = load_samples(loaded.experiment, loaded.folder());
  ClientsData data;
  data.agreement = agreement_of(p.data, p.problem);
  for (std::uint32_t i = 0; i < p.data.clients(); ++i) data.samples.push_back(p.data.train_count(i));
  data.smoothness = [&p](RunPlan& plan) { return constants(p.problem, p.data, plan); };
  static_cast<RunPlan&>(p) = make_plan(loaded, data);
  return p;
}

}  // namespace gradwire
