#pragma once

#include <cstddef>
#include <string_view>

#include "compressors/count.h"
#include "compressors/payload.h"
#include "gradwire/compressor.h"

namespace gradwire {

// TopLEK (arXiv:2410.08760). Let a_j be the share of ||x||^2 in the j largest entries, and choose j with
// a_j <= k/d <= a_{j+1}. TopLEK keeps the j+1 largest entries with probability q, where
// q a_{j+1} + (1-q) a_j = k/d, and otherwise the j largest. It never sends more than k entries.
struct TopLEK {
  static constexpr std::string_view name = "toplek";
  static constexpr std::string_view summary =
      "the fewest largest entries, at most k, that have k/d of ||x||^2 on average";
  static constexpr std::string_view constants_text =
      "contractive, alpha = k/d: E ||C(x) - x||^2 = (1 - k/d) ||x||^2 for every x";
  Count k;
  bool operator==(const TopLEK&) const = default;
  static void fields(auto& self, auto&& visit) { visit("k", self.k, "coordinates sent"); }

  CompressorConstants constants(std::size_t d) const {
    return CompressorConstants::of_contractive(static_cast<double>(k.count) / static_cast<double>(d),
                                               k.count);
  }

  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const;
};

}  // namespace gradwire
