// A check of a program's oracle: whether its first gradient writes all numbers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "engine/forwarding_oracle.h"

namespace gradwire {

template <class Real>
class FirstGradient final : public ForwardingOracle<Real, FirstGradient<Real>> {
 public:
  // `name` is what errors call the oracle, as in "the function of client 3".
  FirstGradient(std::shared_ptr<Oracle<Real>> inner, std::string name)
      : inner_(std::move(inner)), name_(std::move(name)) {}

  // Throw std::logic_error if the first gradient leaves a number unwritten.
  Real loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) override {
    if (!is_first_) [[likely]]
      return inner().loss_and_gradient(x, batch, gradient);
    std::ranges::fill(gradient, std::bit_cast<Real>(kUnwritten));
    const Real loss = inner().loss_and_gradient(x, batch, gradient);
    check(gradient);
    return loss;
  }
  std::optional<Real> compute(std::span<const Real> x, Batch batch, std::span<Real> gradient,
                              const GradientOptions& options) override {
    if (!is_first_ || !options.wanted.all()) [[likely]]
      return inner().compute(x, batch, gradient, options);
    std::ranges::fill(gradient, std::bit_cast<Real>(kUnwritten));
    const std::optional<Real> loss = inner().compute(x, batch, gradient, options);
    if (loss) check(gradient);  // else it was stopped
    return loss;
  }

  Oracle<Real>& inner() const { return *inner_; }

 private:
  // A NaN that no computation gives. A sum with it has the same bits.
  using Bits = std::conditional_t<sizeof(Real) == 8, std::uint64_t, std::uint32_t>;
  static constexpr Bits kUnwritten = sizeof(Real) == 8 ? Bits(0x7ff8'6772'6164'7769) : Bits(0x7fc5'6772);

  void check(std::span<const Real> gradient) {
    is_first_ = false;
    const auto unwritten =
        std::ranges::find(gradient, kUnwritten, [](Real g) { return std::bit_cast<Bits>(g); });
    if (unwritten == gradient.end()) return;
    throw std::logic_error(name_ + " did not write gradient[" + std::to_string(unwritten - gradient.begin()) +
                           "], or read it before; write all " + std::to_string(gradient.size()) +
                           " numbers, which are arbitrary at first");
  }

  std::shared_ptr<Oracle<Real>> inner_;
  const std::string name_;
  bool is_first_ = true;
};

}  // namespace gradwire
