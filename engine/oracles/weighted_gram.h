// Computes upper += sum_k weight_k a_k a_k^T over sparse rows a_k, for Hessians of generalised linear models.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "engine/data/sparse_rows.h"
#include "engine/kernels/select.h"
#include "engine/upper_triangle.h"

namespace gradwire {

// Keeps its memory between Hessians, also for other clients.
template <class Real>
class WeightedGram {
 public:
  explicit WeightedGram(KernelSet kernels) : kernels_(&kernels_of<Real>(kernels)) {}

  // Selects the rows numbered in `mine`. Rows with many pairs of nonzero columns are stored densely and
  // multiplied in registers; the others are added pair by pair.
  void start(const SparseRows<Real>& rows, const ClientRows& mine) {
    // Measured: a pair of nonzeros costs as much as 9 entries of a triangle in fp64, 17 in fp32.
    constexpr double kEntriesPerPair = 12;
    mine_ = mine;
    double pairs = 0;
    for (std::size_t j = 0; j < mine.count; ++j) {
      const auto count = static_cast<double>(rows.row_columns(mine[j]).size());
      pairs += count * (count + 1) / 2;
    }
    const auto triangle = static_cast<double>(upper_size(rows.columns()));
    dense_ = pairs * kEntriesPerPair > triangle * static_cast<double>(mine.count);
  }

  // Adds the rows first .. first + weight.size() - 1. `upper`: shape (d (d + 1) / 2).
  void add(const SparseRows<Real>& rows, std::size_t first, std::span<const Real> weight,
           std::span<Real> upper) {
    if (!dense_) {
      for (std::size_t k = 0; k < weight.size(); ++k)
        add_outer_product(rows.row_columns(mine_[first + k]), rows.row_values(mine_[first + k]), weight[k],
                          rows.columns(), upper.data());
      return;
    }
    for (std::size_t k = 0; k < weight.size(); k += kMostGramRows)
      add_together(rows, first + k,
                   weight.subspan(k, std::min<std::size_t>(kMostGramRows, weight.size() - k)), upper.data());
  }

 private:
  void add_together(const SparseRows<Real>& rows, std::size_t first, std::span<const Real> weight,
                    Real* upper) {
    const std::size_t stride = rows.columns() + kSlack;
    block_.resize(kMostGramRows * stride);
    std::fill_n(block_.begin(), weight.size() * stride, Real(0));
    for (std::size_t k = 0; k < weight.size(); ++k) {
      const auto column = rows.row_columns(mine_[first + k]);
      const auto value = rows.row_values(mine_[first + k]);
      Real* const row = &block_[k * stride];
      for (std::size_t j = 0; j < column.size(); ++j) row[column[j]] = value[j];
    }
    kernels_->gram({block_.data(), static_cast<Index>(stride), static_cast<Index>(rows.columns()),
                    static_cast<Index>(weight.size())},
                   weight.data(), upper);
  }

  const Kernels<Real>* kernels_;
  ClientRows mine_;
  bool dense_ = false;
  std::vector<Real> block_;  // (kMostGramRows, d + kSlack)
};

}  // namespace gradwire
