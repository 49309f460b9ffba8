#include "engine/oracles/logistic.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/elementary.h"
#include "engine/oracles/linear_capabilities.h"
#include "engine/regularizer.h"

namespace gradwire {
namespace {

// Rows are taken in blocks: the exponentials of a block are computed together, and the block stays in the
// cache between its two passes. The order of sums does not change.
constexpr std::size_t kBlockRows = 128;

// Computes, for each margin z, loss = log(1 + e^-z) and slope = -d loss / dz = 1 / (1 + e^z), without
// overflow for any |z|.
template <class Real>
void logistic_losses(std::size_t count, const Real* __restrict margin, Real* __restrict loss,
                     Real* __restrict slope) {
  for (std::size_t k = 0; k < count; ++k) {
    const Real z = margin[k];
    const bool negative = z < 0;
    const Real size = negative ? -z : z;
    const Real e = fast_exp(-size);  // in [0, 1]
    const Real inverse = 1 / (1 + e);
    loss[k] = (negative ? size : Real(0)) + log1p_unit(e);
    slope[k] = (negative ? Real(1) : e) * inverse;
  }
}

// Computes the same for loss = s^2 with s = 1 / (1 + e^z): slope = 2 s^2 (1 - s).
template <class Real>
void sigmoid_squared_losses(std::size_t count, const Real* __restrict margin, Real* __restrict loss,
                            Real* __restrict slope) {
  for (std::size_t k = 0; k < count; ++k) {
    const Real z = margin[k];
    const bool negative = z < 0;
    const Real e = fast_exp(negative ? z : -z);
    const Real large = 1 / (1 + e), small = e * large;  // sigma(|z|) and sigma(-|z|), with sum 1
    const Real s = negative ? large : small;
    const Real rest = negative ? small : large;
    loss[k] = s * s;
    slope[k] = 2 * (s * s) * rest;
  }
}

template <class Real>
void losses_and_slopes(LinearLoss loss, std::size_t count, const Real* margin, Real* losses, Real* slope) {
  if (loss == LinearLoss::kLogistic) return logistic_losses(count, margin, losses, slope);
  sigmoid_squared_losses(count, margin, losses, slope);
}

// Computes d^2 loss / dz^2 of each margin: s (1 - s), or 2 s^2 (1 - s) (2 - 3 s), with s as above.
template <class Real>
void curvatures(LinearLoss loss, std::size_t count, const Real* __restrict margin,
                Real* __restrict curvature) {
  const bool logistic = loss == LinearLoss::kLogistic;
  for (std::size_t k = 0; k < count; ++k) {
    const Real z = margin[k];
    const bool negative = z < 0;
    const Real e = fast_exp(negative ? z : -z);
    const Real large = 1 / (1 + e), small = e * large;
    const Real s = negative ? large : small;
    const Real product = large * small;
    curvature[k] = logistic ? product : 2 * s * product * (2 - 3 * s);
  }
}

// Returns -1 or +1 for each label, or 0 for a label that is neither of the two.
template <class Real>
std::vector<Real> signs(const Dataset& data, std::span<const double> labels) {
  std::vector<Real> sign(data.rows());
  for (std::size_t r = 0; r < data.rows(); ++r) {
    sign[r] = static_cast<Real>((data.label[r] == labels[1]) - (data.label[r] == labels[0]));
  }
  return sign;
}

}  // namespace

template <class Real>
LogisticOracle<Real>::LabelledRows::LabelledRows(SharedSamples&& samples, std::size_t dim,
                                                 std::span<const double> labels)
    : rows(std::move(samples.train), dim),
      sign(signs<Real>(samples.train, labels)),
      test_rows(std::move(samples.test), dim),
      test_sign(signs<Real>(samples.test, labels)) {
  const auto unknown = std::find(sign.begin(), sign.end(), Real(0));
  if (unknown == sign.end()) return;
  throw DataError("a sample has the label " + std::to_string(samples.train.label[unknown - sign.begin()]) +
                  ", but the clients agreed on the labels " + std::to_string(labels[0]) + " and " +
                  std::to_string(labels[1]));
}

template <class Real>
LogisticOracle<Real>::LogisticOracle(SharedSamples samples, std::size_t dim, std::span<const double> labels,
                                     Regularizer regularizer, double lambda, LinearLoss loss,
                                     KernelSet kernels)
    : data_(std::make_shared<const LabelledRows>(std::move(samples), dim, labels)),
      at_(std::move(samples.train_shares), std::move(samples.test_shares)),
      regularizer_(regularizer),
      lambda_(lambda),
      loss_(loss),
      gram_(kernels) {}

template <class Real>
Real LogisticOracle<Real>::loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) {
  check_lengths(x, gradient, dim());
  const BatchRows rows(batch, at_.train());
  std::fill(gradient.begin(), gradient.end(), Real(0));
  const Real share = Real(1) / static_cast<Real>(rows.count());
  double loss = 0;
  Real margin[kBlockRows], losses[kBlockRows], slope[kBlockRows];
  for (std::size_t start = 0; start < rows.count(); start += kBlockRows) {
    const std::size_t count = std::min(kBlockRows, rows.count() - start);
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t r = rows[start + k];
      margin[k] = data_->sign[r] * data_->rows.dot(r, x.data());
    }
    losses_and_slopes(loss_, count, margin, losses, slope);
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t r = rows[start + k];
      loss += static_cast<double>(losses[k]);
      data_->rows.add_scaled(r, -data_->sign[r] * slope[k] * share, gradient.data());
    }
  }
  loss /= static_cast<double>(rows.count());
  return static_cast<Real>(loss + add_regularizer(regularizer_, lambda_, x, gradient));
}

template <class Real>
bool LogisticOracle<Real>::hessian(std::span<const Real> x, std::span<Real> upper) {
  check_length(x, dim());
  check_upper(upper, dim());
  const BatchRows rows({}, at_.train());
  gram_.start(data_->rows, at_.train());
  std::fill(upper.begin(), upper.end(), Real(0));
  const Real share = Real(1) / static_cast<Real>(rows.count());
  Real margin[kBlockRows], curvature[kBlockRows];
  for (std::size_t start = 0; start < rows.count(); start += kBlockRows) {
    const std::size_t count = std::min(kBlockRows, rows.count() - start);
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t r = rows[start + k];
      margin[k] = data_->sign[r] * data_->rows.dot(r, x.data());
    }
    curvatures(loss_, count, margin, curvature);
    for (std::size_t k = 0; k < count; ++k) curvature[k] *= share;
    gram_.add(data_->rows, start, {curvature, count}, upper);
  }
  add_regularizer_hessian(regularizer_, lambda_, x, upper);
  return true;
}

template <class Real>
std::optional<Score> LogisticOracle<Real>::score(std::span<const Real> x) {
  check_length(x, dim());
  const ClientRows& tested = at_.test();
  if (tested.count == 0) return std::nullopt;
  Score score;
  for (std::size_t k = 0; k < tested.count; ++k) {
    const std::size_t r = tested[k];
    const Real margin = data_->test_rows.dot(r, x.data());
    score.correct += !std::isnan(margin) && (margin > 0 ? Real(1) : Real(-1)) == data_->test_sign[r];
    ++score.tested;
  }
  return score;
}

template <class Real>
template <class F>
auto LogisticOracle<Real>::with_capabilities(Batch batch, F&& f) {
  const BatchRows rows(batch, at_.train());
  const auto losses = [this](std::size_t count, const std::size_t* row, const Real* z, Real* slope,
                             double& sum) {
    Real margin[kBlockRows], loss[kBlockRows];
    for (std::size_t k = 0; k < count; ++k) margin[k] = data_->sign[row[k]] * z[k];
    losses_and_slopes(loss_, count, margin, loss, slope);
    for (std::size_t k = 0; k < count; ++k) {
      sum += static_cast<double>(loss[k]);
      slope[k] = -data_->sign[row[k]] * slope[k];
    }
  };
  const auto mean = [&rows](double sum) { return sum / static_cast<double>(rows.count()); };
  return f(LinearCapabilities(data_->rows, rows, regularizer_, lambda_, losses, mean));
}

template class LinearOracle<float, LogisticOracle<float>>;
template class LinearOracle<double, LogisticOracle<double>>;
template class LogisticOracle<float>;
template class LogisticOracle<double>;

}  // namespace gradwire
