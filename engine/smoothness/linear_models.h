// The constants of f_i(x) = mean_j l(b_j a_j^T x) + R(x), by the curvature of l and the Gram matrix of the
// rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/data/client_dataset.h"
#include "engine/regularizer.h"
#include "engine/smoothness/ordered_scan.h"
#include "engine/smoothness/smoothness.h"

namespace gradwire {

struct LossCurvature {
  double largest = 1;     // |l''(z)|
  bool convex = true;     // l is
  bool constant = false;  // l'' is
};

// A linear model as far as its constants are concerned.
struct LinearProblem {
  LossCurvature curvature;
  Regularizer regularizer = Regularizer::kNone;
  double lambda = 0;
  std::size_t d = 0;
  bool bias = false;  // a constant feature 1 behind the others is one of the d
};

// Of one client. Throws DataError where it has no samples, a feature beyond d, or features whose squares are
// too large for constants.
ClientSmoothness client_smoothness(const LinearProblem& problem, const ClientDataset& part,
                                   std::uint32_t client);

// Of f = sum_i weights[i] f_i (weights empty: 1/n each). Throws DataError as client_smoothness() does.
// `parts`: of the clients of this process. REQUIRES: at least one.
Smoothness smoothness(const LinearProblem& problem, std::span<const ClientDataset> parts,
                      std::span<const double> weights, const OrderedScan& scan = {});

// A lower bound of mu that is known without data: 0 where f need not be strongly convex.
double known_convexity(const LinearProblem& problem);

// For a server that sees no data: L is the mean of the L_i (an upper bound), mu the mean of the mu_i, exact =
// false; means by `weights` (empty: 1/n each). Of `problem` it takes what does not depend on data.
Smoothness smoothness_from_clients(const LinearProblem& problem, std::span<const ClientSmoothness> clients,
                                   std::span<const double> weights);

}  // namespace gradwire
