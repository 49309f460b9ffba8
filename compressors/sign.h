#pragma once

#include <cstddef>
#include <string_view>

#include "compressors/norms.h"
#include "compressors/rounding.h"
#include "gradwire/compressor.h"

namespace gradwire {

// Scaled sign: (||x||_1 / d) sign(x), where the sign of 0 is its sign bit. For one x, the constant alpha is
// ||x||_1^2 / (d ||x||^2).
struct Sign {
  static constexpr std::string_view name = "sign";
  static constexpr std::string_view summary = "the mean absolute value and the signs";
  static constexpr std::string_view constants_text = "contractive, alpha = 1/d (up to 1, by x)";
  bool operator==(const Sign&) const = default;
  static void fields(auto&, auto&&) {}

  CompressorConstants constants(std::size_t d) const {
    return CompressorConstants::of_contractive(1 / static_cast<double>(d), static_cast<double>(d));
  }

  template <class Real>
  Packed<Real> round(std::span<Real> v, const RngKey&, Scratch<Real>&) const {
    const auto unit = static_cast<Real>(norm<Real>(v, 1).over(static_cast<double>(v.size())));
    for (Real& x : v) x = std::copysign(unit, x);
    return {Packing::kSigns, 0, unit};
  }
  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const {
    return rounded(*this, v, key, scratch, to);
  }
};

}  // namespace gradwire
