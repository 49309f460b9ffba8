#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "compressors/count.h"
#include "compressors/payload.h"
#include "gradwire/compressor.h"

namespace gradwire {

// RandK: the coordinates x_S in a uniformly random k-subset S, drawn from the key. Sends (d/k) x_S, or x_S if
// scaled=false.
struct RandK {
  static constexpr std::string_view name = "randk";
  static constexpr std::string_view summary = "k random entries; the receiver redraws their indices";
  static constexpr std::string_view constants_text =
      "unbiased, omega = d/k - 1; scaled=false: contractive, alpha = k/d";
  Count k;
  bool scaled = true;
  bool operator==(const RandK&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("k", self.k, "coordinates sent");
    visit("scaled", self.scaled, "multiply the values by d/k (unbiased)");
  }

  CompressorConstants constants(std::size_t d) const;
  // Returns the factor of the coordinates that are sent.
  template <class Real>
  Real factor(std::size_t d) const {
    return scaled ? Real(d) / Real(k.count) : Real(1);
  }

  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const;
  bool redraw(Shape shape, std::size_t count, std::uint32_t dim, const RngKey& key,
              std::vector<std::uint32_t>& indices, std::uint32_t& first) const;
};

// Writes a uniformly random k-subset of [0, d), ascending, into `out`; k <= d. Takes O(k + d/64) steps.
void draw_subset(const RngKey& key, std::uint32_t k, std::uint32_t d, std::vector<std::uint32_t>& out);

}  // namespace gradwire
