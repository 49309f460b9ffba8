#include "proto/config/problem_spec.h"

#include <stdexcept>

#include "proto/config/experiment.pb.h"

namespace gradwire {

ProblemSpec problem_spec(const proto::Experiment& experiment) {
  const proto::Problem& p = experiment.problem();
  ProblemSpec spec;
  spec.kind = p.kind();
  spec.regularizer = p.regularizer() == "l2"          ? Regularizer::kL2
                     : p.regularizer() == "nonconvex" ? Regularizer::kNonconvex
                                                      : Regularizer::kNone;
  spec.loss = p.loss() == "sigmoid_squared" ? LinearLoss::kSigmoidSquared : LinearLoss::kLogistic;
  spec.bias = p.bias();
  spec.lambda = p.lambda();
  spec.hidden.assign(p.hidden().begin(), p.hidden().end());
  spec.activation = p.activation();
  spec.context = p.context();
  spec.width = p.width();
  spec.layers = p.layers();
  spec.heads = p.heads();
  spec.epsilon = p.epsilon();
  spec.tanh_logits = p.tanh_logits();
  spec.filters.assign(p.filters().begin(), p.filters().end());
  spec.channels = p.channels();
  spec.image_height = p.image_height();
  spec.image_width = p.image_width();
  spec.dim = p.dim();
  spec.heterogeneity = p.heterogeneity();
  spec.clients = experiment.clients().count();
  spec.seed = experiment.seed();
  return spec;
}

const ProblemKind& find_problem_kind(const std::string& name) {
  for (const ProblemKind& kind : problem_kinds())
    if (kind.name == name) return kind;
  throw std::logic_error("no problem kind '" + name + "'");
}

}  // namespace gradwire
