// Weighted sums of outer products of rows, as in Hessians of linear models.
#pragma once

#include "engine/kernels/vec.h"

namespace gradwire::GRADWIRE_ISA {

// The size of a tile: 8 x 3 accumulators if there are 32 registers, and 4 x 3 if there are 16.
inline constexpr int kGramRows = kRegisterBytes == 64 || kTileRows == 12 ? 8 : 4;
inline constexpr int kGramVectors = 3;

// Returns the offset of row a in a packed upper triangle: entry (a, b) is at this offset + b.
GRADWIRE_KERNEL Index packed_row(Index a, Index d) { return a * (2 * d - a - 1) / 2; }

// Adds to the entries of the triangle in rows a .. a + kGramRows - 1 and in C registers of columns from b on.
// `factor` is [row of x][kGramRows]: columns a, a + 1, ... of x times the weight of the row.
template <int C, class T>
GRADWIRE_KERNEL void gram_tile(const T* factor, const FeatureRows<T>& x, Index a, Index b, T* upper) {
  constexpr int N = kNative<T>, R = kGramRows;
  using V = Vec<T, N>;
  V sum[R][C] = {};
  const T* row = x.x + b;
  for (Index l = 0; l < x.lanes; ++l, row += x.stride, factor += R) {
    V v[C];
    for (int c = 0; c < C; ++c) v[c] = load<V>(row + c * N);
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) sum[r][c] = fma(factor[r], v[c], sum[r][c]);
  }
  if (b >= a + R && b + C * N <= x.in) {
    for (int r = 0; r < R; ++r) {
      T* to = upper + packed_row(a + r, x.in) + b;
      for (int c = 0; c < C; ++c) store(to + c * N, load<V>(to + c * N) + sum[r][c]);
    }
    return;
  }
  // Only tiles at the diagonal and at the end of a row reach this line.
  const Index end = x.in - b < C * N ? x.in - b : C * N;
  for (int r = 0; r < R && a + r < x.in; ++r) {
    T* to = upper + packed_row(a + r, x.in) + b;
    alignas(64) T line[C * N];
    for (int c = 0; c < C; ++c) store(line + c * N, sum[r][c]);
    for (Index c = a + r > b ? a + r - b : 0; c < end; ++c) to[c] += line[c];
  }
}

template <class T>
void gram(const FeatureRows<T>& x, const T* weight, T* upper) {
  if (x.lanes == 0) return;  // x.x may be null
  constexpr int N = kNative<T>, R = kGramRows;
  alignas(64) T factor[kMostGramRows * R];
  for (Index a = 0; a < x.in; a += R) {
    for (Index l = 0; l < x.lanes; ++l)
      for (int r = 0; r < R; ++r) factor[l * R + r] = weight[l] * x.x[l * x.stride + a + r];
    Index b = a;
    for (; b + 2 * N < x.in; b += 3 * N) gram_tile<3>(factor, x, a, b, upper);
    if (b + N < x.in)
      gram_tile<2>(factor, x, a, b, upper);
    else if (b < x.in)
      gram_tile<1>(factor, x, a, b, upper);
  }
}

}  // namespace gradwire::GRADWIRE_ISA
