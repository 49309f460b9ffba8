#include "simulation/prepare.h"

#include <algorithm>
#include <variant>

#include "algorithms/algorithms.h"
#include "base/config_error.h"
#include "base/value.h"
#include "config/make_plan.h"
#include "engine/problems/sources.h"
#include "engine/smoothness/estimate_smoothness.h"
#include "samples/local_problem.h"
#include "simulation/checked_objectives.h"
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

// Returns the functions whose constants are estimated. Activations are kept exactly: differences of rounded
// gradients would show curvatures that the objective does not have.
std::shared_ptr<const ClientObjectives<double>> exact_functions(ProblemSpec problem, const DataSchema& schema,
                                                                const SharedSamples& samples) {
  std::visit(
      [](auto& kind) {
        if constexpr (requires { kind.activations; }) kind.activations.kept = KeptActivations::kExact;
      },
      problem.problem);
  return make_client_objectives<double>(problem, schema, samples);
}

Smoothness estimate(const ProblemSpec& problem, std::shared_ptr<const ClientObjectives<double>> functions,
                    const std::function<void()>& before_gradient, const OrderedScan& scan, RunPlan& plan) {
  Smoothness s = estimate_smoothness(*checked(std::move(functions), before_gradient), plan.weights, plan.x0,
                                     plan.experiment.seed, scan);
  plan.warnings.push_back(
      "kind " + std::string(problem.info().name) +
      " has no closed-form constants: theory uses estimates, L = " + rounded_text(s.L, 4) +
      " and L_max = " + rounded_text(s.L_max(), 4) +
      ", the largest curvatures found near x0; if the run diverges, use a smaller multiple, as "
      "in \"theory*0.5\"");
  return s;
}

std::optional<Smoothness> constants(const ProblemSpec& problem, const SharedSamples& samples,
                                    const std::function<void()>& before_gradient, const OrderedScan& scan,
                                    RunPlan& plan) {
  if (!problem.info().has_smoothness)
    return plan.needed.smoothness.empty()
               ? std::nullopt
               : std::optional(estimate(problem, exact_functions(problem, plan.schema, samples),
                                        before_gradient, scan, plan));
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
  check_feature_names(schema.feature_names, model.feature_names);
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

// Returns `rest` with these L_i and the bounds that follow from them.
Smoothness smoothness_of(const std::vector<double>& L_i, Smoothness rest, const RunPlan& plan) {
  rest.L_i = L_i;
  rest.weights = plan.weights;
  rest.L = rest.L_avg();
  rest.exact = rest.estimated = false;
  rest.L_s = std::max(rest.L_s, rest.L_tilde());
  rest.L_sample_max = std::max(rest.L_sample_max, rest.L_max());
  return rest;
}

// Returns the constants of the functions that a program brings. Throws ConfigError.
std::optional<Smoothness> constants_of(const Brought& brought, const ProblemSpec& problem,
                                       const OrderedScan& scan, RunPlan& plan) {
  if (plan.needed.smoothness.empty()) return std::nullopt;
  const bool has_batches = plan.samples > plan.n();  // gradients of samples have constants of their own
  if (!brought.smoothness.empty() && !has_batches) return smoothness_of(brought.smoothness, {}, plan);
  if (brought.functions.fp64 == nullptr)
    throw ConfigError(plan.needed.smoothness,
                      "theory needs the constants of the functions, and they are estimated in double alone; "
                      "give a number, or functions of double");
  Smoothness s = estimate(problem, brought.functions.fp64, brought.before_gradient, scan, plan);
  return brought.smoothness.empty() ? s : smoothness_of(brought.smoothness, std::move(s), plan);
}

// Returns the numbers of the clients' samples, and checks that the functions fit the experiment. Throws
// ConfigError.
std::vector<std::uint64_t> samples_of(const Functions& functions, const LoadedExperiment& loaded,
                                      std::size_t d) {
  const bool is_fp32 = loaded.experiment.precision == Precision::kFp32;
  if (is_fp32 ? !functions.fp32 && functions.fp64 : !functions.fp64 && functions.fp32)
    throw ConfigError("precision", is_fp32
                                       ? "precision is \"fp32\", but the program brings functions of double"
                                       : "precision is \"fp64\", but the program brings functions of float");
  const auto samples = [&]<class Real>(const ClientObjectives<Real>* all) {
    if (all == nullptr)
      throw ConfigError("problem.kind",
                        "'custom' needs a program that brings the functions of its clients (docs/api.md)");
    if (all->clients() != loaded.experiment.clients.count)
      throw ConfigError("clients.count", "count is " + std::to_string(loaded.experiment.clients.count) +
                                             ", but the program brings the functions of " +
                                             std::to_string(all->clients()) + " clients");
    std::vector<std::uint64_t> counts;
    for (std::uint32_t i = 0; i < all->clients(); ++i) counts.push_back(all->sample_count(i));
    const auto oracle = all->oracle();
    for (std::uint32_t i = 0; i < all->clients(); ++i) {
      oracle->bind(i);
      if (oracle->dim() != d)
        throw ConfigError("problem.dim", "dim is " + std::to_string(d) + ", but the function of client " +
                                             std::to_string(i) + " has dimension " +
                                             std::to_string(oracle->dim()));
      if (counts[i] == 0)
        throw ConfigError("problem.kind", "the function of client " + std::to_string(i) + " has no samples");
    }
    return counts;
  };
  return is_fp32 ? samples(functions.fp32.get()) : samples(functions.fp64.get());
}

// Throws ConfigError if the algorithm needs Hessians and the functions of a program have none.
void check_hessians(const Functions& functions, const RunPlan& plan) {
  const std::string& name = plan.experiment.algorithm.name;
  if (!find_algorithm(name).traits.needs_hessian) return;
  const auto check = [&]<class Real>(const ClientObjectives<Real>& all) {
    const std::vector<Real> x(plan.x0.begin(), plan.x0.end());
    std::vector<Real> upper(upper_size(x.size()));
    if (!all.oracle()->hessian(x, upper))
      throw ConfigError("algorithm.name",
                        name + " needs Hessians, and the function of client 0 has none; implement hessian()");
  };
  functions.fp64 != nullptr ? check(*functions.fp64) : check(*functions.fp32);
}

}  // namespace

RunPlan plan_on(const LoadedExperiment& loaded, const ProblemSpec& problem, const SharedSamples& samples,
                std::optional<Smoothness>& known, const std::vector<double>& x0) {
  ClientsData data = clients_data(problem, samples);
  data.x0 = x0;
  data.smoothness = [&](RunPlan& plan) -> std::optional<Smoothness> {
    if (known) return known;
    std::optional<Smoothness> found =
        constants(problem, samples, {}, ordered_scan_of(nullptr, problem.clients), plan);
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

void check_feature_names(std::span<const std::string> data, std::span<const std::string> model) {
  const auto [here, there] = std::ranges::mismatch(data, model);
  if (here == data.end() || there == model.end()) return;
  throw DataError("the data have the feature " + describe(*here) + " where the model's training data had " +
                  describe(*there) +
                  "; give them the same columns in the same order, or name the features in problem.columns");
}

Prepared prepare(const LoadedExperiment& loaded, Ranks* ranks, const DataSchema* model,
                 const Preprocessing& given, const Brought& brought) {
  Prepared p;
  p.problem = problem_spec(loaded.experiment);
  const OrderedScan scan = ordered_scan_of(ranks, p.problem.clients);
  p.data = load_samples(loaded.experiment, loaded.folder(),
                        ranks == nullptr ? std::nullopt : std::optional(ClientRange{scan.first, scan.end}),
                        brought.reading, given);
  p.preprocessing = p.data.preprocessing();
  ClientsData data = clients_data(p.problem, p.data);
  const bool is_brought = p.problem.info().brings_functions;
  if (!is_brought && (brought.functions.fp32 != nullptr || brought.functions.fp64 != nullptr))
    throw locate(loaded,
                 ConfigError("problem.kind", "the kind '" + std::string(p.problem.info().name) +
                                                 "' has functions of its own; kind = \"custom\" takes "
                                                 "those of the program"));
  if (is_brought) {
    try {
      data.samples = samples_of(brought.functions, loaded, model_dim(p.problem, data.schema));
    } catch (const ConfigError& error) {
      throw locate(loaded, error);
    }
    p.functions = brought.functions;
  }
  data.x0 = brought.x0;
  p.before_gradient = brought.before_gradient;
  p.has_parts_of_program =
      is_brought || !brought.x0.empty() || loaded.experiment.algorithm.name == kCustomName;
  if (model != nullptr)
    if (std::string warning = fit_to(data.schema, *model); !warning.empty())
      p.data.warnings.push_back(std::move(warning));
  data.smoothness = [&](RunPlan& plan) {
    none_has_failed(ranks);
    return is_brought ? constants_of(brought, p.problem, scan, plan)
                      : constants(p.problem, p.data, brought.before_gradient, scan, plan);
  };
  static_cast<RunPlan&>(p) = make_plan(loaded, data);
  try {
    if (is_brought) check_hessians(p.functions, p);
  } catch (const ConfigError& error) {
    throw locate(loaded, error);
  }
  p.warnings.insert(p.warnings.begin(), p.data.warnings.begin(), p.data.warnings.end());
  p.seconds = client_latency(loaded);
  return p;
}

}  // namespace gradwire
