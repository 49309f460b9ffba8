#include "engine/oracles/least_squares.h"

#include <algorithm>

#include "engine/oracles/linear_capabilities.h"
#include "engine/oracles/weighted_gram.h"
#include "engine/regularizer.h"

namespace gradwire {

template <class Real>
LeastSquaresOracle<Real>::LeastSquaresOracle(SharedSamples samples, std::size_t dim, Regularizer regularizer,
                                             double lambda, KernelSet kernels)
    : data_(std::make_shared<const TargetRows>(std::move(samples.train), dim, samples.clients())),
      at_(std::move(samples.train_shares), std::move(samples.test_shares)),
      regularizer_(regularizer),
      lambda_(lambda),
      kernels_(kernels) {}

template <class Real>
void LeastSquaresOracle<Real>::bind(std::uint32_t client) {
  client_ = client;
  at_.bind(client);
}

template <class Real>
Real LeastSquaresOracle<Real>::loss_and_gradient(std::span<const Real> x, Batch batch,
                                                 std::span<Real> gradient) {
  check_lengths(x, gradient, dim());
  const BatchRows rows(batch, at_.train());
  std::fill(gradient.begin(), gradient.end(), Real(0));
  const Real share = Real(1) / static_cast<Real>(rows.count());
  double loss = 0;
  for (std::size_t k = 0; k < rows.count(); ++k) {
    const std::size_t r = rows[k];
    const Real residual = data_->rows.dot(r, x.data()) - data_->target[r];
    loss += static_cast<double>(residual) * static_cast<double>(residual);
    data_->rows.add_scaled(r, residual * share, gradient.data());
  }
  loss /= 2 * static_cast<double>(rows.count());
  return static_cast<Real>(loss + add_regularizer(regularizer_, lambda_, x, gradient));
}

template <class Real>
bool LeastSquaresOracle<Real>::hessian(std::span<const Real> x, std::span<Real> upper) {
  check_length(x, dim());
  check_upper(upper, dim());
  std::unique_ptr<Real[]>& gram = data_->gram[client_];
  if (gram == nullptr) {
    const BatchRows all({}, at_.train());
    const Real share = Real(1) / static_cast<Real>(all.count());
    auto made = std::make_unique<Real[]>(upper.size());
    WeightedGram<Real> sum(kernels_);
    sum.start(data_->rows, at_.train());
    sum.add(data_->rows, 0, std::vector<Real>(all.count(), share), {made.get(), upper.size()});
    gram = std::move(made);
  }
  std::copy_n(gram.get(), upper.size(), upper.begin());
  add_regularizer_hessian(regularizer_, lambda_, x, upper);
  return true;
}

template <class Real>
template <class F>
auto LeastSquaresOracle<Real>::with_capabilities(Batch batch, F&& f) {
  const BatchRows rows(batch, at_.train());
  const auto losses = [this](std::size_t count, const std::size_t* row, const Real* z, Real* slope,
                             double& sum) {
    for (std::size_t k = 0; k < count; ++k) {
      slope[k] = z[k] - data_->target[row[k]];
      sum += static_cast<double>(slope[k]) * static_cast<double>(slope[k]);
    }
  };
  const auto mean = [&rows](double sum) { return sum / (2 * static_cast<double>(rows.count())); };
  return f(LinearCapabilities(data_->rows, rows, regularizer_, lambda_, losses, mean));
}

template class LinearOracle<float, LeastSquaresOracle<float>>;
template class LinearOracle<double, LeastSquaresOracle<double>>;
template class LeastSquaresOracle<float>;
template class LeastSquaresOracle<double>;

}  // namespace gradwire
