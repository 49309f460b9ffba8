#include "fl_server/agreed.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <span>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

#include "algorithms/methods.h"
#include "proto/config/experiment_file.h"
#include "proto/config/settings.h"
#include "proto/config/start_point.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

constexpr double kVectorsOfAServer = 3;  // vectors as long as the model that every method needs at least

Agreement agreement_of(const ClientTable& table) {
  Agreement agreement;
  for (ClientId client = 0; client < table.size(); ++client) {
    const ClientInfo& info = table.info(client);
    agreement.columns = std::max<std::size_t>(agreement.columns, info.columns);
    std::vector<double> merged;
    std::set_union(agreement.labels.begin(), agreement.labels.end(), info.labels.begin(), info.labels.end(),
                   std::back_inserter(merged));
    agreement.labels = std::move(merged);
    agreement.alphabet = unite_alphabets(agreement.alphabet, info.alphabet);
  }
  return agreement;
}

// Nothing when a client does not know its constants.
std::optional<Smoothness> smoothness_of(const ProblemSpec& spec, const ClientTable& table,
                                        std::span<const double> weights) {
  std::vector<ClientSmoothness> clients;
  for (ClientId client = 0; client < table.size(); ++client) {
    const ClientInfo& info = table.info(client);
    if (!info.smoothness) return std::nullopt;
    // If a client says nothing about its samples, each of them may have up to L_i times their number.
    const double worst = *info.smoothness * static_cast<double>(info.sample_count);
    clients.push_back({.L_i = *info.smoothness,
                       .mu_i = info.convexity.value_or(0),
                       .L_s = info.sample_smoothness.value_or(worst),
                       .L_sample_max = info.sample_smoothness_max.value_or(worst)});
  }
  return smoothness_from_clients(spec, clients, weights);
}

// Sets all that depends on the clients' data.
void see_data(Agreed& agreed, const ProblemSpec& spec, const ClientTable& table) {
  agreed.agreement = agreement_of(table);
  check_agreement(spec, agreed.agreement);
  agreed.d = model_dim(spec, agreed.agreement);
  std::vector<std::uint64_t> samples;
  for (ClientId client = 0; client < table.size(); ++client)
    samples.push_back(table.info(client).sample_count);
  if (spec.kind().needs_data() && std::count(samples.begin(), samples.end(), 0u) > 0)
    throw DataError("client " +
                    std::to_string(std::find(samples.begin(), samples.end(), 0u) - samples.begin()) +
                    " has no samples");
  agreed.samples = std::max<std::uint64_t>(std::accumulate(samples.begin(), samples.end(), std::uint64_t{0}),
                                           spec.clients);
  agreed.weights = client_weights(agreed.experiment, samples);
}

void see_algorithm(Agreed& agreed, const AlgorithmSpec& resolved) {
  const std::uint32_t n = agreed.theory().n;
  agreed.quality =
      quality(uplink_compressor(resolved, agreed.d, n), compressed_dim(resolved.name, agreed.d), n);
}

// The memory that this process may use, as far as the system tells: of the machine, its control group, its
// own limit.
double memory_bytes() {
  double bytes = HUGE_VAL;
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) bytes = static_cast<double>(pages) * static_cast<double>(page_bytes);
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, static_cast<double>(limit.rlim_cur));
  std::ifstream group("/sys/fs/cgroup/memory.max");  // "max" is no number
  if (double most = 0; group >> most) bytes = std::min(bytes, most);
  return bytes;
}

}  // namespace

NeededConstants constants_to_ask(const LoadedExperiment& loaded) {
  const ProblemSpec spec = problem_spec(loaded.experiment);
  const NeededConstants needed = needed_constants(algorithm_spec(loaded.experiment), spec.clients);
  const bool closed_form = spec.kind().has_smoothness;
  const std::string kind = "kind " + std::string(spec.kind().name);
  if (!needed.smoothness.empty() && !closed_form)
    throw locate(loaded, ConfigError(needed.smoothness,
                                     kind + " has no closed-form smoothness constants, so no client can tell "
                                            "its own; give a number, as `gradwire run` estimates it from all "
                                            "data"));
  if (!needed.convexity.empty() && (!closed_form || !(known_convexity(spec) > 0)))
    throw locate(loaded,
                 ConfigError(needed.convexity,
                             "theory needs strong convexity, and this problem (" + kind +
                                 ") is not known to have it before all data are at one place; give a number, "
                                 "or use regularizer = \"l2\" with logistic or least_squares"));
  return needed;
}

Status check_client(const ClientInfo& info, const Experiment& experiment) {
  const ProblemSpec spec = problem_spec(experiment);
  const std::string data = "its data has " + std::to_string(info.columns) + " columns, ";
  const RowsData* const rows = rows_of(spec.problem);
  if (rows != nullptr && rows->dim > 0 && info.columns > rows->dim)
    return Error{data + "but problem.dim is " + std::to_string(rows->dim) + "; is it the right data?"};
  std::size_t d = 0;
  try {
    d = model_dim(spec, {info.columns, info.labels, info.alphabet});
  } catch (const std::exception&) {
    return Unit{};  // it may fit the data of the others; agree() says what does not
  }
  const double real_bytes = experiment.precision == Precision::kFp32 ? sizeof(float) : sizeof(double);
  if (kVectorsOfAServer * real_bytes * static_cast<double>(d) <= memory_bytes()) return Unit{};
  return Error{data + "which make a model of " + std::to_string(d) +
               " parameters, and the server has no memory for it; is it the right data?"};
}

Agreed agree(const LoadedExperiment& loaded, const ClientTable& table) {
  Agreed agreed;
  agreed.experiment = loaded.experiment;
  const ProblemSpec spec = problem_spec(agreed.experiment);
  try {
    see_data(agreed, spec, table);
    agreed.x0 = start_point(agreed.experiment, agreed.agreement, loaded.folder());
    const AlgorithmSpec asked = algorithm_spec(agreed.experiment);
    agreed.needed = needed_constants(asked, spec.clients);
    if (agreed.needed.any()) agreed.smoothness = smoothness_of(spec, table, agreed.weights);
    const AlgorithmSpec resolved = resolve(asked, agreed.theory(), agreed.warnings);
    set_algorithm(agreed.experiment, resolved);
    see_algorithm(agreed, resolved);
  } catch (const ConfigError& error) {
    throw locate(loaded, error);
  }
  make_paths_absolute(agreed.experiment, loaded.folder());
  if (is_unrestorable(agreed.experiment) && !survives_power(agreed.experiment))
    agreed.warnings.push_back("server.durability = \"process\": what the clients of " +
                              agreed.experiment.algorithm.name +
                              " know nobody can give back to them here, so a loss of power at the server or "
                              "a client may end the run "
                              "for good; \"power\" or \"auto\" prevents that");
  return agreed;
}

Agreed agreed_before(const Experiment& asked, const Experiment& resolved, const ClientTable& table) {
  Agreed agreed;
  agreed.experiment = resolved;
  const ProblemSpec spec = problem_spec(resolved);
  see_data(agreed, spec, table);
  agreed.x0.resize(agreed.d);
  agreed.needed = needed_constants(algorithm_spec(asked), spec.clients);
  if (agreed.needed.any()) agreed.smoothness = smoothness_of(spec, table, agreed.weights);
  see_algorithm(agreed, algorithm_spec(resolved));
  return agreed;
}

std::string start_frame(const Agreed& agreed, std::uint64_t run) {
  wire::Start start;
  start.set_dim(static_cast<std::uint32_t>(agreed.d));
  start.set_columns(static_cast<std::uint32_t>(agreed.agreement.columns));
  start.mutable_labels()->Assign(agreed.agreement.labels.begin(), agreed.agreement.labels.end());
  if (!agreed.agreement.alphabet.empty()) start.set_alphabet(agreed.agreement.alphabet);
  start.set_clients(agreed.experiment.clients.count);
  start.set_experiment(pack_experiment(agreed.experiment));
  start.set_first_ticket(1);
  start.set_run(run);
  return control_frame(FrameType::kStart, start);
}

std::uint64_t run_of(const std::string& start_frame) {
  wire::Start start;
  const auto frame = std::as_bytes(std::span(start_frame));
  if (frame.size() < kPrefixBytes || !parse_control(frame.subspan(kPrefixBytes), start)) return 0;
  return start.run();
}

}  // namespace gradwire
