// Optional operations of linear models f_i(x) = mean_j phi_j(a_j^T x) + R(x). The gradient of sample j is a
// number times a_j. All sums are in the order of loss_and_gradient(), so the results have the same bits as
// there.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/data/sparse_rows.h"
#include "engine/lane_sum.h"
#include "engine/oracles/linear_oracle.h"
#include "engine/regularizer.h"

namespace gradwire {

// The operations for one batch. `losses(count, row, z, slope, sum)` handles the samples k < count in order.
// With z[k] = a^T x for row number row[k], it adds phi(z[k]) to `sum` and writes phi'(z[k]) to slope[k].
// `mean` turns that sum into the mean loss.
template <class Real, class Losses, class Mean>
class LinearCapabilities {
 public:
  LinearCapabilities(const SparseRows<Real>& rows, const BatchRows& batch, Regularizer regularizer,
                     double lambda, Losses losses, Mean mean)
      : rows_(rows),
        batch_(batch),
        regularizer_(regularizer),
        lambda_(lambda),
        share_(Real(1) / static_cast<Real>(batch.count())),
        losses_(losses),
        mean_(mean) {}

  std::optional<Real> compute(std::span<const Real> x, std::span<Real> gradient,
                              const GradientOptions& options) {
    check_options(options, x.size());
    const bool restricts = restricts_rows(rows_, options.wanted);
    const Coordinates all, &wanted = restricts ? options.wanted : all;
    wanted.for_runs(x.size(), [&](std::size_t first, std::size_t end) {
      std::fill(gradient.begin() + static_cast<std::ptrdiff_t>(first),
                gradient.begin() + static_cast<std::ptrdiff_t>(end), Real(0));
    });
    double sum = 0;
    Real z[kBlockRows], slope[kBlockRows];
    std::size_t row[kBlockRows];
    for (std::size_t start = 0; start < batch_.count(); start += kBlockRows) {
      const std::size_t count = take(start, row);
      for (std::size_t k = 0; k < count; ++k) {
        if (stopped(options.stop)) return std::nullopt;
        z[k] = rows_.dot(row[k], x.data());
      }
      losses_(count, row, z, slope, sum);
      for (std::size_t k = 0; k < count; ++k) {
        if (stopped(options.stop)) return std::nullopt;
        if (restricts)
          add_wanted(row[k], slope[k] * share_, wanted, gradient);
        else
          rows_.add_scaled(row[k], slope[k] * share_, gradient.data());
      }
    }
    add_regularizer_slopes(regularizer_, lambda_, x, wanted, gradient);
    if (options.finished) options.finished({0, x.size()});
    return total(sum, x);
  }

  Real loss(std::span<const Real> x) {
    double sum = 0;
    for_blocks(x, [&](std::size_t count, const std::size_t* row, const Real* z, Real* slope) {
      losses_(count, row, z, slope, sum);
    });
    return total(sum, x);
  }

  Directional<Real> directional(std::span<const Real> x, std::span<const Real> v) {
    double sum = 0, derivative = 0;
    Real z[kBlockRows], moved[kBlockRows], slope[kBlockRows];
    std::size_t row[kBlockRows];
    for (std::size_t start = 0; start < batch_.count(); start += kBlockRows) {
      const std::size_t count = take(start, row);
      for (std::size_t k = 0; k < count; ++k) rows_.two_dots(row[k], x.data(), v.data(), z[k], moved[k]);
      losses_(count, row, z, slope, sum);
      for (std::size_t k = 0; k < count; ++k)
        derivative += static_cast<double>(slope[k]) * static_cast<double>(moved[k]);
    }
    derivative /= static_cast<double>(batch_.count());
    return {total(sum, x),
            static_cast<Real>(derivative + regularizer_derivative(regularizer_, lambda_, x, v))};
  }

  // Reads each row once for both points.
  TwoLosses<Real> two_gradients(std::span<const Real> x, std::span<const Real> y, std::span<Real> at_x,
                                std::span<Real> at_y) {
    std::fill(at_x.begin(), at_x.end(), Real(0));
    std::fill(at_y.begin(), at_y.end(), Real(0));
    double sum_x = 0, sum_y = 0;
    Real z_x[kBlockRows], z_y[kBlockRows], slope_x[kBlockRows], slope_y[kBlockRows];
    std::size_t row[kBlockRows];
    for (std::size_t start = 0; start < batch_.count(); start += kBlockRows) {
      const std::size_t count = take(start, row);
      for (std::size_t k = 0; k < count; ++k) rows_.two_dots(row[k], x.data(), y.data(), z_x[k], z_y[k]);
      losses_(count, row, z_x, slope_x, sum_x);
      losses_(count, row, z_y, slope_y, sum_y);
      for (std::size_t k = 0; k < count; ++k)
        rows_.add_two_scaled(row[k], slope_x[k] * share_, at_x.data(), slope_y[k] * share_, at_y.data());
    }
    add_regularizer(regularizer_, lambda_, x, at_x);
    add_regularizer(regularizer_, lambda_, y, at_y);
    return {total(sum_x, x), total(sum_y, y)};
  }

  // Uses ||s a + r||^2 = s^2 ||a||^2 + 2 s a^T r + ||r||^2, with the slope s and the gradient r of R.
  template <class FactorOf>
  Real clipped(std::span<const Real> x, FactorOf&& factor_of, std::span<Real> gradient) {
    std::vector<Real> r;
    double square_of_r = 0;
    if (regularizer_ != Regularizer::kNone && lambda_ != 0) {
      r.resize(x.size());
      add_regularizer(regularizer_, lambda_, x, std::span<Real>(r));
      square_of_r = lane_sum(
          r.size(), [&](std::size_t j) { return static_cast<double>(r[j]) * static_cast<double>(r[j]); });
    }
    const Real* with = r.empty() ? x.data() : r.data();
    std::fill(gradient.begin(), gradient.end(), Real(0));
    double sum = 0, factors = 0;
    Real z[kBlockRows], slope[kBlockRows], with_r[kBlockRows], squares[kBlockRows];
    std::size_t row[kBlockRows];
    for (std::size_t start = 0; start < batch_.count(); start += kBlockRows) {
      const std::size_t count = take(start, row);
      for (std::size_t k = 0; k < count; ++k) {
        const auto sums = rows_.sums(row[k], x.data(), with);
        z[k] = sums.with_x;
        with_r[k] = sums.with_y;
        squares[k] = sums.square;
      }
      losses_(count, row, z, slope, sum);
      for (std::size_t k = 0; k < count; ++k) {
        const double s = static_cast<double>(slope[k]);
        double square = s * s * static_cast<double>(squares[k]);
        if (!r.empty()) square += 2 * s * static_cast<double>(with_r[k]) + square_of_r;
        const double factor = factor_of(square);
        factors += factor;
        slope[k] = static_cast<Real>(factor * s) * share_;
      }
      for (std::size_t k = 0; k < count; ++k) rows_.add_scaled(row[k], slope[k], gradient.data());
    }
    const Real of_r = static_cast<Real>(factors) * share_;
    for (std::size_t j = 0; j < r.size(); ++j) gradient[j] += of_r * r[j];
    return total(sum, x);
  }

 private:
  static constexpr std::size_t kBlockRows = 128;

  std::size_t take(std::size_t start, std::size_t* row) const {
    const std::size_t count = std::min(kBlockRows, batch_.count() - start);
    for (std::size_t k = 0; k < count; ++k) row[k] = batch_[start + k];
    return count;
  }
  template <class F>
  void for_blocks(std::span<const Real> x, F&& f) {
    Real z[kBlockRows], slope[kBlockRows];
    std::size_t row[kBlockRows];
    for (std::size_t start = 0; start < batch_.count(); start += kBlockRows) {
      const std::size_t count = take(start, row);
      for (std::size_t k = 0; k < count; ++k) z[k] = rows_.dot(row[k], x.data());
      f(count, row, z, slope);
    }
  }
  void add_wanted(std::size_t r, Real scale, const Coordinates& wanted, std::span<Real> gradient) const {
    wanted.for_runs(gradient.size(), [&](std::size_t first, std::size_t end) {
      rows_.add_scaled(r, scale, first, end, gradient.data());
    });
  }
  Real total(double sum, std::span<const Real> x) const {
    return static_cast<Real>(mean_(sum) + regularizer_value(regularizer_, lambda_, x));
  }

  const SparseRows<Real>& rows_;
  const BatchRows& batch_;
  Regularizer regularizer_;
  double lambda_;
  Real share_;
  Losses losses_;
  Mean mean_;
};

// Returns whether to compute a gradient only at the wanted coordinates. They must be a range, and the rows so
// long that finding the range in each row takes less time than all its products.
template <class Real>
bool restricts_rows(const SparseRows<Real>& rows, const Coordinates& wanted) {
  constexpr std::size_t kLongRow = 100;
  return wanted.is_ranges() && rows.nonzeros() >= kLongRow * rows.rows() &&
         2 * wanted.count({0, rows.columns()}) <= rows.columns();
}

// Returns the cost as a share of that of a full gradient. All products with x are needed, but the products
// with the slopes only at the wanted coordinates.
template <class Real>
double linear_cost(const SparseRows<Real>& rows, const Coordinates& wanted) {
  wanted.check(rows.columns());
  if (!restricts_rows(rows, wanted)) return 1;
  // The sums of the forward pass depend on each other, so they take longer than the additions to a gradient.
  constexpr double kForward = 0.6;
  return kForward + (1 - kForward) * static_cast<double>(wanted.count({0, rows.columns()})) /
                        static_cast<double>(rows.columns());
}

// ---- LinearOracle ----

template <class Real, class Self>
std::optional<Real> LinearOracle<Real, Self>::compute(std::span<const Real> x, Batch batch,
                                                      std::span<Real> gradient,
                                                      const GradientOptions& options) {
  check_lengths(x, gradient, this->dim());
  return self().with_capabilities(
      batch, [&](auto capabilities) { return capabilities.compute(x, gradient, options); });
}

template <class Real, class Self>
double LinearOracle<Real, Self>::cost(const Coordinates& wanted) const {
  return linear_cost(static_cast<const Self&>(*this).rows(), wanted);
}

template <class Real, class Self>
Real LinearOracle<Real, Self>::loss(std::span<const Real> x, Batch batch) {
  check_length(x, this->dim());
  return self().with_capabilities(batch, [&](auto capabilities) { return capabilities.loss(x); });
}

template <class Real, class Self>
Directional<Real> LinearOracle<Real, Self>::directional(std::span<const Real> x, std::span<const Real> v,
                                                        Batch batch) {
  check_length(x, this->dim());
  check_length(v, this->dim());
  return self().with_capabilities(batch, [&](auto capabilities) { return capabilities.directional(x, v); });
}

template <class Real, class Self>
TwoLosses<Real> LinearOracle<Real, Self>::two_gradients(std::span<const Real> x, std::span<const Real> y,
                                                        Batch batch, std::span<Real> at_x,
                                                        std::span<Real> at_y) {
  check_lengths(x, at_x, this->dim());
  check_lengths(y, at_y, this->dim());
  return self().with_capabilities(
      batch, [&](auto capabilities) { return capabilities.two_gradients(x, y, at_x, at_y); });
}

template <class Real, class Self>
Real LinearOracle<Real, Self>::clipped_gradient(std::span<const Real> x, Batch batch, double norm_bound,
                                                std::span<Real> gradient) {
  check_lengths(x, gradient, this->dim());
  this->check_norm_bound(norm_bound);
  const auto factor = [&](double square) { return this->clip_factor(norm_bound, square); };
  return self().with_capabilities(
      batch, [&](auto capabilities) { return capabilities.clipped(x, factor, gradient); });
}

}  // namespace gradwire
