// Sums over lanes, and transposes.
#pragma once

#include "engine/kernels/vec.h"

namespace gradwire::GRADWIRE_ISA {

// Sums the lanes of K channels. The order of a sum depends only on the number of lanes.
template <class T, int K>
GRADWIRE_KERNEL void lane_sums_of(const T* d, Index lanes, bool add, T* g) {
  using V = Vec<T, kNative<T>>;
  using Sums = Vec<T, K>;
  Sums total = add ? load<Sums>(g) : Sums{};
  Index l = 0;
  if (lanes >= kNative<T>) {
    V s[K] = {};
    for (; l + kNative<T> <= lanes; l += kNative<T>) {
      GRADWIRE_UNROLL
      for (int i = 0; i < K; ++i) s[i] += load<V>(d + i * lanes + l);
    }
    total += sums_of<T, kNative<T>, K>(s);
  }
  if constexpr (kNative < T >> K)
    for (; l + K <= lanes; l += K) {
      Sums s[K];
      GRADWIRE_UNROLL
      for (int i = 0; i < K; ++i) s[i] = load<Sums>(d + i * lanes + l);
      total += sums_of<T, K, K>(s);
    }
  for (; l < lanes; ++l) {
    GRADWIRE_UNROLL
    for (int i = 0; i < K; ++i) total[i] += d[i * lanes + l];
  }
  store(g, total);
}

// Does the work of lane_sums() for a single lane, which needs no sum.
template <class T>
void add_lane(const T* d, Index channels, bool add, T* g) {
  using V = Vec<T, kNarrow<T>>;
  Index c = 0;
  for (; c + kNarrow<T> <= channels; c += kNarrow<T>)
    store(g + c, (add ? load<V>(g + c) : V{}) + load<V>(d + c));
  for (; c < channels; ++c) g[c] = (add ? g[c] : T(0)) + d[c];
}

template <class T>
void lane_sums(const T* d, Index channels, Index lanes, bool add, T* g) {
  if (lanes == 1) return add_lane(d, channels, add, g);
  constexpr int K = kNative<T> < 8 ? kNative<T> : 8;
  Index c = 0;
  for (; c + K <= channels; c += K) lane_sums_of<T, K>(d + c * lanes, lanes, add, g + c);
  for (; c < channels; ++c) {
    T total = add ? g[c] : T(0);
    for (Index l = 0; l < lanes; ++l) total += d[c * lanes + l];
    g[c] = total;
  }
}

template <class T>
void scale_lanes(T* x, Index channels, Index lanes, const T* factor) {
  for_lanes<T>(lanes, [&]<int N>(Index l) {
    const auto f = load<Vec<T, N>>(factor + l);
    for (Index c = 0; c < channels; ++c) store(x + c * lanes + l, load<Vec<T, N>>(x + c * lanes + l) * f);
  });
}

// Returns the numbers of v from number S on, followed by those of `next`.
template <int S, class V>
GRADWIRE_KERNEL V shifted(V v, [[maybe_unused]] V next) {
#if defined(__AVX512VL__)  // masked for GCC 12, as in larger()
  constexpr bool kFloat = sizeof(v[0]) == 4;
  if constexpr (S > 0 && sizeof(V) == 64 && kFloat)
    return (V)_mm512_maskz_alignr_epi32(0xffff, (__m512i)next, (__m512i)v, S);
  if constexpr (S > 0 && sizeof(V) == 64 && !kFloat)
    return (V)_mm512_maskz_alignr_epi64(0xff, (__m512i)next, (__m512i)v, S);
  if constexpr (S > 0 && sizeof(V) == 32 && kFloat)
    return (V)_mm256_alignr_epi32((__m256i)next, (__m256i)v, S);
  if constexpr (S > 0 && sizeof(V) == 32 && !kFloat)
    return (V)_mm256_alignr_epi64((__m256i)next, (__m256i)v, S);
#endif
  return v;
}

// Adds v times the numbers at distance r to a[r], for r < R. Takes those numbers from v and `next`, because
// loads of them would cross cache lines.
template <int R, class V>
GRADWIRE_KERNEL void add_shifted(V v, V next, V* a) {
  if constexpr (R > 1) add_shifted<R - 1>(v, next, a);
  a[R - 1] = fma(v, shifted<R - 1>(v, next), a[R - 1]);
}

template <class T>
void lane_grams(const T* x, Index channels, Index lanes, Index distances, T* g) {
  in_runs<8>(distances, [&]<int R>(Index k) {
    for_lanes<T>(lanes, [&]<int N>(Index l) {
      using V = Vec<T, N>;
      V a[R] = {};
      for (Index c = 0; c < channels; ++c) {
        const T* at = x + c * lanes + l;
        const V v = load<V>(at);
        if constexpr (kRegisterBytes == 64 && N * sizeof(T) >= 32) {
          if (k == 0) {
            add_shifted<R>(v, load<V>(at + N), a);
            continue;
          }
        }
        for (int r = 0; r < R; ++r) a[r] = fma(v, load<V>(at + k + r), a[r]);
      }
      for (int r = 0; r < R; ++r) store(g + (k + r) * lanes + l, a[r]);
    });
  });
}

// Transposes a square of K x K numbers, one row per register, in rounds of interleaving. If K is 8, the first
// rounds interleave within each half of a register, which takes less time than across halves.
template <int K, class V>
GRADWIRE_KERNEL void transpose_registers(V* a) {
  V b[K];
  if constexpr (K == 8) {
    GRADWIRE_UNROLL
    for (int i = 0; i < K; i += 2) {
      b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
      b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    V c[K];
    GRADWIRE_UNROLL
    for (int i = 0; i < K; i += 4) {
      GRADWIRE_UNROLL
      for (int k = 0; k < 2; ++k) {
        c[i + 2 * k] = __builtin_shufflevector(b[i + k], b[i + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        c[i + 2 * k + 1] = __builtin_shufflevector(b[i + k], b[i + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
      }
    }
    GRADWIRE_UNROLL
    for (int i = 0; i < K / 2; ++i) {
      a[i] = __builtin_shufflevector(c[i], c[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
      a[i + 4] = __builtin_shufflevector(c[i], c[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
  } else {
    static_assert(K == 4);
    const auto zip = [](const V* from, V* to) {
      GRADWIRE_UNROLL
      for (int i = 0; i < K / 2; ++i) {
        to[2 * i] = __builtin_shufflevector(from[i], from[i + 2], 0, 4, 1, 5);
        to[2 * i + 1] = __builtin_shufflevector(from[i], from[i + 2], 2, 6, 3, 7);
      }
    };
    zip(a, b);
    zip(b, a);
  }
}

template <int K, class T>
GRADWIRE_KERNEL void transpose_square(const T* x, Index x_stride, T* y, Index y_stride) {
  Vec<T, K> a[K];
  GRADWIRE_UNROLL
  for (int i = 0; i < K; ++i) a[i] = load<Vec<T, K>>(x + i * x_stride);
  transpose_registers<K>(a);
  GRADWIRE_UNROLL
  for (int i = 0; i < K; ++i) store(y + i * y_stride, a[i]);
}

template <class T>
GRADWIRE_KERNEL void transpose_block(const T* x, Index rows, Index columns, Index x_stride, T* y,
                                     Index y_stride) {
  // The side of a square: as many numbers as one register holds, but at most eight. The compiler would split
  // wider vectors.
  constexpr int K = kNative<T> >= 8 ? 8 : kNative<T> >= 4 ? 4 : 0;
  Index r = 0;
  if constexpr (K > 0) {
    for (; r + K <= rows; r += K) {
      Index c = 0;
      for (; c + K <= columns; c += K)
        transpose_square<K>(x + r * x_stride + c, x_stride, y + c * y_stride + r, y_stride);
      for (; c < columns; ++c)
        for (Index i = r; i < r + K; ++i) y[c * y_stride + i] = x[i * x_stride + c];
    }
  }
  for (; r < rows; ++r)
    for (Index c = 0; c < columns; ++c) y[c * y_stride + r] = x[r * x_stride + c];
}

// Transposes block by block. With a stride of a power of two, whole columns would fall into few sets of the
// cache.
template <class T>
void transpose(const T* x, Index rows, Index columns, Index x_stride, T* y, Index y_stride) {
  constexpr Index kBlock = 32;
  for (Index r = 0; r < rows; r += kBlock)
    for (Index c = 0; c < columns; c += kBlock)
      transpose_block(x + r * x_stride + c, rows - r < kBlock ? rows - r : kBlock,
                      columns - c < kBlock ? columns - c : kBlock, x_stride, y + c * y_stride + r, y_stride);
}

}  // namespace gradwire::GRADWIRE_ISA
