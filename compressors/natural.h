#pragma once

#include <string_view>

#include "compressors/payload.h"
#include "compressors/rounding.h"
#include "gradwire/compressor.h"

namespace gradwire {

// Natural compression (arXiv:1905.10988): rounds each entry without bias to one of the two nearest powers of
// two. Subnormal numbers go to zero or the smallest normal number. Numbers with the largest exponent are
// never rounded up. Zeros keep their sign.
struct Natural {
  static constexpr std::string_view name = "natural";
  static constexpr std::string_view summary = "every entry rounded to a power of two: sign and exponent";
  static constexpr std::string_view constants_text = "unbiased, omega = 1/8";
  bool operator==(const Natural&) const = default;
  static void fields(auto&, auto&&) {}

  CompressorConstants constants(std::size_t d) const {
    return CompressorConstants::of_unbiased(0.125, static_cast<double>(d));
  }

  template <class Real>
  Packed<Real> round(std::span<Real> v, const RngKey& key, Scratch<Real>&) const;
  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const {
    return rounded(*this, v, key, scratch, to);
  }
};

}  // namespace gradwire
