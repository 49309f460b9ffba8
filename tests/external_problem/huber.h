// A problem type that a user adds as docs/contributing/adding_parts.md describes: linear regression with
// bounded gradients for outliers. It needs this header, and one name in the list of
// engine/problems/problem.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/data/sparse_rows.h"
#include "engine/problems/linear_model.h"
#include "gradwire/oracle.h"

namespace gradwire {

// f_i(x) = mean_j h(a_j^T x - y_j) + R(x), h(r) = r^2/2 if |r| <= delta, else delta (|r| - delta/2).
template <class Real>
class HuberOracle final : public Oracle<Real> {
 public:
  HuberOracle(const Dataset& train, std::size_t dim, double delta, Regularizer regularizer, double lambda)
      : rows_(train, dim),
        target_(train.label.begin(), train.label.end()),
        delta_(delta),
        regularizer_(regularizer),
        lambda_(lambda) {}

  std::size_t dim() const override { return rows_.columns(); }
  std::size_t sample_count() const override { return rows_.rows(); }
  Real loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) override {
    const BatchRows rows(batch, sample_count());
    std::fill(gradient.begin(), gradient.end(), Real(0));
    double loss = 0;
    for (std::size_t k = 0; k < rows.count(); ++k) {
      const double r = rows_.dot(rows[k], x.data()) - target_[rows[k]];
      const double slope = std::clamp(r, -delta_, delta_);
      loss += slope * (r - slope / 2);
      rows_.add_scaled(rows[k], static_cast<Real>(slope / static_cast<double>(rows.count())),
                       gradient.data());
    }
    return static_cast<Real>(loss / static_cast<double>(rows.count()) +
                             add_regularizer(regularizer_, lambda_, x, gradient));
  }

 private:
  SparseRows<Real> rows_;
  std::vector<Real> target_;
  double delta_;
  Regularizer regularizer_;
  double lambda_;
};

struct Huber : LinearModel, LinearConstants<Huber> {
  static constexpr ProblemTraits traits{.name = "huber", .summary = "linear regression with the Huber loss"};
  double delta = 1;

  static void fields(auto& self, auto&& visit) {
    LinearModel::fields<Huber>(self, visit);
    visit("delta", self.delta, "larger residuals have a bounded gradient", {.low_open = true});
  }
  static LossCurvature curvature() { return {.largest = 1, .convex = true, .constant = false}; }
  template <class Real>
  std::unique_ptr<Oracle<Real>> oracle(const DataSchema& schema, const ClientDataset& part, std::uint32_t,
                                       const AllClients&) const {
    return std::make_unique<HuberOracle<Real>>(with_features(schema, part).train, dim(schema), delta,
                                               regularizer, lambda);
  }
};

}  // namespace gradwire
