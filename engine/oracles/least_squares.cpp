#include "engine/oracles/least_squares.h"

#include <algorithm>

#include "engine/regularizer.h"
#include "engine/smoothness/weighted_gram.h"

namespace gradwire {

template <class Real>
LeastSquaresOracle<Real>::LeastSquaresOracle(const Part& part, std::size_t dim, Regularizer regularizer,
                                             double lambda)
    : rows_(part.train, dim),
      target_(part.train.label.begin(), part.train.label.end()),
      regularizer_(regularizer),
      lambda_(lambda) {}

template <class Real>
Real LeastSquaresOracle<Real>::loss_and_gradient(std::span<const Real> x, Batch batch,
                                                 std::span<Real> gradient) {
  check_lengths(x, gradient, dim());
  const BatchRows rows(batch, sample_count());
  std::fill(gradient.begin(), gradient.end(), Real(0));
  const Real share = Real(1) / static_cast<Real>(rows.count());
  double loss = 0;
  for (std::size_t k = 0; k < rows.count(); ++k) {
    const std::size_t r = rows[k];
    const Real residual = rows_.dot(r, x.data()) - target_[r];
    loss += static_cast<double>(residual) * static_cast<double>(residual);
    rows_.add_scaled(r, residual * share, gradient.data());
  }
  loss /= 2 * static_cast<double>(rows.count());
  return static_cast<Real>(loss + add_regularizer(regularizer_, lambda_, x, gradient));
}

template <class Real>
bool LeastSquaresOracle<Real>::hessian(std::span<const Real> x, std::span<Real> upper) {
  check_length(x, dim());
  check_upper(upper, dim());
  if (gram_.empty()) {
    const BatchRows all({}, sample_count());
    const Real share = Real(1) / static_cast<Real>(all.count());
    gram_.assign(upper.size(), Real(0));
    WeightedGram<Real>(rows_).add(rows_, 0, std::vector<Real>(all.count(), share), gram_);
  }
  std::copy(gram_.begin(), gram_.end(), upper.begin());
  add_regularizer_hessian(regularizer_, lambda_, x, upper);
  return true;
}

template class LeastSquaresOracle<float>;
template class LeastSquaresOracle<double>;

}  // namespace gradwire
