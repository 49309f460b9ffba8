#include "config/run_plan.h"

#include <type_traits>
#include <utility>

#include "algorithms/algorithms.h"

namespace gradwire {

Theory RunPlan::theory() const {
  return {.n = n(),
          .d = d,
          .compressor = constants,
          .smoothness = smoothness ? &*smoothness : nullptr,
          .samples = samples,
          .rounds = experiment.run.rounds,
          .weights = weights,
          .quorum = experiment.server.quorum,
          .replication = {experiment.clients.replication, experiment.clients.placement},
          .has_equal_clients =
              n() == 1 || experiment.clients.replication == n() || has_equal_clients(experiment.problem)};
}

std::optional<std::uint32_t> theory_delay(const RunPlan& plan) {
  const std::string& step = plan.asked.algorithm.step_size;
  if (!step.empty() && !step.starts_with("theory")) return std::nullopt;
  for (const auto& [key, value] : plan.experiment.algorithm.parameters)
    if (key == "max_delay") return static_cast<std::uint32_t>(std::stoul(value));
  return std::nullopt;
}

void see_schema(RunPlan& plan) {
  const ProblemSpec spec = problem_spec(plan.experiment);
  check_schema(spec, plan.schema);
  plan.d = model_dim(spec, plan.schema);
}

void see_compressor(RunPlan& plan) {
  const AlgorithmSpec spec = algorithm_spec(plan.experiment);
  plan.constants =
      constants(uplink_compressor(spec, plan.d, plan.n()), compressed_dim(spec.name, plan.d), plan.n());
}

RunPlan plan_of_start(ExperimentSpec resolved, DataSchema schema) {
  RunPlan plan;
  plan.experiment = std::move(resolved);
  plan.schema = std::move(schema);
  see_schema(plan);
  return plan;
}

template <class Real>
std::shared_ptr<RunContext<Real>> make_run_context(const RunPlan& plan, Role role, ForRanges ranges) {
  auto run_context = std::make_shared<RunContext<Real>>();
  run_context->seed = plan.experiment.seed;
  run_context->n = plan.n();
  run_context->d = plan.d;
  run_context->x0.assign(plan.x0.begin(), plan.x0.end());
  run_context->algorithm = algorithm_spec(plan.experiment);
  if constexpr (std::is_same_v<Real, float>)
    run_context->custom_algorithm = plan.experiment.algorithm.custom_fp32;
  else
    run_context->custom_algorithm = plan.experiment.algorithm.custom_fp64;
  run_context->compressor = uplink_compressor(run_context->algorithm, plan.d, plan.n());
  run_context->weights = plan.weights;
  run_context->replication = {plan.experiment.clients.replication, plan.experiment.clients.placement};
  run_context->counts_correct = plan.experiment.evaluation.accuracy;
  run_context->keep_client_state_replicas =
      role != Role::kClient && keep_client_state_replicas(plan.experiment, role == Role::kServer);
  run_context->ranges = std::move(ranges);
  return run_context;
}

template std::shared_ptr<RunContext<float>> make_run_context(const RunPlan&, Role, ForRanges);
template std::shared_ptr<RunContext<double>> make_run_context(const RunPlan&, Role, ForRanges);

}  // namespace gradwire
