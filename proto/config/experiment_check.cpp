#include "proto/config/experiment_check.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/methods.h"
#include "base/config_error.h"
#include "proto/config/experiment.h"
#include "proto/config/experiment_fields.h"
#include "proto/config/problem_spec.h"

namespace gradwire {
namespace {

std::string quote(const std::string& word) { return "'" + word + "'"; }

void check_required(const proto::Experiment& e) {
  if (e.problem().kind().empty())
    throw ConfigError("problem.kind", "required: " + find_field("problem", "kind")->expected());
  if (e.algorithm().name().empty())
    throw ConfigError("algorithm.name", "required: a method, as in name = \"ef21\"; gradwire list names all");
}

bool is_text(const std::string& source) { return source.starts_with("text:"); }

// data, test and test_share against what the kind reads.
void check_data(const proto::Problem& p, const ProblemKind& kind) {
  const std::string name = "kind " + quote(p.kind());
  if (!kind.needs_data()) {
    if (!p.data().empty())
      throw ConfigError("problem.data", "data has no use: " + name + " is drawn from the seed");
    if (!p.test().empty()) throw ConfigError("problem.test", "test has no use: " + name + " has no accuracy");
    if (p.test_share() > 0)
      throw ConfigError("problem.test_share", "test_share has no use: " + name + " has no accuracy");
    return;
  }
  const bool text = kind.data == DataForm::kText;
  if (p.data().empty()) {
    throw ConfigError("problem.data", "required for " + name + ", as in data = " +
                                          (text ? "\"text:PATH\"" : "\"libsvm:PATH\" or \"digits\""));
  }
  for (const auto& [key, source] : {std::pair("data", p.data()), std::pair("test", p.test())}) {
    if (source.empty() || is_text(source) == text) continue;
    throw ConfigError("problem." + std::string(key),
                      text ? name + " reads text: write text:PATH, not " + quote(source)
                           : name + " needs labelled samples, but " + quote(source) +
                                 " is text; kinds that read text are char_mlp and gpt");
  }
  if (text && p.dim() > 0)
    throw ConfigError("problem.dim", "dim has no use for " + name + ", which reads text");
  if (!p.test().empty() && p.test_share() > 0)
    throw ConfigError("problem.test_share",
                      "test_share and test exclude each other: accuracy is measured on one of them");
}

// "a", "a and b", "a, b and c"
std::string kinds_text(const Field& field) {
  std::string text;
  for (std::size_t k = 0; k < field.kinds.size(); ++k)
    text += (k == 0 ? "" : k + 1 == field.kinds.size() ? " and " : ", ") + std::string(field.kinds[k].kind);
  return text;
}

void check_range_or_absence(const Field& field, const proto::Experiment& e) {
  const TomlValue value = field.get(e);
  if (field.kinds.empty() || field.of_kind(e.problem().kind()) != nullptr) {
    check_field(field, value);
  } else if (value != field.fallback) {
    throw ConfigError(field.path(), std::string(field.key) + " serves " + kinds_text(field) + ", not kind " +
                                        quote(e.problem().kind()));
  }
}

void check_network(const proto::Problem& p) {
  if (p.kind() == "char_mlp" && p.hidden().empty())
    throw ConfigError("problem.hidden",
                      "hidden needs a layer or more for kind 'char_mlp', as in hidden = [128]");
  if (p.kind() == "cnn" && p.filters().empty())
    throw ConfigError("problem.filters", "filters needs a convolution or more, as in filters = [6, 16]");
  if (p.kind() == "gpt" && p.width() % p.heads() != 0)
    throw ConfigError("problem.heads", "heads = " + std::to_string(p.heads()) +
                                           " does not divide width = " + std::to_string(p.width()));
}

void check_problem(const proto::Experiment& e) {
  const proto::Problem& p = e.problem();
  const bool quadratic = p.kind() == "quadratic";
  const bool convex_loss = p.kind() == "logistic" || p.kind() == "least_squares";
  if (quadratic && p.dim() == 0)
    throw ConfigError("problem.dim", "required for kind 'quadratic': the length of x, as in dim = 1000");
  check_data(p, find_problem_kind(p.kind()));
  if (!convex_loss && p.regularizer() != "none")
    throw ConfigError("problem.regularizer",
                      "regularizer serves logistic and least_squares, not kind " + quote(p.kind()));
  if (!convex_loss && !quadratic && p.lambda() > 0)
    throw ConfigError("problem.lambda", "lambda has no use for kind " + quote(p.kind()));
  check_network(p);
  if (!quadratic && p.heterogeneity() > 0)
    throw ConfigError("problem.heterogeneity", "heterogeneity serves quadratic, not kind " + quote(p.kind()));
  if (p.classes() == 1)
    throw ConfigError("problem.classes", "classes must be 0 (real labels) or 2 or more, not 1");
  const std::string& partition = e.clients().partition();
  if (p.kind() == "gpt" && (partition == "by_label" || partition == "dirichlet"))
    throw ConfigError("clients.partition",
                      "partition " + quote(partition) +
                          " has no meaning for kind 'gpt', whose samples have a label at each "
                          "position; use contiguous or iid");
}

// Finds what check_algorithm() misses: it takes the first of two equal keys, and cannot name keys of other
// sections.
void check_parameters(const proto::Algorithm& a) {
  const std::vector<ParameterHelp>& own = find_method(a.name()).parameters;
  std::vector<std::string> seen;
  for (const proto::Parameter& parameter : a.parameters()) {
    const std::string& key = parameter.key();
    const std::string path = "algorithm." + key;
    if (std::find(seen.begin(), seen.end(), key) != seen.end() || find_field("algorithm", key) != nullptr)
      throw ConfigError(path, quote(key) + " is given twice");
    seen.push_back(key);
    check_printable(path, parameter.value());
    if (std::any_of(own.begin(), own.end(), [&](const ParameterHelp& p) { return p.name == key; })) continue;
    for (const Field& field : experiment_fields())
      if (field.key == key)
        throw ConfigError(
            path, "unknown key " + quote(key) + " in [algorithm]; did you mean " + quote(field.path()) + "?");
  }
}

void check_server(const proto::Experiment& e, const Facts& facts) {
  const std::string needs_all = std::string(facts.name) + " needs the replies of all clients asked: ";
  if (facts.needs_all_replies && e.server().quorum() < 1)
    throw ConfigError("server.quorum",
                      needs_all + "quorum must be 1, not " + number_text(e.server().quorum()));
  if (e.server().over_selection() == 0) return;
  const std::string key = "server.over_selection";
  if (facts.needs_all_replies) throw ConfigError(key, needs_all + "over_selection must be 0");
  if (e.clients().participation() == 1)
    throw ConfigError(key,
                      "over_selection needs clients.participation below 1: at 1 all clients are asked and "
                      "nobody is left; to go on without the slowest, lower server.quorum");
}

// What makes no sense where replies are taken in one by one, or where speeds give their order.
void check_asynchronous(const proto::Experiment& e, const Facts& facts) {
  const std::string name(facts.name);
  if (e.faults().shuffle() && (facts.asynchronous || !e.clients().seconds().empty()))
    throw ConfigError("faults.shuffle",
                      "shuffle has no use on the virtual clock: clients.seconds says who is first");
  if (!facts.asynchronous) return;
  if (e.server().over_selection() > 0)
    throw ConfigError("server.over_selection",
                      name + " has no rounds, and waits for nobody: over_selection must be 0");
  if (e.clients().weights() != "equal")
    throw ConfigError("clients.weights", name +
                                             " takes in each reply as it comes, whoever sent it: weights "
                                             "must be equal");
}

void check_faults(const proto::Experiment& e, const Facts& facts) {
  const std::string name(facts.name);
  if (has(facts.client_state, ClientState::kPrivate)) {
    const std::string why = "a client of " + name + " keeps state that nobody can restore: ";
    if (e.faults().wiped() > 0) throw ConfigError("faults.wiped", why + "wiped must be 0");
    if (e.faults().crashes() > 0) throw ConfigError("faults.crashes", why + "crashes must be 0");
  }
  if (e.faults().wiped() == 0) return;
  if (has(facts.client_state, ClientState::kMirrored) && e.server().mirrors() == "false")
    throw ConfigError("server.mirrors",
                      "faults.wiped above 0 needs mirrors: nothing else restores the clients of " + name);
}

}  // namespace

void check_experiment(const proto::Experiment& e) {
  check_required(e);
  check_field(*find_field("problem", "kind"), find_field("problem", "kind")->get(e));
  for (const Field& field : experiment_fields()) check_range_or_absence(field, e);
  check_problem(e);
  if (e.run().stop_at_grad_norm_sq() > 0 && e.run().evaluate_every() == 0)
    throw ConfigError("run.stop_at_grad_norm_sq",
                      "stop_at_grad_norm_sq needs evaluations, but evaluate_every is 0");
  check_parameters(e.algorithm());
  check_algorithm(algorithm_spec(e));
  if (find_method(e.algorithm().name()).facts.needs_hessian &&
      !find_problem_kind(e.problem().kind()).has_smoothness)
    throw ConfigError("algorithm.name", e.algorithm().name() + " needs Hessians in closed form, and kind " +
                                            quote(e.problem().kind()) +
                                            " has none; use quadratic, least_squares or logistic");
  const Facts& facts = find_method(e.algorithm().name()).facts;
  check_asynchronous(e, facts);
  check_server(e, facts);
  check_faults(e, facts);
}

}  // namespace gradwire
