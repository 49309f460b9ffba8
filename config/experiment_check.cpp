#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithms.h"
#include "base/config_error.h"
#include "base/suggest.h"
#include "config/client_latency.h"
#include "config/experiment_spec.h"
#include "config/known_keys.h"

namespace gradwire {
namespace {

constexpr std::size_t kLongestName = 100;

std::string quote(std::string_view word) { return "'" + std::string(word) + "'"; }

// Checks each value against its constraints, and that all required keys are given.
void check_values(ExperimentSpec& e) {
  const std::string of_kind = "required for kind " + quote(problem_type_name(e));
  for (const KeySection& section : sections_of(e))
    for (const Field& field : section.fields) {
      const std::string path = section.path(field.key);
      field.set(path, field.get());
      if (!field.constraints.required.empty() && is_nothing(field.get()))
        throw ConfigError(path, of_kind + std::string(field.constraints.required));
    }
}

void check_partition(const ExperimentSpec& e) {
  const bool by_label =
      e.clients.partition == PartitionKind::kByLabel || e.clients.partition == PartitionKind::kDirichlet;
  const auto text = text_reading(e.problem);
  if (by_label && text && text->form == TextForm::kRunning)
    throw ConfigError("clients.partition",
                      "partition " +
                          quote(words_of(e.clients.partition)[static_cast<int>(e.clients.partition)]) +
                          " has no meaning for kind " + quote(problem_type_name(e)) +
                          ", whose samples have a label at each position; use contiguous or iid");
  if (e.clients.partition == PartitionKind::kBySpeaker && !text)
    throw ConfigError("clients.partition", "partition 'by_role' has no meaning for kind " +
                                               quote(problem_type_name(e)) +
                                               ", which reads no text; use iid");
  if (e.clients.samples_per_client == 0) return;
  if (sources_of(e.problem) == nullptr)
    throw ConfigError("clients.samples_per_client", "kind " + quote(problem_type_name(e)) +
                                                        " has no samples; leave samples_per_client out");
  if (e.clients.partition != PartitionKind::kContiguous)
    throw ConfigError("clients.samples_per_client",
                      "partition and samples_per_client exclude each other: samples are divided or drawn; "
                      "leave one of them out");
}

// Checks clients.replication and clients.placement.
void check_replication(const ExperimentSpec& e) {
  const ClientsSection& c = e.clients;
  if (c.replication == 1) return;
  const std::string key = "clients.replication", of = "replication = " + std::to_string(c.replication);
  if (sources_of(e.problem) == nullptr)
    throw ConfigError(
        key, "kind " + quote(problem_type_name(e)) + " has no samples to copy; write replication = 1");
  if (c.partition == PartitionKind::kDirichlet || c.samples_per_client > 0)
    throw ConfigError(key, of + " needs parts of one size: partition contiguous, iid or by_label, and no "
                                "samples_per_client");
  if (c.replication > c.count)
    throw ConfigError(key, of + " is more than there are clients (" + std::to_string(c.count) + ")");
  if (c.placement == ReplicaPlacement::kGroups && c.count % c.replication != 0)
    throw ConfigError(key, of + " does not divide the " + std::to_string(c.count) +
                               " clients into groups; change one of them, or write placement = \"ring\"");
}

// Throws if the algorithm has no name, and blames a key that means it.
void check_algorithm_name(const ExperimentSpec& e) {
  if (!e.algorithm.name.empty()) return;
  for (const auto& [key, value] : e.algorithm.parameters)
    if (key_of_word(key) == "algorithm.name")
      throw ConfigError("algorithm." + key,
                        "unknown key " + quote(key) + " in [algorithm]; did you mean 'name'?");
  throw ConfigError("algorithm.name",
                    "required: an algorithm, as in name = \"ef21\"; gradwire list names all");
}

// Finds errors that check_algorithm() misses: a key that is given twice, and keys of other sections.
void check_parameters(ExperimentSpec& e) {
  const std::vector<ParameterHelp>& own = find_algorithm(e.algorithm.name).parameters;
  const std::vector<KeySection> sections = sections_of(e);
  std::vector<std::string> seen;
  for (const auto& [key, value] : e.algorithm.parameters) {
    const std::string path = "algorithm." + key;
    const auto find_in = [&key = key](const KeySection& section) {
      return std::find_if(section.fields.begin(), section.fields.end(), [&](const Field& field) {
        return field.key == key || field.constraints.old_key == key;
      });
    };
    const auto section = std::find_if(sections.begin(), sections.end(),
                                      [&](const KeySection& s) { return find_in(s) != s.fields.end(); });
    const bool is_field = section != sections.end();
    if (std::find(seen.begin(), seen.end(), key) != seen.end() || (is_field && section->name == "algorithm"))
      throw ConfigError(path, quote(key) + " is given twice");
    seen.push_back(key);
    check_printable(path, value);
    if (std::any_of(own.begin(), own.end(), [&key = key](const auto& p) { return p.name == key; })) continue;
    const std::string meant =
        is_field ? section->path(find_in(*section)->key) : key_of_word(key).value_or("");
    if (is_field || (!meant.empty() && !meant.starts_with("algorithm.")))
      throw ConfigError(path,
                        "unknown key " + quote(key) + " in [algorithm]; did you mean " + quote(meant) + "?");
  }
}

// Throws if the run needs something of the clients that have not joined when it begins.
void check_start_share(const ExperimentSpec& e, const AlgorithmTraits& traits) {
  if (e.server.start_share == 1) return;
  const std::string key = "server.start_share", share = number_text(e.server.start_share);
  const std::string of = "the run begins with a share of " + share + " of the clients, ";
  const ProblemInfo& problem = info_of(e.problem);
  if (traits.needs_all_replies)
    throw ConfigError(key,
                      std::string(traits.name) + " needs the replies of all clients: start_share must be 1");
  if (e.server.quorum >= e.server.start_share)
    throw ConfigError(key, of + "so server.quorum must be below it, not " + number_text(e.server.quorum));
  if (e.clients.weights != Weighting::kEqual)
    throw ConfigError(key, of + "but weights = \"samples\" needs the samples of all; write clients.weights = "
                                "\"equal\"");
  if (const NeededConstants needed = needed_constants(algorithm_spec(e)); needed.any())
    throw ConfigError(key, of + "but " + (needed.smoothness.empty() ? needed.convexity : needed.smoothness) +
                               " from theory needs constants of all; give a number");
  const RowsData* const rows = rows_of(e.problem);
  if (rows != nullptr && needs_sums(rows->normalize))
    throw ConfigError(key, of + "but problem.normalize needs sums over the data of all");
  if (problem.needs_data() && (problem.is_network || rows == nullptr))
    throw ConfigError(key, of + "but the classes or letters of kind " + quote(problem.name) +
                               " follow from the data of all; start_share must be 1");
  if (rows != nullptr && rows->dim == 0)
    throw ConfigError(key, of + "but the number of features follows from the data of all; give problem.dim");
}

void check_server(const ExperimentSpec& e, const AlgorithmTraits& traits) {
  const std::string needs_all = std::string(traits.name) + " needs the replies of all clients asked: ";
  if (traits.needs_all_replies && e.server.quorum < 1)
    throw ConfigError("server.quorum", needs_all + "quorum must be 1, not " + number_text(e.server.quorum));
  check_start_share(e, traits);
  if (e.server.overlap && e.server.zstd != "off")
    throw ConfigError("server.overlap",
                      "overlap sends values before zstd could see them all: set server.zstd to \"off\", or "
                      "overlap to false");
  if (e.server.norm_limit > 0 && e.server.norm_action == NormAction::kHalve && !may_halve(traits))
    throw ConfigError("server.norm_action",
                      "clients of " + std::string(traits.name) +
                          " keep state that follows what they sent, which the server must not change: "
                          "norm_action must be \"reject\" or \"warn\"");
  if (e.server.over_selection == 0) return;
  const std::string key = "server.over_selection";
  if (traits.needs_all_replies) throw ConfigError(key, needs_all + "over_selection must be 0");
  if (e.clients.participation == 1)
    throw ConfigError(
        key,
        "over_selection needs clients.participation below 1" +
            std::string(traits.partial ? "" : ", which " + std::string(traits.name) + " has not") +
            ": at 1 a round already asks all clients; lower server.quorum to continue without the slowest");
}

// Rejects settings that make no sense for asynchronous algorithms or on the virtual clock.
void check_asynchronous(const ExperimentSpec& e, const AlgorithmTraits& traits) {
  const std::string name(traits.name);
  if (e.faults.shuffle && (traits.asynchronous || !e.clients.latency.empty()))
    throw ConfigError(
        "faults.shuffle",
        "shuffle has no effect on the virtual clock: clients.latency gives the order of replies");
  if (!traits.asynchronous) return;
  if (e.server.over_selection > 0)
    throw ConfigError("server.over_selection", name + " has no rounds to shorten: over_selection must be 0");
  if (e.clients.weights != Weighting::kEqual)
    throw ConfigError("clients.weights",
                      name + " uses each reply as it arrives, from any client: weights must be equal");
}

void check_faults(const ExperimentSpec& e, const AlgorithmTraits& traits) {
  const std::string name(traits.name);
  if (has(traits.client_state, ClientState::kPrivate)) {
    const std::string why = "a client of " + name + " keeps state that the server cannot restore: ";
    if (e.faults.state_loss > 0) throw ConfigError("faults.state_loss", why + "state_loss must be 0");
    if (e.faults.crashes > 0) throw ConfigError("faults.crashes", why + "crashes must be 0");
  }
  const std::string fault = e.faults.state_loss > 0 ? "state_loss" : "crashes";
  if (e.faults.state_loss == 0 && e.faults.crashes == 0) return;
  if (has(traits.client_state, ClientState::kMirrored) && e.server.client_state_replicas == "false")
    throw ConfigError("server.client_state_replicas",
                      "faults." + fault + " above 0 needs replicas: only they restore the clients of " +
                          name + "; write client_state_replicas = \"auto\"");
}

// Checks the keys that end a run at an evaluation.
void check_ends(const ExperimentSpec& e) {
  if (e.run.evaluate_every == 0) {
    const std::pair<const char*, bool> keys[] = {{"stop_at_grad_norm_sq", e.run.stop_at_grad_norm_sq > 0},
                                                 {"stop_at_loss", e.run.stop_at_loss.value.has_value()},
                                                 {"stop_at_accuracy", e.run.stop_at_accuracy > 0},
                                                 {"patience", e.run.patience > 0}};
    for (const auto& [key, is_set] : keys)
      if (is_set)
        throw ConfigError(
            "run." + std::string(key),
            std::string(key) + " needs evaluations, but evaluate_every is 0; set it to 1 or more");
  }
  if (e.run.stop_at_accuracy > 0 && !e.evaluation.accuracy)
    throw ConfigError("evaluation.accuracy",
                      "stop_at_accuracy needs the accuracy in every row: accuracy must be true");
}

}  // namespace

bool TextCodec<LossTarget>::read(std::string_view text, LossTarget& out) {
  if (text == "none") {
    out.value.reset();
    return true;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return false;
  out.value = value;
  return true;
}
std::string TextCodec<LossTarget>::write(const LossTarget& target) {
  return target.value ? number_text(*target.value) : "none";
}

void check_name(const std::string& path, const std::string& name) {
  if (name.empty() || name.front() == '.' || name.find_first_of("/\\") != std::string::npos ||
      name.size() > kLongestName)
    throw ConfigError(path, "name " + describe(name) +
                                " is not a valid folder name: use no slashes, no leading dot, and 1 to " +
                                std::to_string(kLongestName) + " characters");
}

void check_x0(const std::string& path, const std::string& x0) {
  if (x0.empty() || x0 == "zeros" || x0 == "normal" || x0 == "model") return;
  if (x0.starts_with("file:") && x0.size() > 5) return;
  throw ConfigError(path,
                    "unknown x0 " + describe(x0) + suggest(x0, {"zeros", "normal", "model", "file:PATH"}));
}

void check_latency(const std::string& /*path*/, const std::string& latency) {
  (void)parse_client_latency(latency);
}

void check_experiment(const ExperimentSpec& experiment) {
  ExperimentSpec e = experiment;
  check_algorithm_name(e);
  check_values(e);
  check_problem(e.problem);
  check_partition(e);
  check_replication(e);
  check_ends(e);
  if (e.run.stop_at_grad_norm_sq > 0 && grad_norm_rows(e, /*over_network=*/true) != GradNorm::kEvery)
    throw ConfigError("evaluation.grad_norm",
                      "stop_at_grad_norm_sq needs the gradient norm in every row: grad_norm must be "
                      "\"every\" or \"auto\"");
  check_parameters(e);
  check_algorithm(algorithm_spec(e));
  const AlgorithmTraits& traits = find_algorithm(e.algorithm.name).traits;
  const ProblemInfo& problem = info_of(e.problem);
  if (traits.needs_hessian && !problem.has_smoothness && !problem.brings_functions)
    throw ConfigError("algorithm.name", e.algorithm.name + " needs Hessians in closed form, and kind " +
                                            quote(problem_type_name(e)) +
                                            " has none; use quadratic, least_squares or logistic");
  check_asynchronous(e, traits);
  check_server(e, traits);
  check_faults(e, traits);
}

}  // namespace gradwire
