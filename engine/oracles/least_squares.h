// Least squares: f_i(x) = ||A_i x - y_i||^2 / (2 m_i) + R(x), labels y_i as they stand.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/oracle.h"
#include "engine/part.h"
#include "engine/regularizer.h"
#include "engine/sparse_rows.h"

namespace gradwire {

template <class Real>
class LeastSquaresOracle final : public Oracle<Real> {
 public:
  // Throws DataError when a feature is not below `dim`.
  LeastSquaresOracle(const Part& part, std::size_t dim, Regularizer regularizer, double lambda);

  std::size_t dim() const override { return rows_.columns(); }
  std::size_t sample_count() const override { return rows_.rows(); }
  Real loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) override;
  bool hessian(std::span<const Real> x, std::span<Real> upper) override;

 private:
  SparseRows<Real> rows_;
  std::vector<Real> target_;  // y_j
  Regularizer regularizer_;
  double lambda_;
  std::vector<Real> gram_;  // upper triangle of A_i^T A_i / m_i, the same at every x; empty until asked for
};

extern template class LeastSquaresOracle<float>;
extern template class LeastSquaresOracle<double>;

}  // namespace gradwire
