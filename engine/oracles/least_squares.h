// Least squares: f_i(x) = ||A_i x - y_i||^2 / (2 m_i) + R(x), with the labels y_i of the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/data/shared_samples.h"
#include "engine/data/sparse_rows.h"
#include "engine/kernels/select.h"
#include "engine/oracles/linear_oracle.h"
#include "engine/regularizer.h"

namespace gradwire {

template <class Real>
class LeastSquaresOracle final : public LinearOracle<Real, LeastSquaresOracle<Real>> {
 public:
  // Builds the oracle. Copies share the samples. Throws DataError if a feature is not below `dim`.
  LeastSquaresOracle(SharedSamples samples, std::size_t dim, Regularizer regularizer, double lambda,
                     KernelSet kernels = KernelSet::kBest);

  std::uint32_t clients() const { return at_.clients(); }
  std::size_t sample_count(std::uint32_t client) const { return at_.train_count(client); }
  void bind(std::uint32_t client) override;
  std::size_t dim() const override { return data_->rows.columns(); }
  std::size_t sample_count() const override { return at_.train().count; }
  Real loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) override;
  bool hessian(std::span<const Real> x, std::span<Real> upper) override;

 private:
  friend LinearOracle<Real, LeastSquaresOracle>;
  template <class F>
  auto with_capabilities(Batch batch, F&& f);
  const SparseRows<Real>& rows() const { return data_->rows; }

  struct TargetRows {
    SparseRows<Real> rows;
    std::vector<Real> target;  // y_j
    // The upper triangle of A_i^T A_i / m_i for each client, which is the same at every x. Null until first
    // used.
    mutable std::vector<std::unique_ptr<Real[]>> gram;

    TargetRows(Dataset&& train, std::size_t dim, std::uint32_t clients)
        : rows(std::move(train), dim), target(train.label.begin(), train.label.end()), gram(clients) {}
  };

  std::shared_ptr<const TargetRows> data_;
  ClientCursor at_;
  std::uint32_t client_ = 0;
  Regularizer regularizer_;
  double lambda_;
  KernelSet kernels_;  // computes Hessians
};

extern template class LinearOracle<float, LeastSquaresOracle<float>>;
extern template class LinearOracle<double, LeastSquaresOracle<double>>;
extern template class LeastSquaresOracle<float>;
extern template class LeastSquaresOracle<double>;

}  // namespace gradwire
