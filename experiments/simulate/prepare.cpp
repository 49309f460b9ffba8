#include "experiments/simulate/prepare.h"

#include "base/value.h"
#include "engine/smoothness/estimate_smoothness.h"
#include "fl_client/local_problem.h"
#include "proto/config/make_plan.h"

namespace gradwire {
namespace {

// The constants are reported even when no step size needs them, unless computing them takes seconds.
bool is_cheap(const std::vector<Part>& parts) {
  constexpr std::size_t kCheapNonzeros = 5'000'000;
  std::size_t nonzeros = 0;
  for (const Part& part : parts) nonzeros += part.train.value.size();
  return nonzeros <= kCheapNonzeros;
}

Smoothness estimate(const ProblemSpec& problem, const std::vector<Part>& parts, RunPlan& plan) {
  Smoothness s = estimate_smoothness(make_oracles<double>(problem, plan.agreement, parts), plan.weights,
                                     plan.x0, plan.experiment.seed);
  plan.warnings.push_back(
      "kind " + std::string(problem.kind().name) +
      " has no closed-form constants: theory uses estimates, L = " + number_text(s.L) +
      " and L_max = " + number_text(s.L_max()) +
      ", the largest curvatures met near x0; if the run diverges, take a smaller multiple, as "
      "in \"theory*0.5\"");
  return s;
}

std::optional<Smoothness> constants(const ProblemSpec& problem, const std::vector<Part>& parts,
                                    RunPlan& plan) {
  if (!problem.kind().has_smoothness)
    return plan.needed.smoothness.empty() ? std::nullopt : std::optional(estimate(problem, parts, plan));
  if (!plan.needed.any() && !is_cheap(parts)) return std::nullopt;
  return smoothness(problem, plan.agreement, parts, plan.weights);
}

}  // namespace

Prepared prepare(const LoadedExperiment& loaded) {
  Prepared p;
  p.problem = problem_spec(loaded.experiment);
  p.parts = load_parts(loaded.experiment, loaded.folder());
  ClientsData data;
  data.agreement = agreement_of(p.parts, p.problem);
  for (const Part& part : p.parts) data.samples.push_back(part.train_count());
  data.smoothness = [&p](RunPlan& plan) { return constants(p.problem, p.parts, plan); };
  static_cast<RunPlan&>(p) = make_plan(loaded, data);
  return p;
}

}  // namespace gradwire
