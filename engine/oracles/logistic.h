// Linear models with two labels: f_i(x) = mean_j l(b_j a_j^T x) + R(x), b_j in {-1, +1}, with the logistic
// loss l(z) = log(1 + e^-z) or the nonconvex l(z) = (1 - sigma(z))^2, sigma(z) = 1 / (1 + e^-z) (arXiv
// 2102.07845).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/oracle.h"
#include "engine/part.h"
#include "engine/regularizer.h"
#include "engine/smoothness/weighted_gram.h"
#include "engine/sparse_rows.h"

namespace gradwire {

// The loss of a margin z = b a^T x: log(1 + e^-z), or (1 - sigma(z))^2.
enum class LinearLoss : std::uint8_t { kLogistic, kSigmoidSquared };

template <class Real>
class LogisticOracle final : public Oracle<Real> {
 public:
  // `labels`: the two of all clients, ascending; they become -1 and +1. Throws DataError when a training
  // sample has another label, or a feature is not below `dim`.
  LogisticOracle(const Part& part, std::size_t dim, std::span<const double> labels, Regularizer regularizer,
                 double lambda, LinearLoss loss = LinearLoss::kLogistic);

  std::size_t dim() const override { return rows_.columns(); }
  std::size_t sample_count() const override { return rows_.rows(); }
  Real loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) override;
  bool hessian(std::span<const Real> x, std::span<Real> upper) override;

  // A sample with a^T x > 0 is taken for +1, others for -1; nan is wrong. Nothing when this client has no
  // test samples.
  std::optional<Score> score(std::span<const Real> x) override;

 private:
  SparseRows<Real> rows_;
  WeightedGram<Real> gram_{rows_};
  std::vector<Real> sign_;  // b_j
  SparseRows<Real> test_rows_;
  std::vector<Real> test_sign_;  // 0: a label of no training sample, never predicted
  Regularizer regularizer_;
  double lambda_;
  LinearLoss loss_;
};

extern template class LogisticOracle<float>;
extern template class LogisticOracle<double>;

}  // namespace gradwire
