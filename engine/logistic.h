// Logistic regression: f_i(x) = mean_j log(1 + exp(-b_j a_j^T x)) + R(x), b_j in {-1, +1}.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/problem.h"
#include "engine/sparse_rows.h"

namespace gradwire {

template <class Real>
class LogisticOracle final : public Oracle<Real> {
 public:
  // `labels`: the two of all clients, ascending; they become -1 and +1. Throws DataError when a training
  // sample has another label, or a feature is not below `dim`.
  LogisticOracle(const Part& part, std::size_t dim, std::span<const double> labels, Regularizer regularizer,
                 double lambda);

  std::size_t dim() const override { return rows_.columns(); }
  std::size_t sample_count() const override { return rows_.rows(); }
  Real loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) override;

  // A sample with a^T x > 0 is taken for +1, others for -1. Nothing when this client has no test samples.
  std::optional<Score> score(std::span<const Real> x) override;

 private:
  SparseRows<Real> rows_;
  std::vector<Real> sign_;  // b_j
  SparseRows<Real> test_rows_;
  std::vector<Real> test_sign_;  // 0: a label of no training sample, never predicted
  Regularizer regularizer_;
  double lambda_;
};

extern template class LogisticOracle<float>;
extern template class LogisticOracle<double>;

}  // namespace gradwire
