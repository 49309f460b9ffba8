// Weight gradients of many lanes. B is copied into panels that are as wide as a tile, so that a tile reads
// adjacent memory. The lanes are added in ascending order, as outer() does, so both give the same bits.
#pragma once

#include "engine/kernels/lane_product.h"

namespace gradwire::GRADWIRE_ISA {

template <class T>
inline constexpr Index kPanel = 2 * kNative<T>;  // columns

// Copies `columns` columns from `first` on and `lanes` lanes from `lane` on. A panel is [lane][column].
template <class T>
void fill_panels(const LaneOuter<T>& p, Index first, Index columns, Index lane, Index lanes) {
  for (Index c = 0; c < columns; c += kPanel<T>) {
    const Index width = columns - c < kPanel<T> ? columns - c : kPanel<T>;
    T* panel = p.panels + c * lanes;
    if (!p.b_turned) {
      transpose_block(p.b + (first + c) * p.b_stride + lane, width, lanes, p.b_stride, panel, width);
      continue;
    }
    for (Index l = 0; l < lanes; ++l) {
      const T* from = p.b + (lane + l) * p.b_stride + first + c;
      for (Index i = 0; i < width; ++i) panel[l * width + i] = from[i];
    }
  }
}

// Computes one tile row of one panel.
template <bool kTurned, class T>
inline void panel_tile(const T* a, Index a_stride, Index rows, Index lanes, const T* panel, Index width,
                       bool add, T* dw, Index stride) {
  if (rows == kTileRows && width == kPanel<T>)
    return lane_tile<kTurned, kTileRows, 2, Vec<T, kNative<T>>, T>(a, a_stride, lanes, panel, width, nullptr,
                                                                   add, dw, stride);
  const Index whole = width / 4 * 4;  // a lane product computes a multiple of 4
  lane_product_of<kTurned, T>(
      {a, a_stride, kTurned, rows, lanes, panel, width, whole, nullptr, add, dw, stride});
  for (Index c = whole; c < width; ++c)
    for (Index r = 0; r < rows; ++r) {
      T s = add ? dw[r * stride + c] : T(0);
      for (Index l = 0; l < lanes; ++l)
        s = scalar_fma(kTurned ? a[l * a_stride + r] : a[r * a_stride + l], panel[l * width + c], s);
      dw[r * stride + c] = s;
    }
}

template <bool kTurned, class T>
void lane_outer_of(const LaneOuter<T>& p) {
  // The panels of a block stay in the second-level cache while all rows of A meet them.
  constexpr Index kLanes = 256, kBlock = (Index{512} << 10) / sizeof(T);
  for (Index l = 0; l < p.lanes; l += kLanes) {
    const Index lanes = p.lanes - l < kLanes ? p.lanes - l : kLanes;
    const Index most = kBlock / lanes / kPanel<T> * kPanel<T>;
    for (Index first = 0; first < p.columns; first += most) {
      const Index columns = p.columns - first < most ? p.columns - first : most;
      fill_panels(p, first, columns, l, lanes);
      for (Index r = 0; r < p.rows; r += kTileRows)
        for (Index c = 0; c < columns; c += kPanel<T>)
          panel_tile<kTurned>(p.a + (kTurned ? l * p.a_stride + r : r * p.a_stride + l), p.a_stride,
                              p.rows - r < kTileRows ? p.rows - r : kTileRows, lanes, p.panels + c * lanes,
                              columns - c < kPanel<T> ? columns - c : kPanel<T>, p.add || l > 0,
                              p.dw + r * p.columns + first + c, p.columns);
    }
  }
}

template <class T>
void lane_outer(const LaneOuter<T>& p) {
  if (p.a_turned)
    lane_outer_of<true>(p);
  else
    lane_outer_of<false>(p);
}

}  // namespace gradwire::GRADWIRE_ISA
