#include "engine/smoothness/estimate_smoothness.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "base/random.h"
#include "engine/data/dataset.h"

namespace gradwire {
namespace {

constexpr std::size_t kClients = 64;  // at most this many are examined
constexpr std::size_t kSamplesPerClient = 256;
constexpr std::size_t kSingleSamples = 64;  // for all clients together
constexpr int kPowerSteps = 12;
constexpr int kDescentSteps = 10;
constexpr double kDifference = 1e-5;  // distance of points with compared gradients, relative to ||x||

using Gradient = std::function<void(std::span<const double> x, std::span<double> out)>;

double norm(std::span<const double> v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
}

double round_up_to_two_digits(double value) {
  if (!(value > 0)) return value;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return std::ceil(value / unit) * unit;
}

// Draws `count` of the numbers 0 .. size-1. Returns them in ascending order.
std::vector<std::uint32_t> draw(std::size_t size, std::size_t count, Random random) {
  std::vector<std::uint32_t> all(size);
  std::iota(all.begin(), all.end(), 0u);
  if (count >= size) return all;
  random.shuffle(std::span(all));
  all.resize(count);
  std::sort(all.begin(), all.end());
  return all;
}

struct Examined {
  std::uint32_t client;
  double weight;  // in the mean over the examined clients
  std::vector<std::uint32_t> samples;
};

class Estimate {
 public:
  Estimate(const ClientObjectives<double>& clients, std::span<const double> weights,
           std::span<const double> x0, std::uint64_t seed, const OrderedScan& scan)
      : seed_(seed), scan_(scan), x_(x0.begin(), x0.end()), oracle_(clients.oracle()) {
    double weight_sum = 0;
    for (const std::uint32_t i : draw(clients.clients(), kClients, Random(seed, "estimate clients"))) {
      const double weight = weights.empty() ? 1 : weights[i];
      weight_sum += weight;
      examined_.push_back(
          {i, weight, draw(clients.sample_count(i), kSamplesPerClient, Random(seed, "estimate samples", i))});
    }
    for (Examined& one : examined_) one.weight /= weight_sum;
    L_i_.resize(examined_.size());
    samples_.resize(examined_.size() + 1);
  }

  void look() {
    L_ = larger(L_, curvature(mean_gradient()));
    check(L_);
    scan_(L_i_, [&] {
      for (std::size_t k = 0; k < examined_.size(); ++k)
        if (scan_.has(examined_[k].client))
          L_i_[k] = larger(L_i_[k], curvature(gradient_of(examined_[k], examined_[k].samples)));
    });
    scan_(samples_, [&] {
      for (std::size_t k = 0; k < examined_.size(); ++k)
        if (scan_.has(examined_[k].client)) measure_samples(k);
    });
    for (const double L_i : L_i_) check(L_i);
    check(samples_.back());
  }

  void descend() {
    std::vector<double> gradient(x_.size());
    const Gradient of = mean_gradient();
    for (int step = 0; step < kDescentSteps && L_ > 0; ++step) {
      of(x_, gradient);
      for (std::size_t j = 0; j < x_.size(); ++j) x_[j] -= gradient[j] / L_;
    }
  }

  Smoothness result(std::size_t clients, std::span<const double> weights) const {
    Smoothness s;
    s.exact = false;
    s.estimated = true;
    s.weights.assign(weights.begin(), weights.end());
    s.L_i.assign(clients, round_up_to_two_digits(*std::max_element(L_i_.begin(), L_i_.end())));
    double square = 0;
    for (std::size_t k = 0; k < examined_.size(); ++k) {
      s.L_i[examined_[k].client] = round_up_to_two_digits(L_i_[k]);
      // L_i of a mean of samples is at most the root mean square of their L_ij.
      square += examined_[k].weight * std::max(samples_[k], L_i_[k] * L_i_[k]);
    }
    s.L = std::min(round_up_to_two_digits(L_), s.L_avg());
    s.L_s = round_up_to_two_digits(std::sqrt(square));
    s.L_sample_max = std::max(round_up_to_two_digits(samples_.back()), s.L_max());
    return s;
  }

 private:
  Gradient gradient_of(const Examined& one, Batch batch) const {
    return [this, client = one.client, batch](std::span<const double> x, std::span<double> out) {
      oracle_->bind(client);
      oracle_->loss_and_gradient(x, batch, out);
    };
  }

  Gradient mean_gradient() const {
    return [this](std::span<const double> x, std::span<double> out) {
      std::vector<double> one(out.size());
      std::fill(out.begin(), out.end(), 0.0);
      scan_(out, [&] {
        for (const Examined& client : examined_) {
          if (!scan_.has(client.client)) continue;
          oracle_->bind(client.client);
          oracle_->loss_and_gradient(x, client.samples, one);
          for (std::size_t j = 0; j < out.size(); ++j) out[j] += client.weight * one[j];
        }
      });
    };
  }

  // Measures the curvatures of single samples of the k-th examined client.
  void measure_samples(std::size_t k) {
    const std::vector<std::uint32_t>& samples = examined_[k].samples;
    const std::size_t count =
        std::min(samples.size(), std::max<std::size_t>(1, kSingleSamples / examined_.size()));
    double sum = 0;
    for (std::size_t s = 0; s < count; ++s) {
      const double L_ij = curvature(gradient_of(examined_[k], std::span(samples).subspan(s, 1)));
      sum += L_ij * L_ij;
      samples_.back() = larger(samples_.back(), L_ij);
    }
    samples_[k] = std::max(samples_[k], sum / static_cast<double>(count));
  }

  // Returns the larger number; NaN is larger than all.
  static double larger(double a, double b) { return b > a || std::isnan(b) ? b : a; }
  static void check(double curvature) {
    if (!std::isfinite(curvature))
      throw DataError("smoothness constants cannot be estimated: a gradient near x0 is not finite");
  }

  // Returns the largest ||H v||, ||v|| = 1, that the power method finds at x. Not finite if a gradient is not
  // finite.
  double curvature(const Gradient& gradient) const {
    const std::size_t d = x_.size();
    const double h = kDifference * std::max(1.0, norm(x_));
    std::vector<double> at_x(d), v(d), moved(d), product(d);
    gradient(x_, at_x);
    Random random(seed_, "estimate direction");
    for (double& entry : v) entry = random.normal();
    double largest = 0;
    for (int step = 0; step < kPowerSteps; ++step) {
      const double length = norm(v);
      if (length == 0) break;
      for (std::size_t j = 0; j < d; ++j) moved[j] = x_[j] + h * (v[j] / length);
      gradient(moved, product);
      for (std::size_t j = 0; j < d; ++j) v[j] = (product[j] - at_x[j]) / h;
      largest = larger(largest, norm(v));
      if (!std::isfinite(largest)) break;
    }
    return largest;
  }

  std::uint64_t seed_;
  OrderedScan scan_;
  std::vector<double> x_;
  std::unique_ptr<RebindableOracle<double>> oracle_;
  std::vector<Examined> examined_;
  double L_ = 0;
  std::vector<double> L_i_;  // for the examined clients
  // The mean square of the curvatures of each client's samples; then the largest curvature of all.
  std::vector<double> samples_;
};

}  // namespace

Smoothness estimate_smoothness(const ClientObjectives<double>& clients, std::span<const double> weights,
                               std::span<const double> x0, std::uint64_t seed, const OrderedScan& scan) {
  if (clients.clients() == 0 || x0.size() != clients.oracle()->dim())
    throw std::logic_error("estimate_smoothness: needs a client, and x0 of the length of its oracle");
  Estimate estimate(clients, weights, x0, seed, scan);
  estimate.look();
  estimate.descend();
  estimate.look();
  return estimate.result(clients.clients(), weights);
}

}  // namespace gradwire
