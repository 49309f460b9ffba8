#include "simulation/prepare.h"

#include <algorithm>
#include <variant>

#include "base/config_error.h"
#include "base/value.h"
#include "config/make_plan.h"
#include "engine/problems/sources.h"
#include "engine/smoothness/estimate_smoothness.h"
#include "samples/local_problem.h"
#include "simulation/rank_scan.h"

namespace gradwire {
namespace {

// Returns true if the constants are quick to compute. Then they are reported even if no step size needs them.
// `stored` counts the nonzeros of all clients.
bool is_cheap(const SharedSamples& samples, double stored) {
  if (samples.made.part) return false;
  constexpr std::size_t kCheapNonzeros = 5'000'000;
  constexpr std::size_t kNonzerosPerClient = 1'000;  // equivalent of the fixed cost per client
  const std::size_t per_row = static_cast<std::size_t>(stored) / (samples.train.rows() + 1) + 1;
  std::size_t nonzeros = 0;
  for (std::uint32_t i = 0; i < samples.clients() && nonzeros <= kCheapNonzeros; ++i)
    nonzeros += samples.train_count(i) * per_row + kNonzerosPerClient;
  return nonzeros <= kCheapNonzeros;
}

double stored_by_all(const SharedSamples& samples, const OrderedScan& scan) {
  double stored = 0;
  scan({&stored, 1}, [&] {
    const auto own = static_cast<double>(samples.train.value.size());
    stored = samples.train_shares.is_drawn() ? own : stored + own;  // drawn rows are on all ranks
  });
  return stored;
}

Smoothness estimate(ProblemSpec problem, const SharedSamples& samples, const OrderedScan& scan,
                    RunPlan& plan) {
  // Keep activations exactly: differences of rounded gradients would show curvatures that the objective does
  // not have.
  std::visit(
      [](auto& kind) {
        if constexpr (requires { kind.activations; }) kind.activations.kept = KeptActivations::kExact;
      },
      problem.problem);
  Smoothness s = estimate_smoothness(*make_client_objectives<double>(problem, plan.schema, samples),
                                     plan.weights, plan.x0, plan.experiment.seed, scan);
  plan.warnings.push_back(
      "kind " + std::string(problem.info().name) +
      " has no closed-form constants: theory uses estimates, L = " + rounded_text(s.L, 4) +
      " and L_max = " + rounded_text(s.L_max(), 4) +
      ", the largest curvatures found near x0; if the run diverges, use a smaller multiple, as "
      "in \"theory*0.5\"");
  return s;
}

std::optional<Smoothness> constants(const ProblemSpec& problem, const SharedSamples& samples,
                                    const OrderedScan& scan, RunPlan& plan) {
  if (!problem.info().has_smoothness)
    return plan.needed.smoothness.empty() ? std::nullopt
                                          : std::optional(estimate(problem, samples, scan, plan));
  const bool is_needed = plan.needed.any() || plan.experiment.run.monitor;
  if (!is_needed && !is_cheap(samples, stored_by_all(samples, scan))) return std::nullopt;
  if (samples.made.part)
    throw DataError(
        "the constants of synthetic data that are not stored need all rows at once; set "
        "algorithm.step_size (and other settings that are \"theory\") to a number, or use fewer samples");
  const std::uint32_t end = std::min(samples.clients(), scan.end);
  try {
    return smoothness(problem, plan.schema, samples.parts(std::min(scan.first, end), end), plan.weights,
                      scan);
  } catch (const DataError& error) {
    if (is_needed || scan.run) throw;  // the other ranks fail as well
    plan.warnings.push_back("the smoothness constants are unknown: " + std::string(error.what()));
    return std::nullopt;
  }
}

ClientsData clients_data(const ProblemSpec& problem, const SharedSamples& samples) {
  ClientsData data;
  data.schema = schema_of(samples, problem);
  for (std::uint32_t i = 0; i < samples.clients(); ++i) data.samples.push_back(samples.train_count(i));
  return data;
}

// Fits `schema`, that of the data at hand, to the schema of a model. The model's training data may have had
// more columns, labels or letters. Throws DataError if the data have letters that the model does not know, or
// unknown labels and a different number of labels. If labels are unknown but equal in number, keeps those of
// the data, matched to those of the model in ascending order, and returns a warning. Otherwise returns "".
std::string fit_to(DataSchema& schema, const DataSchema& model) {
  schema.columns = std::max(schema.columns, model.columns);
  if (unite_alphabets(model.alphabet, schema.alphabet) != model.alphabet)
    throw DataError("the data have letters that the training data of the model lacked");
  schema.alphabet = model.alphabet;
  const bool is_known = std::ranges::includes(model.labels, schema.labels);
  const std::string difference = "the labels of the data (" + count_and_list(schema.labels) +
                                 ") are not those of the model's training (" + count_and_list(model.labels) +
                                 ")";
  if (!is_known && schema.labels.size() != model.labels.size())
    throw DataError(difference + "; use the same names");
  if (is_known) schema.labels = model.labels;
  return is_known ? "" : difference + "; they are matched in ascending order";
}

}  // namespace

RunPlan plan_on(const LoadedExperiment& loaded, const ProblemSpec& problem, const SharedSamples& samples,
                std::optional<Smoothness>& known) {
  ClientsData data = clients_data(problem, samples);
  data.smoothness = [&](RunPlan& plan) -> std::optional<Smoothness> {
    if (known) return known;
    std::optional<Smoothness> found =
        constants(problem, samples, ordered_scan_of(nullptr, problem.clients), plan);
    if (problem.info().has_smoothness) known = found;  // else they are estimates near this run's start
    return found;
  };
  RunPlan plan = make_plan(loaded, data);
  plan.warnings.insert(plan.warnings.begin(), samples.warnings.begin(), samples.warnings.end());
  return plan;
}

ClientLatency client_latency(const LoadedExperiment& loaded) {
  try {
    ClientLatency seconds = parse_client_latency(loaded.experiment.clients.latency);
    read_traces(seconds, loaded.folder(), loaded.experiment.clients.count);
    return seconds;
  } catch (const ConfigError& error) {
    throw locate(loaded, error);
  }
}

Prepared prepare(const LoadedExperiment& loaded, Ranks* ranks, const DataSchema* model,
                 const Preprocessing& given) {
  Prepared p;
  p.problem = problem_spec(loaded.experiment);
  const OrderedScan scan = ordered_scan_of(ranks, p.problem.clients);
  p.data = load_samples(loaded.experiment, loaded.folder(),
                        ranks == nullptr ? std::nullopt : std::optional(ClientRange{scan.first, scan.end}),
                        {}, given);
  p.preprocessing = p.data.preprocessing();
  ClientsData data = clients_data(p.problem, p.data);
  if (model != nullptr)
    if (std::string warning = fit_to(data.schema, *model); !warning.empty())
      p.data.warnings.push_back(std::move(warning));
  data.smoothness = [&](RunPlan& plan) {
    none_has_failed(ranks);
    return constants(p.problem, p.data, scan, plan);
  };
  static_cast<RunPlan&>(p) = make_plan(loaded, data);
  p.warnings.insert(p.warnings.begin(), p.data.warnings.begin(), p.data.warnings.end());
  p.seconds = client_latency(loaded);
  return p;
}

}  // namespace gradwire
