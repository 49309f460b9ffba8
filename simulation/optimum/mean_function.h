// f = sum_i w_i f_i of all clients in one process, for finding its minimum.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/client_objectives.h"

namespace gradwire {

class MeanFunction {
 public:
  // `weights` has shape (n); if it is empty, each weight is 1/n.
  MeanFunction(const ClientObjectives<double>& functions, std::vector<double> weights);

  std::size_t dim() const { return oracle_->dim(); }  // d

  // Returns f(x), added up in long double; x and gradient: shape (d).
  double value_and_gradient(std::span<const double> x, std::span<double> gradient);
  // Writes the upper triangle of the Hessian, shape (upper_size(d)). Returns false if it has no closed form.
  bool hessian(std::span<const double> x, std::span<double> upper);

 private:
  std::uint32_t clients_;
  std::vector<double> weights_;
  std::unique_ptr<RebindableOracle<double>> oracle_;
  std::vector<double> own_gradient_, own_hessian_;  // buffers for one client
};

}  // namespace gradwire
