// The constants of f_i(x) = mean_j l(b_j a_j^T x) + R(x), from the curvature of l and the Gram matrix of the
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
  bool convex = true;     // true if l is convex
  bool constant = false;  // true if l'' is constant
};

// The properties of a linear model that determine its constants.
struct LinearProblem {
  LossCurvature curvature;
  Regularizer regularizer = Regularizer::kNone;
  double lambda = 0;
  std::size_t d = 0;
  bool bias = false;  // true if one of the d features is a constant 1, after the others
};

// Returns the constants of one client. Throws DataError if it has no samples, a feature beyond d, or features
// with squares that are too large for constants.
ClientSmoothness client_smoothness(const LinearProblem& problem, const ClientDataset& part,
                                   std::uint32_t client);

// Returns the constants of f = sum_i weights[i] f_i (1/n each if weights is empty). `parts` are those of the
// clients of this process. Throws DataError like client_smoothness(). REQUIRES: at least one part.
Smoothness smoothness(const LinearProblem& problem, std::span<const ClientDataset> parts,
                      std::span<const double> weights, const OrderedScan& scan = {});

// Returns a lower bound of mu that is known without data: 0 if f need not be strongly convex.
double known_convexity(const LinearProblem& problem);

// Returns the constants for a server that sees no data. L is the mean of the L_i (an upper bound), mu the
// mean of the mu_i, and exact is false. Means use `weights` (1/n each if empty). Uses only members of
// `problem` that do not depend on data.
Smoothness smoothness_from_clients(const LinearProblem& problem, std::span<const ClientSmoothness> clients,
                                   std::span<const double> weights);

}  // namespace gradwire
