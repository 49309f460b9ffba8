#pragma once

#include <cstddef>
#include <string_view>

#include "base/field.h"
#include "compressors/payload.h"
#include "gradwire/compressor.h"

namespace gradwire {

// C(x) = x / p with probability p, and otherwise 0, as an empty payload.
struct Bernoulli {
  static constexpr std::string_view name = "bernoulli";
  static constexpr std::string_view summary = "the whole vector with probability p, else an empty message";
  static constexpr std::string_view constants_text = "unbiased, omega = 1/p - 1";
  double p = 0.5;
  bool operator==(const Bernoulli&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("p", self.p, "probability to send", Constraints{.low = 1e-30, .high = 1});  // keeps 1/p finite
  }

  CompressorConstants constants(std::size_t d) const {
    return CompressorConstants::of_unbiased(1 / p - 1, p * static_cast<double>(d));
  }
  // Returns the largest number of values of one payload.
  std::size_t most_values(std::size_t d) const { return d; }

  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>&,
                                  PayloadBuffer<Real>& to) const {
    to.values().reserve(v.size());  // the first whole() swaps this buffer into v
    if (RngStream(key).uniform() >= p) return to.nothing(static_cast<std::uint32_t>(v.size()));
    if (p < 1) {
      const Real scale = static_cast<Real>(1 / p);
      for (Real& x : v) x *= scale;
    }
    return to.whole(v);
  }
};

}  // namespace gradwire
