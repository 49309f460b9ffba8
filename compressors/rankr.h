#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "compressors/count.h"
#include "compressors/payload.h"
#include "gradwire/compressor.h"

namespace gradwire {

// RankR of FedNL, arXiv:2106.02969. The vector is the upper triangle, row by row, of a symmetric matrix of
// shape (m, m). RankR sends the best approximation of rank r of that matrix: the r eigenvalues of largest
// magnitude and their eigenvectors. Of two eigenvalues of equal magnitude the positive one comes first. alpha
// refers to the Frobenius norm of the matrix, in which entries off the diagonal count twice. Takes O(m^3)
// steps.
struct RankR {
  static constexpr std::string_view name = "rankr";
  static constexpr std::string_view summary =
      "fednl: the r largest eigenvalues and their vectors of the m x m matrix whose triangle is compressed";
  static constexpr std::string_view constants_text = "contractive in the Frobenius norm, alpha = r/m";
  static constexpr std::string_view unfit =
      "r is larger than the side of the matrix, or the vector is not the triangle of one, as in fednl";
  std::uint32_t r = 1;
  bool operator==(const RankR&) const = default;
  static void fields(auto& self, auto&& visit) { visit("r", self.r, "rank", Constraints{.low = 1}); }

  CompressorConstants constants(std::size_t d) const {
    // An approximation while d is unknown.
    const double m = d == kMaxDim ? std::sqrt(2.0 * kMaxDim) : triangle_side(d);
    return CompressorConstants::of_contractive(std::min(1.0, r / m), r * (m + 1));
  }
  // kMaxDim stands for an unknown dimension.
  bool resolved(std::size_t d) const { return d == kMaxDim || r <= triangle_side(d); }

  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const;
};

}  // namespace gradwire
