#include "proto/experiment_check.h"

#include <algorithm>
#include <string>
#include <vector>

#include "algorithms/method.h"
#include "compressors/config_error.h"
#include "proto/experiment.h"
#include "proto/experiment_fields.h"

namespace gradwire {
namespace {

std::string quote(const std::string& word) { return "'" + word + "'"; }

void check_required(const proto::Experiment& e) {
  if (e.problem().kind().empty())
    throw ConfigError("problem.kind", "required: " + find_field("problem", "kind")->expected());
  if (e.algorithm().name().empty())
    throw ConfigError("algorithm.name", "required: a method, as in name = \"ef21\"; gradwire list names all");
}

void check_problem(const proto::Problem& p) {
  const bool quadratic = p.kind() == "quadratic";
  const bool convex_loss = p.kind() == "logistic" || p.kind() == "least_squares";
  if (quadratic) {
    if (p.dim() == 0)
      throw ConfigError("problem.dim", "required for kind 'quadratic': the length of x, as in dim = 1000");
    if (!p.data().empty())
      throw ConfigError("problem.data", "data has no use: kind 'quadratic' is drawn from the seed");
    if (!p.test().empty())
      throw ConfigError("problem.test", "test has no use: kind 'quadratic' has no accuracy");
    if (p.test_share() > 0)
      throw ConfigError("problem.test_share", "test_share has no use: kind 'quadratic' has no accuracy");
  } else if (p.data().empty()) {
    throw ConfigError("problem.data", "required for kind " + quote(p.kind()) +
                                          ", as in data = \"libsvm:PATH\" or \"digits\"");
  }
  if (!p.test().empty() && p.test_share() > 0)
    throw ConfigError("problem.test_share",
                      "test_share and test exclude each other: accuracy is measured on one of them");
  if (!convex_loss && p.regularizer() != "none")
    throw ConfigError("problem.regularizer",
                      "regularizer serves logistic and least_squares, not kind " + quote(p.kind()));
  if (!convex_loss && !quadratic && p.lambda() > 0)
    throw ConfigError("problem.lambda", "lambda has no use for kind " + quote(p.kind()));
  if (p.kind() != "mlp" && p.hidden_size() > 0)
    throw ConfigError("problem.hidden", "hidden serves mlp, not kind " + quote(p.kind()));
  if (!quadratic && p.heterogeneity() > 0)
    throw ConfigError("problem.heterogeneity", "heterogeneity serves quadratic, not kind " + quote(p.kind()));
  if (p.classes() == 1)
    throw ConfigError("problem.classes", "classes must be 0 (real labels) or 2 or more, not 1");
}

// What check_algorithm() does not see: it takes the first of two equal keys, and cannot name keys of other
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

void check_faults(const proto::Experiment& e, const Facts& facts) {
  const std::string name(facts.name);
  if (facts.needs_all_replies && e.server().quorum() < 1)
    throw ConfigError("server.quorum", name +
                                           " needs the replies of all clients asked: quorum must be 1, not " +
                                           number_text(e.server().quorum()));
  if (e.faults().wiped() == 0) return;
  if (has(facts.client_state, ClientState::kPrivate))
    throw ConfigError("faults.wiped",
                      "a client of " + name + " keeps state that nobody can restore: wiped must be 0");
  if (has(facts.client_state, ClientState::kMirrored) && e.server().mirrors() == "false")
    throw ConfigError("server.mirrors",
                      "faults.wiped above 0 needs mirrors: nothing else restores the clients of " + name);
}

}  // namespace

void check_experiment(const proto::Experiment& e) {
  check_required(e);
  for (const Field& field : experiment_fields()) check_field(field, field.get(e));
  check_problem(e.problem());
  if (e.run().stop_at_grad_norm_sq() > 0 && e.run().evaluate_every() == 0)
    throw ConfigError("run.stop_at_grad_norm_sq",
                      "stop_at_grad_norm_sq needs evaluations, but evaluate_every is 0");
  check_parameters(e.algorithm());
  check_algorithm(algorithm_spec(e));
  check_faults(e, find_method(e.algorithm().name()).facts);
}

}  // namespace gradwire
