#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "compressors/count.h"
#include "compressors/payload.h"
#include "gradwire/compressor.h"

namespace gradwire {

// RandSeqK (arXiv:2410.08760): k cyclic neighbours, the first one uniformly random. They are multiplied by
// d/k if `scaled`.
struct RandSeqK {
  static constexpr std::string_view name = "randseqk";
  static constexpr std::string_view summary =
      "k cyclic neighbours from a random start; the receiver redraws it";
  static constexpr std::string_view constants_text =
      "unbiased, omega = d/k - 1; scaled=false: contractive, alpha = k/d";
  Count k;
  bool scaled = true;
  bool operator==(const RandSeqK&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("k", self.k, "coordinates sent");
    visit("scaled", self.scaled, "multiply the values by d/k (unbiased)");
  }

  CompressorConstants constants(std::size_t d) const {
    const double ratio = static_cast<double>(d) / k.count;
    return scaled ? CompressorConstants::of_unbiased(ratio - 1, k.count)
                  : CompressorConstants::of_contractive(1 / ratio, k.count);
  }
  // Returns the factor of the coordinates that are sent.
  template <class Real>
  Real factor(std::size_t d) const {
    return scaled ? Real(d) / Real(k.count) : Real(1);
  }
  static std::uint32_t draw_first(const RngKey& key, std::uint32_t d) { return RngStream(key).below(d); }

  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>&,
                                  PayloadBuffer<Real>& to) const {
    const auto d = static_cast<std::uint32_t>(v.size());
    const std::uint32_t first = draw_first(key, d);
    const Real scale = factor<Real>(d);
    Vec<Real>& values = to.values();
    values.resize(k.count);
    const std::size_t head = std::min(k.count, d - first);  // before the wrap-around
    std::transform(v.begin() + first, v.begin() + first + head, values.begin(),
                   [=](Real x) { return scale * x; });
    std::transform(v.begin(), v.begin() + (k.count - head), values.begin() + head,
                   [=](Real x) { return scale * x; });
    to.range(d, first);
    to.set_seeded(key);
    return to.view();
  }
  bool redraw(Shape shape, std::size_t count, std::uint32_t dim, const RngKey& key,
              std::vector<std::uint32_t>&, std::uint32_t& first) const {
    if (shape != Shape::kRange || count != k.count) return false;
    first = draw_first(key, dim);
    return true;
  }
};

}  // namespace gradwire
