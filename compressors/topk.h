#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "compressors/count.h"
#include "compressors/payload.h"
#include "gradwire/compressor.h"

namespace gradwire {

// TopK: keeps the k entries of largest absolute value. If two are equal, the one with the smaller index comes
// first.
struct TopK {
  static constexpr std::string_view name = "topk";
  static constexpr std::string_view summary = "the k entries of largest absolute value";
  static constexpr std::string_view constants_text = "contractive, alpha = k/d";
  Count k;
  bool operator==(const TopK&) const = default;
  static void fields(auto& self, auto&& visit) { visit("k", self.k, "coordinates sent"); }

  CompressorConstants constants(std::size_t d) const {
    return CompressorConstants::of_contractive(static_cast<double>(k.count) / static_cast<double>(d),
                                               k.count);
  }

  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const;
};

// Writes the indices of the k largest entries of |v| into `out`, ascending; 1 <= k <= d. Takes O(d) steps.
template <class Real>
void select_largest(View<Real> v, std::uint32_t k, Scratch<Real>& scratch, std::vector<std::uint32_t>& out);

}  // namespace gradwire
