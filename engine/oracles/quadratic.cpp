#include "engine/oracles/quadratic.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "base/random.h"
#include "engine/data/sparse_rows.h"
#include "engine/lane_sum.h"
#include "engine/upper_triangle.h"

namespace gradwire {

QuadraticFamily::QuadraticFamily(const QuadraticShape& shape, std::uint32_t clients, std::uint64_t seed)
    : dim_(shape.dim), lambda_(shape.lambda), noise_(shape.noise), seed_(seed) {
  if (dim_ == 0 || clients == 0) throw std::logic_error("a quadratic needs a dimension and a client");
  const double angle = std::numbers::pi / (2 * (static_cast<double>(dim_) + 1));
  sine_low_ = std::pow(std::sin(angle), 2);
  sine_high_ = dim_ == 1 ? sine_low_ : std::pow(std::cos(angle), 2);
  Random slope_noise(seed, "quadratic nu"), linear_noise(seed, "quadratic b");
  nu_.reserve(clients);
  b_.reserve(clients);
  for (std::uint32_t i = 0; i < clients; ++i) {
    nu_.push_back(1 + shape.heterogeneity * slope_noise.normal());
    b_.push_back(nu_[i] / 4 * (-1 + shape.heterogeneity * linear_noise.normal()));
    mean_nu_ += nu_[i];
  }
  mean_nu_ /= clients;
  shift_ = lambda_ - std::min(mean_nu_ * sine_low_, mean_nu_ * sine_high_);
}

ClientSmoothness QuadraticFamily::client(std::uint32_t client) const {
  const double low = nu(client) * sine_low_ + shift_;
  const double high = nu(client) * sine_high_ + shift_;
  const double L_i = std::max(std::abs(low), std::abs(high));
  return {.L_i = L_i, .mu_i = std::max(0.0, std::min(low, high)), .L_s = L_i, .L_sample_max = L_i};
}

Smoothness QuadraticFamily::total(std::span<const double> weights) const {
  double nu = mean_nu_;
  double weight = 1;  // sum of the weights
  if (!weights.empty()) {
    nu = weight = 0;
    for (std::uint32_t i = 0; i < clients(); ++i) {
      nu += weights[i] * nu_[i];
      weight += weights[i];
    }
  }
  const double low = nu * sine_low_ + weight * shift_;
  const double high = nu * sine_high_ + weight * shift_;
  Smoothness result;
  result.L = std::max(std::abs(low), std::abs(high));
  // With equal weights the smallest eigenvalue is lambda by construction. The sum would have rounding errors
  // from the shift.
  result.mu = weights.empty() ? lambda_ : std::max(0.0, std::min(low, high));
  result.convex = true;
  result.weights.assign(weights.begin(), weights.end());
  result.L_i.reserve(clients());
  for (std::uint32_t i = 0; i < clients(); ++i) {
    result.L_i.push_back(client(i).L_i);
    result.convex &= nu_[i] * sine_low_ + shift_ >= 0 && nu_[i] * sine_high_ + shift_ >= 0;
  }
  result.L_plus = L_plus(weights);
  result.L_pm = L_pm(weights);
  result.L_s = result.L_tilde();
  result.L_sample_max = result.L_max();
  return result;
}

double QuadraticFamily::L_plus(std::span<const double> weights) const {
  double largest = 0;
  // The mean of (nu_i S + c)^2 is a convex function of S, so it is largest at an end.
  for (const double sine : {sine_low_, sine_high_}) {
    double sum = 0;
    for (std::size_t i = 0; i < nu_.size(); ++i)
      sum += weight(weights, i) * std::pow(nu_[i] * sine + shift_, 2);
    largest = std::max(largest, sum);
  }
  return std::sqrt(largest);
}

double QuadraticFamily::L_pm(std::span<const double> weights) const {
  double mean = mean_nu_;
  if (!weights.empty()) {
    mean = 0;
    for (std::size_t i = 0; i < nu_.size(); ++i) mean += weights[i] * nu_[i];
  }
  double variance = 0;
  for (std::size_t i = 0; i < nu_.size(); ++i) variance += weight(weights, i) * std::pow(nu_[i] - mean, 2);
  return std::sqrt(variance) * sine_high_;
}

template <class Real>
void QuadraticOracle<Real>::bind(std::uint32_t client) {
  client_ = client;
  const double nu = family_->nu(client);
  diagonal_ = static_cast<Real>(nu / 2 + family_->shift());
  neighbour_ = static_cast<Real>(-nu / 4);
  linear_ = static_cast<Real>(family_->linear(client));
}

template <class Real>
Real QuadraticOracle<Real>::loss_and_gradient(std::span<const Real> x, Batch batch,
                                              std::span<Real> gradient) {
  const std::size_t d = dim();
  check_lengths(x, gradient, d);
  static_cast<void>(BatchRows(batch, sample_count()));
  const std::size_t last = d - 1;
  // Computes A_i x; the first and last rows have one neighbour each.
  gradient[0] = diagonal_ * x[0] + (last > 0 ? neighbour_ * x[1] : Real(0));
  for (std::size_t j = 1; j < last; ++j) gradient[j] = diagonal_ * x[j] + neighbour_ * (x[j - 1] + x[j + 1]);
  if (last > 0) gradient[last] = diagonal_ * x[last] + neighbour_ * x[last - 1];

  const Real *point = x.data(), *image = gradient.data();
  const double curvature = lane_sum(d, [point, image](std::size_t j) {  // x^T A_i x
    return static_cast<double>(point[j]) * static_cast<double>(image[j]);
  });

  gradient[0] -= linear_;
  double loss = curvature / 2 - static_cast<double>(linear_) * static_cast<double>(x[0]);
  if (noisy(batch)) loss += add_noise(x, batch, gradient);
  return static_cast<Real>(loss);
}

template <class Real>
double QuadraticOracle<Real>::add_noise(std::span<const Real> x, Batch batch,
                                        std::span<Real> gradient) const {
  const double scale = family_->noise() / static_cast<double>(batch.size());
  double product = 0;
  for (const std::uint32_t sample : batch) {
    Random random(family_->seed(), "quadratic noise", (static_cast<std::uint64_t>(client_) << 32) | sample);
    for (std::size_t j = 0; j < gradient.size(); ++j) {
      const double xi = scale * random.normal();
      gradient[j] += static_cast<Real>(xi);
      product += xi * static_cast<double>(x[j]);
    }
  }
  return product;
}

template <class Real>
Real QuadraticOracle<Real>::product(std::span<const Real> x, std::size_t j) const {
  const std::size_t last = dim() - 1;
  if (j == 0) return diagonal_ * x[0] + (last > 0 ? neighbour_ * x[1] : Real(0));
  if (j == last) return diagonal_ * x[last] + neighbour_ * x[last - 1];
  return diagonal_ * x[j] + neighbour_ * (x[j - 1] + x[j + 1]);
}

template <class Real>
Real QuadraticOracle<Real>::loss(std::span<const Real> x, Batch batch) {
  if (noisy(batch)) return Oracle<Real>::loss(x, batch);
  check_length(x, dim());
  static_cast<void>(BatchRows(batch, sample_count()));
  const double curvature = lane_sum(
      dim(), [&](std::size_t j) { return static_cast<double>(x[j]) * static_cast<double>(product(x, j)); });
  return static_cast<Real>(curvature / 2 - static_cast<double>(linear_) * static_cast<double>(x[0]));
}

template <class Real>
Directional<Real> QuadraticOracle<Real>::directional(std::span<const Real> x, std::span<const Real> v,
                                                     Batch batch) {
  if (noisy(batch)) return Oracle<Real>::directional(x, v, batch);
  check_length(v, dim());
  const Real loss_at_x = loss(x, batch);
  const double derivative = lane_sum(
      dim(), [&](std::size_t j) { return static_cast<double>(v[j]) * static_cast<double>(product(x, j)); });
  return {loss_at_x,
          static_cast<Real>(derivative - static_cast<double>(linear_) * static_cast<double>(v[0]))};
}

template <class Real>
bool QuadraticOracle<Real>::hessian(std::span<const Real> x, std::span<Real> upper) {
  const std::size_t d = dim();
  check_length(x, d);
  check_upper(upper, d);
  std::fill(upper.begin(), upper.end(), Real(0));
  for (std::size_t j = 0; j < d; ++j) {
    const std::size_t row = upper_row(j, d);
    upper[row + j] = diagonal_;
    if (j + 1 < d) upper[row + j + 1] = neighbour_;
  }
  return true;
}

template class QuadraticOracle<float>;
template class QuadraticOracle<double>;

}  // namespace gradwire
