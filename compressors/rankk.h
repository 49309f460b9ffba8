#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "compressors/count.h"
#include "compressors/payload.h"
#include "gradwire/compressor.h"

namespace gradwire {

// RankK: the best approximation of rank k of the vector as a matrix of shape (rows, d / rows), row by row. It
// keeps the k largest singular values (the compressor of FedNL, arXiv:2106.02969). Takes O(m d + m^3) steps
// if m is the smaller side.
struct RankK {
  static constexpr std::string_view name = "rankk";
  static constexpr std::string_view summary =
      "truncated singular value decomposition of the vector as a matrix of rows x d/rows";
  static constexpr std::string_view constants_text = "contractive, alpha = k/min(rows, d/rows)";
  static constexpr std::string_view unfit = "k is larger than a side of the matrix";
  std::uint32_t k = 1;
  Rows rows;
  bool operator==(const RankK&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("k", self.k, "rank", Constraints{.low = 1});
    visit("rows", self.rows, "rows of the matrix");
  }

  CompressorConstants constants(std::size_t d) const {
    const double m = static_cast<double>(rows.count), cols = static_cast<double>(d) / m;
    return CompressorConstants::of_contractive(k / std::min(m, cols), k * (m + cols));
  }
  // kMaxDim stands for an unknown dimension.
  bool resolved(std::size_t d) const {
    return rows.count != 0 &&
           (d == kMaxDim || (d % rows.count == 0 && k <= std::min<std::size_t>(rows.count, d / rows.count)));
  }

  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                  PayloadBuffer<Real>& to) const;
};

}  // namespace gradwire
