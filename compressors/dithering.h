#pragma once

#include <cstddef>
#include <string_view>

#include "compressors/count.h"
#include "compressors/payload.h"
#include "compressors/rounding.h"
#include "gradwire/compressor.h"

namespace gradwire {

// QSGD (arXiv:1610.02132), random dithering with the p-norm. Entry j becomes (||x||_p / s) sign(x_j) xi_j.
// Here xi_j is one of the two integers around s |x_j| / ||x||_p, drawn so that C is unbiased. A norm too
// large for Real is cut to the largest number.
struct Qsgd {
  static constexpr std::string_view name = "qsgd";
  static constexpr std::string_view summary =
      "random dithering: every entry to one of s levels of ||x||_p and its sign";
  static constexpr std::string_view constants_text =
      "unbiased, omega = min(q^2/s^2, q/s), q = d^(1/min(p,2)); s = 1: q - 1; p = inf, s = 1: (sqrt(d) - "
      "1)/2";
  std::uint32_t s = 4;
  NormOrder p;
  bool operator==(const Qsgd&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("s", self.s, "levels", Constraints{.low = 1, .high = 65535});
    visit("p", self.p, "order of the norm");
  }

  CompressorConstants constants(std::size_t d) const;

  template <class Real>
  Packed<Real> round(std::span<Real> v, const RngKey& key, Scratch<Real>& scratch) const;
  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const {
    return rounded(*this, v, key, scratch, to);
  }
};

// TernGrad (arXiv:1705.07878): ||x||_inf sign(x_j) with probability |x_j| / ||x||_inf, else 0.
struct TernGrad {
  static constexpr std::string_view name = "terngrad";
  static constexpr std::string_view summary = "every entry to 0 or the largest absolute value and its sign";
  static constexpr std::string_view constants_text = "unbiased, omega = (sqrt(d) - 1)/2";
  bool operator==(const TernGrad&) const = default;
  static void fields(auto&, auto&&) {}

  CompressorConstants constants(std::size_t d) const;

  template <class Real>
  Packed<Real> round(std::span<Real> v, const RngKey& key, Scratch<Real>& scratch) const;
  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const {
    return rounded(*this, v, key, scratch, to);
  }
};

// Natural dithering (arXiv:1905.10988): rounds |x_j| / ||x||_p without bias to one of its two neighbours in
// the list 0, 2^(1-s), ..., 1/2, 1.
struct NaturalDithering {
  static constexpr std::string_view name = "natural_dithering";
  static constexpr std::string_view summary =
      "every entry to one of s halvings of ||x||_p (or 0) and its sign";
  static constexpr std::string_view constants_text =
      "unbiased, omega = 1/8 + q t min(1, q t), t = 2^(1-s), q = d^(1/min(p,2))";
  static constexpr std::uint32_t kMostLevels = 100;  // up to it, 2^(1-s) is a normal float
  std::uint32_t s = 8;
  NormOrder p;
  bool operator==(const NaturalDithering&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("s", self.s, "levels", Constraints{.low = 1, .high = kMostLevels});
    visit("p", self.p, "order of the norm");
  }

  CompressorConstants constants(std::size_t d) const;

  template <class Real>
  Packed<Real> round(std::span<Real> v, const RngKey& key, Scratch<Real>& scratch) const;
  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const {
    return rounded(*this, v, key, scratch, to);
  }
};

}  // namespace gradwire
