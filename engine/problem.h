// From [problem] of an experiment and a client's samples to its oracle: the one place where kinds of problem
// are listed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/dataset.h"
#include "engine/oracle.h"
#include "engine/smoothness.h"

namespace gradwire {

enum class Regularizer : std::uint8_t { kNone, kL2, kNonconvex };

// [problem] of an experiment, as far as oracles are concerned.
struct ProblemSpec {
  std::string kind;  // one of problem_kinds()
  Regularizer regularizer = Regularizer::kNone;
  double lambda = 0;                  // of the regulariser; quadratic: the smallest eigenvalue of the mean
  std::vector<std::uint32_t> hidden;  // mlp: widths of the hidden layers, empty = softmax regression
  std::size_t dim = 0;        // quadratic: d; with data: overrides the largest index in the file when > 0
  double heterogeneity = 0;   // quadratic: s of algorithms (c), 0 = equal clients
  std::uint32_t clients = 1;  // n
  std::uint64_t seed = 1;
};

// What the clients must agree on before any of them can build an oracle.
struct Agreement {
  std::size_t columns = 0;     // number of features
  std::vector<double> labels;  // the distinct labels of all clients, ascending
};

// The samples of one client.
struct Part {
  Dataset train;
  Dataset test;  // may be empty
};

struct ProblemKind {
  std::string_view name;
  std::string_view summary;  // one line for `gradwire list`
  bool needs_data;
  bool has_smoothness;  // closed-form constants: step_size = "theory" works
};
std::span<const ProblemKind> problem_kinds();

// Throws DataError (one line) when the labels or shapes do not fit the kind, e.g. logistic with three labels.
void check_agreement(const ProblemSpec& spec, const Agreement& agreement);

// d, the length of x.
std::size_t model_dim(const ProblemSpec& spec, const Agreement& agreement);

// x0 = "model": the problem's own start, shape (d); a function of spec.seed (mlp: scaled random weights;
// quadratic: sqrt(d) e_1; otherwise zeros).
std::vector<double> model_start(const ProblemSpec& spec, const Agreement& agreement);

// `client` in [0, spec.clients). The part is copied from, not referred to. REQUIRES: check_agreement passed.
template <class Real>
std::unique_ptr<Oracle<Real>> make_oracle(const ProblemSpec& spec, const Agreement& agreement,
                                          const Part& part, std::uint32_t client);

// L_i and mu_i of one client, from its own samples alone. REQUIRES: the kind has_smoothness.
ClientSmoothness client_smoothness(const ProblemSpec& spec, const Agreement& agreement, const Part& part,
                                   std::uint32_t client);

// Of f = sum_i weights[i] f_i (weights empty: 1/n each). REQUIRES: the kind has_smoothness; parts.size() ==
// spec.clients (parts are not looked at by kinds without data).
Smoothness smoothness(const ProblemSpec& spec, const Agreement& agreement, std::span<const Part> parts,
                      std::span<const double> weights);

// For a server that sees no data: L is the mean of the L_i (an upper bound), mu the mean of the mu_i, exact =
// false.
Smoothness smoothness_from_clients(const ProblemSpec& spec, std::span<const ClientSmoothness> clients);

}  // namespace gradwire
