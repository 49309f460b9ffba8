// Matrix products in which the lanes of a row are adjacent in memory: each weight is broadcast and multiplies
// a whole row of lanes. One tile kernel serves affine maps, their input gradients and attention.
#pragma once

#include "engine/kernels/sums.h"

namespace gradwire::GRADWIRE_ISA {

// Initializes R rows by C vectors of lanes with the bias, plus the old values if `add` is set.
template <int R, int C, class V, class T>
GRADWIRE_KERNEL void start_tile(const T* bias, bool add, const T* y, Index y_stride, V (*a)[C]) {
  constexpr int N = sizeof(V) / sizeof(T);
  GRADWIRE_UNROLL
  for (int r = 0; r < R; ++r) {
    const V b = splat<V>(bias != nullptr ? bias[r] : T(0));
    GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) a[r][c] = b;
  }
  if (!add) return;
  GRADWIRE_UNROLL
  for (int r = 0; r < R; ++r, next_row(y, y_stride)) {
    GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) a[r][c] = load<V>(y + c * N) + a[r][c];
  }
}

template <int R, int C, class V, class T>
GRADWIRE_KERNEL void store_tile(T* y, Index y_stride, const V (*a)[C]) {
  constexpr int N = sizeof(V) / sizeof(T);
  GRADWIRE_UNROLL
  for (int r = 0; r < R; ++r, next_row(y, y_stride)) {
    GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) store(y + c * N, a[r][c]);
  }
}

// Computes R rows by C vectors of lanes. They stay in registers over the whole depth.
template <bool kTransposed, int R, int C, class V, class T>
GRADWIRE_KERNEL void lane_tile(const T* w, Index stride, Index depth, const T* x, Index x_stride,
                               const T* bias, bool add, T* y, Index y_stride) {
  constexpr int N = sizeof(V) / sizeof(T);
  V a[R][C];
  start_tile<R, C>(bias, add, y, y_stride, a);
  // There are three base pointers, because one per row would not fit the registers. The asm stops the
  // compiler from making one per row.
  const T* base[3] = {w, R > 4 ? w + 4 * stride : w, R > 8 ? w + 8 * stride : w};
  for (Index k = 0; k < depth; ++k, x += x_stride) {
    V v[C];
    GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) v[c] = load<V>(x + c * N);
    GRADWIRE_UNROLL
    for (int r = 0; r < R; ++r) {
      const T q = kTransposed ? w[r] : base[r / 4][r % 4 * stride];
      GRADWIRE_UNROLL
      for (int c = 0; c < C; ++c) a[r][c] = fma(q, v[c], a[r][c]);
    }
    if constexpr (kTransposed) {
      w += stride;
    } else {
      ++base[0], ++base[1], ++base[2];
      asm("" : "+r"(base[0]), "+r"(base[1]), "+r"(base[2]));
    }
  }
  store_tile<R, C>(y, y_stride, a);
}

template <bool kTransposed, int C, class V, class T>
inline void lane_columns(const LaneProduct<T>& p, Index first) {
  const Index row = kTransposed ? 1 : p.w_stride;
  in_runs<kTileRows>(
      p.rows, [&]<int R>(Index r) __attribute__((always_inline)) {
        lane_tile<kTransposed, R, C, V>(p.w + r * row, p.w_stride, p.depth, p.x + first, p.x_stride,
                                        p.bias != nullptr ? p.bias + r : nullptr, p.add,
                                        p.y + r * p.y_stride + first, p.y_stride);
      });
}

template <bool kTransposed, class T>
inline void lane_product_of(const LaneProduct<T>& p) {
  constexpr int N = kNative<T>;
  Index l = 0;
  for (; l + 2 * N <= p.lanes; l += 2 * N) lane_columns<kTransposed, 2, Vec<T, N>>(p, l);
  for_lanes<T>(
      p.lanes, [&]<int M>(Index first) { lane_columns<kTransposed, 1, Vec<T, M>>(p, first); }, l);
}

// Computes a product with transposed weights if the lanes fill only half a register. A register holds
// adjacent weights of many rows instead of lanes, and the result is transposed. One call computes C
// registers of rows, and half a register more if kHalf.
template <int C, bool kHalf, class T>
GRADWIRE_KERNEL void turned_rows(const LaneProduct<T>& p, Index first) {
  constexpr int N = kNative<T>, L = N / 2;
  using V = Vec<T, N>;
  using H = Vec<T, L>;
  V a[L][C > 0 ? C : 1] = {};
  H b[L] = {};
  const T *w = p.w + first, *x = p.x;
  for (Index k = 0; k < p.depth; ++k, w += p.w_stride, x += p.x_stride) {
    V v[C > 0 ? C : 1];
    GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) v[c] = load<V>(w + c * N);
    H h = {};
    if constexpr (kHalf) h = load<H>(w + C * N);
    GRADWIRE_UNROLL
    for (int l = 0; l < L; ++l) {
      const V q = splat<V>(x[l]);
      GRADWIRE_UNROLL
      for (int c = 0; c < C; ++c) a[l][c] = fma(q, v[c], a[l][c]);
      if constexpr (kHalf) b[l] = fma(low_half<T, N>(q), h, b[l]);
    }
  }
  T* y = p.y + first * p.y_stride;
  const auto put = [&](H * square) __attribute__((always_inline)) {
    transpose_registers<L>(square);
    GRADWIRE_UNROLL
    for (int r = 0; r < L; ++r, next_row(y, p.y_stride)) store(y, p.add ? load<H>(y) + square[r] : square[r]);
  };
  GRADWIRE_UNROLL
  for (int c = 0; c < C; ++c) {
    H low[L], high[L];
    GRADWIRE_UNROLL
    for (int l = 0; l < L; ++l) low[l] = low_half<T, N>(a[l][c]), high[l] = high_half<T, N>(a[l][c]);
    put(low);
    put(high);
  }
  if constexpr (kHalf) put(b);
}

// Computes the whole product by turned_rows(). REQUIRES: rows is a multiple of half a register, and the bias
// is null.
template <class T>
inline void half_register_product(const LaneProduct<T>& p) {
  constexpr int N = kNative<T>;
  Index r = 0;
  for (; r + 2 * N <= p.rows; r += 2 * N) turned_rows<2, false>(p, r);
  if (p.rows - r == N + N / 2) return turned_rows<1, true>(p, r);
  if (p.rows - r == N) return turned_rows<1, false>(p, r);
  if (p.rows - r == N / 2) return turned_rows<0, true>(p, r);
}

// Computes a product of many lanes tile row by tile row, in pieces of the depth. The weights of a tile row
// stay in the first-level cache while they meet all lanes, and a piece of all lanes stays in the second.
// Transposed weights have short pieces, because each of their rows is in another page.
template <bool kTransposed, class T>
void large_lane_product(const LaneProduct<T>& p) {
  constexpr Index kPiece = kTransposed ? 128 : 1024;
  for (Index k = 0; k < p.depth; k += kPiece)
    for (Index r = 0; r < p.rows; r += kTileRows) {
      LaneProduct<T> tiles = p;
      tiles.w += kTransposed ? k * p.w_stride + r : r * p.w_stride + k;
      tiles.rows = p.rows - r < kTileRows ? p.rows - r : kTileRows;
      tiles.depth = p.depth - k < kPiece ? p.depth - k : kPiece;
      tiles.x += k * p.x_stride;
      tiles.bias = p.bias != nullptr && k == 0 ? p.bias + r : nullptr;
      tiles.add = p.add || k > 0;
      tiles.y += r * p.y_stride;
      lane_product_of<kTransposed>(tiles);
    }
}

template <class T>
void lane_product(const LaneProduct<T>& p) {
  constexpr int N = kNative<T>;
  constexpr Index kManyWeights = 1 << 16;
  if (p.lanes > 2 * N && p.rows * p.depth >= kManyWeights)
    return p.transposed ? large_lane_product<true>(p) : large_lane_product<false>(p);
  if constexpr (N == 16) {
    if (p.transposed && p.lanes == N / 2 && p.rows % (N / 2) == 0 && p.bias == nullptr)
      return half_register_product(p);
  }
  if (p.transposed)
    lane_product_of<true>(p);
  else
    lane_product_of<false>(p);
}

// Adds two products into one sum, which stays in registers. REQUIRES: not transposed.
template <int R, int C, class V, class T>
GRADWIRE_KERNEL void pair_tile(const LaneProduct<T>& p, const T* w2, const T* x2, Index r, Index l) {
  constexpr int N = sizeof(V) / sizeof(T);
  V a[R][C];
  T* y = p.y + r * p.y_stride + l;
  start_tile<R, C>(p.bias != nullptr ? p.bias + r : nullptr, p.add, y, p.y_stride, a);
  const Index at = r * p.w_stride;
  const T *x = p.x + l, *z = x2 + l;
  // Each matrix has three base pointers, as in lane_tile().
  const T* base[3] = {p.w + at, p.w + at + (R > 4 ? 4 : 0) * p.w_stride,
                      p.w + at + (R > 8 ? 8 : 0) * p.w_stride};
  const T* other[3] = {w2 + at, w2 + at + (R > 4 ? 4 : 0) * p.w_stride,
                       w2 + at + (R > 8 ? 8 : 0) * p.w_stride};
  for (Index k = 0; k < p.depth; ++k, x += p.x_stride, z += p.x_stride) {
    V v[C], u[C];
    GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) v[c] = load<V>(x + c * N), u[c] = load<V>(z + c * N);
    GRADWIRE_UNROLL
    for (int i = 0; i < R; ++i) {
      const T q = base[i / 4][i % 4 * p.w_stride], g = other[i / 4][i % 4 * p.w_stride];
      GRADWIRE_UNROLL
      for (int c = 0; c < C; ++c) a[i][c] = fma(g, u[c], fma(q, v[c], a[i][c]));
    }
    ++base[0], ++base[1], ++base[2], ++other[0], ++other[1], ++other[2];
    asm("" : "+r"(base[0]), "+r"(base[1]), "+r"(base[2]), "+r"(other[0]), "+r"(other[1]), "+r"(other[2]));
  }
  store_tile<R, C>(y, p.y_stride, a);
}

template <class T>
void lane_product_pair(const LaneProduct<T>& p, const T* w2, const T* x2) {
  constexpr int N = kNative<T>;
  const auto columns = [&]<int C, class V>(Index l) __attribute__((always_inline)) {
    in_runs<kTileRows>(
        p.rows, [&]<int R>(Index r) __attribute__((always_inline)) { pair_tile<R, C, V>(p, w2, x2, r, l); });
  };
  Index l = 0;
  for (; l + 2 * N <= p.lanes; l += 2 * N) columns.template operator()<2, Vec<T, N>>(l);
  for_lanes<T>(
      p.lanes, [&]<int M>(Index first) { columns.template operator()<1, Vec<T, M>>(first); }, l);
}

}  // namespace gradwire::GRADWIRE_ISA
