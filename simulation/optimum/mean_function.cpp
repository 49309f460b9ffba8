#include "simulation/optimum/mean_function.h"

#include <algorithm>
#include <utility>

namespace gradwire {

MeanFunction::MeanFunction(const ClientObjectives<double>& functions, std::vector<double> weights)
    : clients_(functions.clients()), weights_(std::move(weights)), oracle_(functions.oracle()) {
  if (weights_.empty()) weights_.assign(clients_, 1.0 / clients_);
  own_gradient_.resize(oracle_->dim());
}

double MeanFunction::value_and_gradient(std::span<const double> x, std::span<double> gradient) {
  long double value = 0;
  std::fill(gradient.begin(), gradient.end(), 0);
  for (std::uint32_t i = 0; i < clients_; ++i) {
    oracle_->bind(i);
    value += static_cast<long double>(weights_[i]) * oracle_->loss_and_gradient(x, {}, own_gradient_);
    for (std::size_t j = 0; j < gradient.size(); ++j) gradient[j] += weights_[i] * own_gradient_[j];
  }
  return static_cast<double>(value);
}

bool MeanFunction::hessian(std::span<const double> x, std::span<double> upper) {
  own_hessian_.resize(upper.size());
  std::fill(upper.begin(), upper.end(), 0);
  for (std::uint32_t i = 0; i < clients_; ++i) {
    oracle_->bind(i);
    if (!oracle_->hessian(x, own_hessian_)) return false;
    for (std::size_t j = 0; j < upper.size(); ++j) upper[j] += weights_[i] * own_hessian_[j];
  }
  return true;
}

}  // namespace gradwire
