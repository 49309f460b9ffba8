// Compressors built from other compressors. `parts` lists these in the order in which they are written.
//   OUTER(INNER)     OUTER rounds the values that INNER sends; the support is that of INNER
//   scaled(C)        C / (1 + omega)
//   induced(C1,C2)   C1(x) + C2(x - C1(x)), both sent (arXiv:2006.11077)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "compressors/payload.h"
#include "gradwire/compressor.h"

namespace gradwire {

class Compressor;

// Offsets of the RNG domain: kOuterDraw for OUTER of OUTER(INNER), kSecondDraw for C2 of induced(C1,C2). The
// payload of C2 is the second link. INNER and C1 use the plain key. The receiver redraws supports from these
// keys.
inline constexpr std::uint32_t kOuterDraw = 0x100, kSecondDraw = 0x200;

// OUTER(INNER). It is unbiased if both are, with 1 + omega = (1 + omega_outer) (1 + omega_inner). If INNER is
// not unbiased but contractive, the result is divided by 1 + omega_outer, and
// alpha = alpha_inner / (1 + omega_outer). omega_outer is the omega of OUTER for as many values as INNER
// sends.
struct Composed {
  static constexpr std::string_view name = "OUTER(INNER)";
  static constexpr std::string_view summary =
      "natural, qsgd, terngrad or natural_dithering on the values that INNER sends, as in natural(topk:k=1%)";
  static constexpr std::string_view constants_text =
      "1 + omega = (1 + omega_outer)(1 + omega_inner); contractive INNER: divided by 1 + omega_outer, "
      "alpha = alpha_inner/(1 + omega_outer)";
  std::vector<Compressor> parts;  // OUTER, INNER
  bool operator==(const Composed&) const;
  void check(std::size_t d, std::uint32_t n) const;
  CompressorConstants joint(std::size_t d, std::uint32_t n) const;
  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const;
};

struct Scaled {
  static constexpr std::string_view name = "scaled";
  static constexpr std::string_view summary = "scaled(C): the unbiased C divided by 1 + omega";
  static constexpr std::string_view constants_text = "contractive, alpha = 1/(1 + omega)";
  std::vector<Compressor> parts;  // C
  bool operator==(const Scaled&) const;
  void check(std::size_t d, std::uint32_t n) const;
  CompressorConstants joint(std::size_t d, std::uint32_t n) const;
  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const;
};

struct Induced {
  static constexpr std::string_view name = "induced";
  static constexpr std::string_view summary =
      "induced(C1,C2): C1(x) + C2(x - C1(x)), C1 contractive, C2 unbiased";
  static constexpr std::string_view constants_text = "unbiased, omega = omega_2 (1 - alpha_1)";
  std::vector<Compressor> parts;  // C1, C2
  bool operator==(const Induced&) const;
  void check(std::size_t d, std::uint32_t n) const;
  CompressorConstants joint(std::size_t d, std::uint32_t n) const;
  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const;
};

}  // namespace gradwire
