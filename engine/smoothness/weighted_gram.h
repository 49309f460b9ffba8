// upper += sum_k weight_k a_k a_k^T over sparse rows a_k: what Hessians of generalised linear models are made
// of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "engine/sparse_rows.h"
#include "engine/upper_triangle.h"

namespace gradwire {

template <class Real>
class WeightedGram {
 public:
  // Of the rows `mine`.
  WeightedGram(const SparseRows<Real>& rows, const ClientRows& mine) : mine_(mine) {
    // A scattered pair of nonzeros costs about as much as this many entries of a triangle in plain loops.
    constexpr double kEntriesPerPair = 16;
    double pairs = 0;
    for (std::size_t j = 0; j < mine.count; ++j) {
      const auto count = static_cast<double>(rows.row_columns(mine[j]).size());
      pairs += count * (count + 1) / 2;
    }
    const auto triangle = static_cast<double>(upper_size(rows.columns()));
    dense_ = pairs * kEntriesPerPair > triangle * static_cast<double>(mine.count);
  }

  // Those numbered first .. first + weight.size() - 1 among `mine`. `upper`: shape (d (d + 1) / 2).
  void add(const SparseRows<Real>& rows, std::size_t first, std::span<const Real> weight,
           std::span<Real> upper) {
    if (!dense_) {
      for (std::size_t k = 0; k < weight.size(); ++k)
        add_outer_product(rows.row_columns(mine_[first + k]), rows.row_values(mine_[first + k]), weight[k],
                          rows.columns(), upper.data());
      return;
    }
    for (std::size_t k = 0; k < weight.size(); k += kTogether)
      add_together(rows, first + k, weight.subspan(k, std::min(kTogether, weight.size() - k)), upper.data());
  }

 private:
  static constexpr std::size_t kTogether =
      8;  // rows, so that an entry of `upper` is loaded once for all of them

  void add_together(const SparseRows<Real>& rows, std::size_t first, std::span<const Real> weight,
                    Real* upper) {
    const std::size_t d = rows.columns();
    block_.assign(kTogether * d, Real(0));
    for (std::size_t k = 0; k < weight.size(); ++k)
      rows.add_scaled(mine_[first + k], Real(1), &block_[k * d]);
    const Real* const v = block_.data();
    for (std::size_t a = 0; a < d; ++a) {
      Real factor[kTogether] = {};
      for (std::size_t k = 0; k < weight.size(); ++k) factor[k] = weight[k] * v[k * d + a];
      Real* __restrict row = upper + upper_row(a, d);
      for (std::size_t b = a; b < d; ++b) {
        Real sum = factor[0] * v[b];
        for (std::size_t k = 1; k < kTogether; ++k) sum += factor[k] * v[k * d + b];
        row[b] += sum;
      }
    }
  }

  ClientRows mine_;
  bool dense_ = false;
  std::vector<Real> block_;  // (kTogether, d)
};

}  // namespace gradwire
