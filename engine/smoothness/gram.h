// The weighted Gram matrix sum_i scale_i A_i^T A_i of several data sets. Its spectrum gives the smoothness
// constants of linear models. Products with it stay sparse. It is only formed for its smallest eigenvalue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/smoothness/ordered_scan.h"

namespace gradwire {

enum class Smallest : std::uint8_t { kOfAll, kNonzero };

struct Gram {
  struct GramTerm {
    const Dataset* rows;  // A_i; must outlive the Gram
    double scale;
  };
  std::size_t columns = 0;
  std::vector<GramTerm> terms;

  std::size_t rows() const;  // in all A_i together

  // Computes out = (sum_i scale_i A_i^T A_i) v.
  void apply(std::span<const double> v, std::span<double> out) const;

  // Returns the largest eigenvalue of the sum over the terms of all processes.
  double largest_eigenvalue(const OrderedScan& scan = {}) const;

  // Returns the smallest eigenvalue of that sum. Returns 0 if there is none, or if both the matrix and A A^T
  // are too large to be formed.
  double smallest_eigenvalue(Smallest which, const OrderedScan& scan = {}) const;

 private:
  void add(std::span<const double> v, std::span<double> out) const;  // out += (...) v
};

// Returns the largest eigenvalue of sum_i w_i (G_i + ridge I)^2, over the matrices of all processes, with
// weights of sum 1. REQUIRES: all are (columns x columns); as many weights as matrices.
double largest_mean_square(std::size_t columns, std::span<const Gram> grams, std::span<const double> weights,
                           double ridge, const OrderedScan& scan = {});

// Returns the largest eigenvalue of the variance sum_i w_i G_i^2 - (sum_i w_i G_i)^2, within 1e-14 of
// `mean_square`. `mean_square` is at least the largest eigenvalue of sum_i w_i G_i^2. REQUIRES: as for
// largest_mean_square().
double largest_variance(std::size_t columns, std::span<const Gram> grams, std::span<const double> weights,
                        double mean_square, const OrderedScan& scan = {});

}  // namespace gradwire
