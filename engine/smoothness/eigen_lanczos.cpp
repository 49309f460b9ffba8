#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/random.h"
#include "engine/smoothness/eigen.h"

namespace gradwire {
namespace {

constexpr double kRelativeResidual = 1e-13;
constexpr std::size_t kMaxProducts = 20'000;
constexpr std::size_t kBasisNumbers = std::size_t{1} << 26;  // at most 512 MiB of basis vectors, then restart
constexpr std::size_t kMinBasis = 30;
constexpr std::size_t kMaxBasis = 1000;

// Returns the inner product. It has eight running sums: with a single sum, each addition would wait for the
// one before.
double dot(std::span<const double> a, std::span<const double> b) {
  constexpr std::size_t kLanes = 8;
  double sums[kLanes] = {};
  std::size_t j = 0;
  for (; j + kLanes <= a.size(); j += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[j + lane] * b[j + lane];
  }
  for (; j < a.size(); ++j) sums[0] += a[j] * b[j];
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

void add_scaled(double scale, std::span<const double> x, std::span<double> y) {
  for (std::size_t j = 0; j < y.size(); ++j) y[j] += scale * x[j];
}

// Divides v by its norm and returns the norm. A zero v is unchanged.
double normalize(std::span<double> v) {
  double scale = 0;
  for (const double entry : v) scale = std::max(scale, std::abs(entry));
  if (scale == 0) return 0;
  for (double& entry : v) entry /= scale;
  const double norm = std::sqrt(dot(v, v));
  for (double& entry : v) entry /= norm;
  return norm * scale;
}

// Returns the eigenvector of T for its largest eigenvalue theta, with norm 1. Computes the entries from the
// last to the first, because the ratios of neighbours are then pivots of theta I - T. Pivots are positive up
// to rounding, so errors do not grow.
std::vector<double> top_eigenvector(const Tridiagonal& t, double theta) {
  const std::size_t k = t.size();
  constexpr double kTooLarge = 1e150;
  std::vector<double> s(k);
  s[k - 1] = 1;
  for (std::size_t i = k - 1; i > 0; --i) {
    const double after = i + 1 < k ? t.off_diagonal[i] * s[i + 1] : 0;
    s[i - 1] = ((theta - t.diagonal[i]) * s[i] - after) / t.off_diagonal[i - 1];
    if (std::abs(s[i - 1]) > kTooLarge) {
      for (std::size_t j = i - 1; j < k; ++j) s[j] /= kTooLarge;
    }
  }
  normalize(s);
  return s;
}

}  // namespace

double largest_eigenvalue(std::size_t n, const SymmetricOperator& apply) {
  if (n == 0) return 0;
  const std::size_t most = std::min(n, std::clamp(kBasisNumbers / n, kMinBasis, kMaxBasis));
  std::vector<std::vector<double>> basis(1, std::vector<double>(n));
  Random random(1, "lanczos start");
  for (double& entry : basis[0]) entry = random.normal();
  normalize(basis[0]);

  std::vector<double> w(n);
  Tridiagonal t;
  double theta = 0;
  for (std::size_t products = 0; products < kMaxProducts; ++products) {
    apply(basis.back(), w);
    double alpha = 0;
    for (int pass = 0; pass < 2;
         ++pass) {  // twice is enough (Parlett, The Symmetric Eigenvalue Problem, 6.9)
      for (std::size_t i = basis.size(); i-- > 0;) {
        const double overlap = dot(basis[i], w);
        add_scaled(-overlap, basis[i], w);
        if (i + 1 == basis.size()) alpha += overlap;
      }
    }
    t.diagonal.push_back(alpha);
    const double beta = normalize(w);
    theta = std::max(0.0, eigenvalue(t, t.size() - 1));
    const std::vector<double> s = top_eigenvector(t, theta);
    // The residual of the Ritz vector is beta |s_last|: an eigenvalue of A is at most that far from theta.
    if (beta * std::abs(s.back()) <= kRelativeResidual * theta || t.size() == n) return theta;
    if (t.size() < most) {
      t.off_diagonal.push_back(beta);
      basis.push_back(w);
      continue;
    }
    std::vector<double> restart(n);
    for (std::size_t i = 0; i < basis.size(); ++i) add_scaled(s[i], basis[i], restart);
    normalize(restart);
    basis.assign(1, std::move(restart));
    t = {};
  }
  return theta;
}

}  // namespace gradwire
