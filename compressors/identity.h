#pragma once

#include <string_view>

#include "compressors/payload.h"
#include "gradwire/compressor.h"

namespace gradwire {

// C(x) = x.
struct Identity {
  static constexpr std::string_view name = "identity";
  static constexpr std::string_view summary = "the vector itself";
  static constexpr std::string_view constants_text = "omega = 0, alpha = 1";
  bool operator==(const Identity&) const = default;
  static void fields(auto&, auto&&) {}

  CompressorConstants constants(std::size_t d) const {
    return CompressorConstants::of_contractive(1, static_cast<double>(d));
  }

  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey&, Scratch<Real>&,
                                  PayloadBuffer<Real>& to) const {
    return to.whole(v);
  }
};

}  // namespace gradwire
