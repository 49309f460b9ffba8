// Linear models with two labels: f_i(x) = mean_j l(b_j a_j^T x) + R(x), b_j in {-1, +1}. The loss is the
// logistic l(z) = log(1 + e^-z), or the nonconvex l(z) = (1 - sigma(z))^2, sigma(z) = 1 / (1 + e^-z)
// (arXiv:2102.07845).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/data/shared_samples.h"
#include "engine/data/sparse_rows.h"
#include "engine/oracles/linear_oracle.h"
#include "engine/oracles/weighted_gram.h"
#include "engine/regularizer.h"

namespace gradwire {

// The loss of a margin z = b a^T x: log(1 + e^-z), or (1 - sigma(z))^2.
enum class LinearLoss : std::uint8_t { kLogistic, kSigmoidSquared };

template <class Real>
class LogisticOracle final : public LinearOracle<Real, LogisticOracle<Real>> {
 public:
  // Builds the oracle. `labels` are the two labels of all clients, ascending; they become -1 and +1. Copies
  // share the samples. Throws DataError if a training sample has another label, or if a feature is not below
  // `dim`.
  LogisticOracle(SharedSamples samples, std::size_t dim, std::span<const double> labels,
                 Regularizer regularizer, double lambda, LinearLoss loss = LinearLoss::kLogistic,
                 KernelSet kernels = KernelSet::kBest);

  std::uint32_t clients() const { return at_.clients(); }
  std::size_t sample_count(std::uint32_t client) const { return at_.train_count(client); }
  void bind(std::uint32_t client) override { at_.bind(client); }
  std::size_t dim() const override { return data_->rows.columns(); }
  std::size_t sample_count() const override { return at_.train().count; }
  Real loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) override;
  bool hessian(std::span<const Real> x, std::span<Real> upper) override;

  // Counts the test samples that are predicted correctly. The prediction is +1 if a^T x > 0, otherwise -1;
  // NaN counts as wrong. Returns nullopt if this client has no test samples.
  std::optional<Score> score(std::span<const Real> x) override;

 private:
  friend LinearOracle<Real, LogisticOracle>;
  template <class F>
  auto with_capabilities(Batch batch, F&& f);
  const SparseRows<Real>& rows() const { return data_->rows; }

  struct LabelledRows {
    SparseRows<Real> rows;
    std::vector<Real> sign;  // b_j
    SparseRows<Real> test_rows;
    std::vector<Real> test_sign;  // 0 for a label that no training sample has, which is never predicted

    LabelledRows(SharedSamples&& samples, std::size_t dim, std::span<const double> labels);
  };

  std::shared_ptr<const LabelledRows> data_;
  ClientCursor at_;
  Regularizer regularizer_;
  double lambda_;
  LinearLoss loss_;
  WeightedGram<Real> gram_;
};

extern template class LinearOracle<float, LogisticOracle<float>>;
extern template class LinearOracle<double, LogisticOracle<double>>;
extern template class LogisticOracle<float>;
extern template class LogisticOracle<double>;

}  // namespace gradwire
