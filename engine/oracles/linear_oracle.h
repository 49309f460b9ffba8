// The common part of the oracles of linear models: optional operations that need only the rows and a loss.
#pragma once

#include <optional>
#include <span>

#include "engine/client_objectives.h"

namespace gradwire {

// Self has two members that only this class uses,
//   auto with_capabilities(Batch, f)          calls f(LinearCapabilities) for the rows of a batch
//   const SparseRows<Real>& rows() const
// The functions are defined in linear_capabilities.h, which the .cpp of Self includes.
template <class Real, class Self>
class LinearOracle : public RebindableOracle<Real> {
 public:
  std::optional<Real> compute(std::span<const Real> x, Batch batch, std::span<Real> gradient,
                              const GradientOptions& options) override;
  double cost(const Coordinates& wanted) const override;
  Real loss(std::span<const Real> x, Batch batch) override;
  Directional<Real> directional(std::span<const Real> x, std::span<const Real> v, Batch batch) override;
  TwoLosses<Real> two_gradients(std::span<const Real> x, std::span<const Real> y, Batch batch,
                                std::span<Real> at_x, std::span<Real> at_y) override;
  Real clipped_gradient(std::span<const Real> x, Batch batch, double norm_bound,
                        std::span<Real> gradient) override;

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

}  // namespace gradwire
