// The weighted Gram matrix sum_i scale_i A_i^T A_i of several data sets, whose spectrum gives the smoothness
// constants of linear models. Products with it stay sparse; it is formed only for its smallest eigenvalue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/dataset.h"

namespace gradwire {

enum class Smallest : std::uint8_t { kOfAll, kNonzero };

struct Gram {
  struct Term {
    const Dataset* rows;  // A_i; must outlive the Gram
    double scale;
  };
  std::size_t columns = 0;
  std::vector<Term> terms;

  std::size_t rows() const;  // of all A_i together

  // out = (sum_i scale_i A_i^T A_i) v
  void apply(std::span<const double> v, std::span<double> out) const;

  double largest_eigenvalue() const;

  // 0 when there is none, or when neither the matrix nor its twin A A^T is small enough to be formed.
  double smallest_eigenvalue(Smallest which) const;
};

}  // namespace gradwire
