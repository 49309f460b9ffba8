// The weighted Gram matrix sum_i scale_i A_i^T A_i of several data sets, whose spectrum gives the smoothness
// constants of linear models. Products with it stay sparse; it is formed only for its smallest eigenvalue.
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

  std::size_t rows() const;  // of all A_i together

  // out = (sum_i scale_i A_i^T A_i) v
  void apply(std::span<const double> v, std::span<double> out) const;

  // Of the sum over the terms of all processes.
  double largest_eigenvalue(const OrderedScan& scan = {}) const;

  // The same; 0 when there is none, or when neither the matrix nor its twin A A^T is small enough to be
  // formed.
  double smallest_eigenvalue(Smallest which, const OrderedScan& scan = {}) const;

 private:
  void add(std::span<const double> v, std::span<double> out) const;  // out += (...) v
};

// Of the matrices G_i + ridge I of all processes with weights of sum 1: the largest eigenvalue of their mean
// square, sum_i w_i (G_i + ridge I)^2. REQUIRES: all are (columns x columns); as many weights as matrices.
double largest_mean_square(std::size_t columns, std::span<const Gram> grams, std::span<const double> weights,
                           double ridge, const OrderedScan& scan = {});

// The largest eigenvalue of their variance sum_i w_i G_i^2 - (sum_i w_i G_i)^2, within 1e-14 of
// `mean_square`, the largest eigenvalue of sum_i w_i G_i^2 or more. REQUIRES: the same.
double largest_variance(std::size_t columns, std::span<const Gram> grams, std::span<const double> weights,
                        double mean_square, const OrderedScan& scan = {});

}  // namespace gradwire
