// Tridiagonal quadratics with tunable heterogeneity (arXiv:2110.03300, Algorithm 3):
//   f_i(x) = x^T A_i x / 2 - b_i^T x,   A_i = (nu_i / 4) T + c I,   T = tridiag(-1, 2, -1),
//   nu_i = 1 + s xi_i,   b_i = (nu_i / 4) (-1 + s xi'_i) e_1,   xi_i, xi'_i ~ N(0, 1).
// The shift c makes lambda the smallest eigenvalue of the mean of the A_i. All A_i have the eigenvectors of
// T, so every constant has a formula. The eigenvalues of A_i are nu_i sin^2(k pi / (2 (d + 1))) + c,
// k = 1..d. With noise, f_i is the mean of f_i(x; xi) = f_i(x) + xi^T x, where xi has independent entries
// from N(0, noise^2). A batch draws such samples; in a full gradient the mean of all xi is exactly 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/client_objectives.h"
#include "engine/smoothness/smoothness.h"

namespace gradwire {

struct QuadraticShape {
  std::size_t dim = 0;
  double lambda = 0;         // the smallest eigenvalue of the mean of the A_i
  double heterogeneity = 0;  // s; 0 if all clients are equal
  double noise = 0;          // standard deviation of each entry of a sample's gradient
};

// The constants of all clients, drawn from the seed, so that each client can compute them.
class QuadraticFamily {
 public:
  // REQUIRES: shape.dim > 0, clients > 0.
  QuadraticFamily(const QuadraticShape& shape, std::uint32_t clients, std::uint64_t seed);

  std::size_t dim() const { return dim_; }
  std::uint32_t clients() const { return static_cast<std::uint32_t>(nu_.size()); }
  double nu(std::uint32_t client) const { return nu_.at(client); }
  double shift() const { return shift_; }  // c
  double linear(std::uint32_t client) const {
    return b_.at(client);
  }  // the first entry of b_i; the others are 0
  double noise() const { return noise_; }
  std::uint64_t seed() const { return seed_; }

  ClientSmoothness client(std::uint32_t client) const;
  // Returns the constants of f = sum_i weights[i] f_i (1/n each if weights is empty).
  Smoothness total(std::span<const double> weights) const;

  // Returns the smallest L_+ with sum_i w_i ||grad f_i(x) - grad f_i(y)||^2 <= L_+^2 ||x - y||^2.
  double L_plus(std::span<const double> weights = {}) const;
  // Returns the smallest L_pm that bounds the Hessian variance: std(nu) times the largest eigenvalue of
  // T / 4.
  double L_pm(std::span<const double> weights = {}) const;

 private:
  double weight(std::span<const double> weights, std::size_t client) const {
    return weights.empty() ? 1.0 / static_cast<double>(nu_.size()) : weights[client];
  }

  std::size_t dim_;
  double lambda_, noise_;
  std::uint64_t seed_;
  std::vector<double> nu_, b_;  // one per client
  double mean_nu_ = 0;
  double shift_ = 0;
  double sine_low_, sine_high_;  // smallest and largest eigenvalue of T / 4
};

template <class Real>
class QuadraticOracle final : public RebindableOracle<Real> {
 public:
  explicit QuadraticOracle(std::shared_ptr<const QuadraticFamily> family) : family_(std::move(family)) {
    bind(0);
  }
  QuadraticOracle(const QuadraticFamily& family, std::uint32_t client)
      : QuadraticOracle(std::make_shared<const QuadraticFamily>(family)) {
    bind(client);
  }

  std::uint32_t clients() const { return family_->clients(); }
  std::size_t sample_count(std::uint32_t) const { return sample_count(); }
  void bind(std::uint32_t client) override;
  std::size_t dim() const override { return family_->dim(); }
  std::size_t sample_count() const override { return family_->noise() > 0 ? kNoisySamples : 1; }
  Real loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) override;
  // compute() is not overridden: the loss needs all of A_i x, so a part of the gradient is not cheaper.
  Real loss(std::span<const Real> x, Batch batch) override;
  Directional<Real> directional(std::span<const Real> x, std::span<const Real> v, Batch batch) override;
  bool hessian(std::span<const Real> x, std::span<Real> upper) override;

 private:
  static constexpr std::size_t kNoisySamples = 1'000'000;

  bool noisy(Batch batch) const { return family_->noise() > 0 && !batch.empty(); }
  // Returns (A_i x)_j; the first and last rows have one neighbour each.
  Real product(std::span<const Real> x, std::size_t j) const;
  // Adds xi, the mean noise of the batch's samples, to the gradient. Returns xi^T x.
  double add_noise(std::span<const Real> x, Batch batch, std::span<Real> gradient) const;

  std::shared_ptr<const QuadraticFamily> family_;
  std::uint32_t client_ = 0;
  Real diagonal_, neighbour_;  // A_i has nu/2 + c on the diagonal and -nu/4 next to it
  Real linear_;                // b_i = linear_ e_1
};

extern template class QuadraticOracle<float>;
extern template class QuadraticOracle<double>;

}  // namespace gradwire
