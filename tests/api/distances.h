// Functions of clients for the tests of train().
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gradwire/oracle.h"

namespace gradwire {

// f_i(x) = ||x - a||^2 / 2.
template <class Real>
class Distance : public Oracle<Real> {
 public:
  explicit Distance(std::vector<Real> a) : a_(std::move(a)) {}
  std::size_t dim() const override { return a_.size(); }
  std::size_t sample_count() const override { return 1; }
  Real loss_and_gradient(std::span<const Real> x, Batch, std::span<Real> gradient) override {
    Real loss = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      gradient[j] = x[j] - a_[j];
      loss += gradient[j] * gradient[j] / 2;
    }
    return loss;
  }

 private:
  std::vector<Real> a_;  // shape (d)
};

template <class Real>
std::vector<Distance<Real>> distances() {
  return {Distance<Real>({1, 0, 4}), Distance<Real>({3, 0, 0}), Distance<Real>({0, 8, 0}),
          Distance<Real>({0, 0, 0})};
}

struct SensorLost : std::runtime_error {
  SensorLost() : std::runtime_error("sensor lost") {}
};

// Throws at the 30th gradient.
struct FailsLater : Distance<double> {
  using Distance<double>::Distance;
  double loss_and_gradient(std::span<const double> x, Batch batch, std::span<double> gradient) override {
    if (++calls == 30) throw SensorLost();
    return Distance<double>::loss_and_gradient(x, batch, gradient);
  }
  int calls = 0;
};

}  // namespace gradwire
