// Fixed-width vectors on the vector extensions of GCC and Clang. They are compiled once per instruction set,
// each time in its own namespace. The kernel headers must not use templates of the standard library: the
// linker could keep the copy made for another processor.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/kernels/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#ifndef GRADWIRE_ISA
#define GRADWIRE_ISA compiled_for  // the target of the including file; instance.cpp names its own
#endif

// The portable kernels leave out what other architectures lack: fused operations and many registers.
#if defined(__ARM_NEON) && !defined(GRADWIRE_PORTABLE)
#define GRADWIRE_NEON
#endif

#define GRADWIRE_KERNEL [[gnu::always_inline]] inline

// Unrolls a loop over the registers of a tile. Without it, GCC 12 unrolls such loops only after it has
// decided which arrays live in registers. It then sends every tile through the stack before the first step
// and after the last.
#define GRADWIRE_UNROLL _Pragma("GCC unroll 16")

namespace gradwire::GRADWIRE_ISA {

template <class T, int N>
struct VecOf {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N>
using Vec = typename VecOf<T, N>::type;

template <class T>
struct IntOf;
template <>
struct IntOf<float> {
  using type = std::int32_t;
};
template <>
struct IntOf<double> {
  using type = std::int64_t;
};
template <class T, int N>
using IntVec = Vec<typename IntOf<T>::type, N>;

#if defined(__AVX512F__)
inline constexpr int kRegisterBytes = 64;
inline constexpr int kTileRows = 12;  // 12 x 2 accumulators take 24 of 32 registers
#elif defined(__AVX__)
inline constexpr int kRegisterBytes = 32;
inline constexpr int kTileRows = 6;  // 6 x 2 accumulators take 12 of 16 registers
#elif defined(GRADWIRE_NEON)
inline constexpr int kRegisterBytes = 16;
inline constexpr int kTileRows = 12;
#else
inline constexpr int kRegisterBytes = 16;
inline constexpr int kTileRows = 6;
#endif

template <class T>
inline constexpr int kNative = kRegisterBytes / sizeof(T);
template <class T>
inline constexpr int kNarrow = 16 / sizeof(T);  // every supported processor has registers of 16 bytes

template <class V>
using Element = decltype(V{}[0] + V{}[0]);

template <class V, class T>
GRADWIRE_KERNEL V load(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class V, class T>
GRADWIRE_KERNEL void store(T* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}
// Moves p down one row of a matrix. The asm makes the compiler go row by row. Otherwise it computes the
// addresses of all rows of a tile beforehand, and they do not fit the registers.
template <class T>
GRADWIRE_KERNEL void next_row(T*& p, Index stride) {
  p += stride;
  asm("" : "+r"(p));
}
// Returns q in every lane. q - 0 equals q for every q, even for -0, so the compiler removes the subtraction.
template <class V, class T>
GRADWIRE_KERNEL V splat(T q) {
  return q - V{};
}

// Keeps v in a register. Otherwise GCC loads the number from memory again for each use.
template <class V>
GRADWIRE_KERNEL V in_register(V v) {
#if defined(__AVX512F__)
  asm("" : "+v"(v));
#endif
  return v;
}

// Computes a b + c, rounded once if the processor can.
template <class V>
GRADWIRE_KERNEL V fma(V a, V b, V c) {
  constexpr int kBytes = sizeof(V);
  constexpr bool kFloat = sizeof(a[0]) == 4;
  (void)kBytes, (void)kFloat;
#if defined(__AVX512F__)
  if constexpr (kBytes == 64 && kFloat) return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
  if constexpr (kBytes == 64 && !kFloat) return (V)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#endif
#if defined(__FMA__)
  if constexpr (kBytes == 32 && kFloat) return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
  if constexpr (kBytes == 32 && !kFloat) return (V)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
  if constexpr (kBytes == 16 && kFloat) return (V)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
  if constexpr (kBytes == 16 && !kFloat) return (V)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c);
#elif defined(GRADWIRE_NEON)
  if constexpr (kBytes == 16 && kFloat) return (V)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
  if constexpr (kBytes == 16 && !kFloat) return (V)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#endif
  return a * b + c;
}
template <class V, class T>
GRADWIRE_KERNEL V fma(T a, V b, V c) requires(sizeof(T) == sizeof(V{}[0])) {
  return fma(splat<V>(a), b, c);
}
GRADWIRE_KERNEL float scalar_fma(float a, float b, float c) {
#if defined(__FMA__) || defined(GRADWIRE_NEON)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
GRADWIRE_KERNEL double scalar_fma(double a, double b, double c) {
#if defined(__FMA__) || defined(GRADWIRE_NEON)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

// Returns a > b ? a : b, which is b if either is nan. GCC does not know that one instruction does this. The
// 64-byte forms are masked because GCC 12 warns about the unmasked ones.
template <class V>
GRADWIRE_KERNEL V larger(V a, V b) {
#if defined(__x86_64__)
  constexpr int kBytes = sizeof(V);
  constexpr bool kFloat = sizeof(a[0]) == 4;
#if defined(__AVX512F__)
  if constexpr (kBytes == 64 && kFloat) return (V)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
  if constexpr (kBytes == 64 && !kFloat) return (V)_mm512_maskz_max_pd(0xff, (__m512d)a, (__m512d)b);
#endif
#if defined(__AVX__)
  if constexpr (kBytes == 32 && kFloat) return (V)_mm256_max_ps((__m256)a, (__m256)b);
  if constexpr (kBytes == 32 && !kFloat) return (V)_mm256_max_pd((__m256d)a, (__m256d)b);
#endif
  if constexpr (kBytes == 16 && kFloat) return (V)_mm_max_ps((__m128)a, (__m128)b);
  if constexpr (kBytes == 16 && !kFloat) return (V)_mm_max_pd((__m128d)a, (__m128d)b);
#endif
  return a > b ? a : b;
}
// Returns a < b ? a : b, which is b if either is nan.
template <class V>
GRADWIRE_KERNEL V smaller(V a, V b) {
#if defined(__x86_64__)
  constexpr int kBytes = sizeof(V);
  constexpr bool kFloat = sizeof(a[0]) == 4;
#if defined(__AVX512F__)
  if constexpr (kBytes == 64 && kFloat) return (V)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
  if constexpr (kBytes == 64 && !kFloat) return (V)_mm512_maskz_min_pd(0xff, (__m512d)a, (__m512d)b);
#endif
#if defined(__AVX__)
  if constexpr (kBytes == 32 && kFloat) return (V)_mm256_min_ps((__m256)a, (__m256)b);
  if constexpr (kBytes == 32 && !kFloat) return (V)_mm256_min_pd((__m256d)a, (__m256d)b);
#endif
  if constexpr (kBytes == 16 && kFloat) return (V)_mm_min_ps((__m128)a, (__m128)b);
  if constexpr (kBytes == 16 && !kFloat) return (V)_mm_min_pd((__m128d)a, (__m128d)b);
#endif
  return a < b ? a : b;
}

// Returns 1 / sqrt(x). Each lane is rounded like the scalar expression.
template <class T, int N>
GRADWIRE_KERNEL Vec<T, N> inverse_root(Vec<T, N> x) {
  Vec<T, N> y = {};
  for (int i = 0; i < N; ++i)
    y[i] = sizeof(T) == 4 ? static_cast<T>(__builtin_sqrtf(x[i])) : static_cast<T>(__builtin_sqrt(x[i]));
  return T(1) / y;
}

// Return half of v. They use shuffles, because GCC 12 sends a cast to a pair of halves through memory.
template <class T, int N>
GRADWIRE_KERNEL Vec<T, N / 2> low_half(Vec<T, N> v) {
  if constexpr (N == 16) return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
  if constexpr (N == 8) return __builtin_shufflevector(v, v, 0, 1, 2, 3);
  if constexpr (N == 4) return __builtin_shufflevector(v, v, 0, 1);
  if constexpr (N == 2) return Vec<T, 1>{v[0]};
}
template <class T, int N>
GRADWIRE_KERNEL Vec<T, N / 2> high_half(Vec<T, N> v) {
  if constexpr (N == 16) return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  if constexpr (N == 8) return __builtin_shufflevector(v, v, 4, 5, 6, 7);
  if constexpr (N == 4) return __builtin_shufflevector(v, v, 2, 3);
  if constexpr (N == 2) return Vec<T, 1>{v[1]};
}

// Returns the first half of `low` and the second half of `high`.
template <class T, int N>
GRADWIRE_KERNEL Vec<T, N> low_and_high(Vec<T, N> low, Vec<T, N> high) {
#if defined(__AVX512F__)
  if constexpr (N * sizeof(T) == 64 && sizeof(T) == 4)
    return (Vec<T, N>)_mm512_mask_blend_ps(0xff00, (__m512)low, (__m512)high);
  if constexpr (N * sizeof(T) == 64 && sizeof(T) == 8)
    return (Vec<T, N>)_mm512_mask_blend_pd(0xf0, (__m512d)low, (__m512d)high);
#endif
  if constexpr (N == 8) return __builtin_shufflevector(low, high, 0, 1, 2, 3, 12, 13, 14, 15);
  if constexpr (N == 4) return __builtin_shufflevector(low, high, 0, 1, 6, 7);
  if constexpr (N == 2) return __builtin_shufflevector(low, high, 0, 3);
}
// Returns h in both halves.
template <class T, int N>
GRADWIRE_KERNEL Vec<T, N> twice(Vec<T, N / 2> h) {
  if constexpr (N == 16) return __builtin_shufflevector(h, h, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7);
  if constexpr (N == 8) return __builtin_shufflevector(h, h, 0, 1, 2, 3, 0, 1, 2, 3);
  if constexpr (N == 4) return __builtin_shufflevector(h, h, 0, 1, 0, 1);
  if constexpr (N == 2) return Vec<T, N>{h[0], h[0]};
}

// Returns the sum of the lanes, by adding halves. The order of the sum depends only on N.
template <class T, int N>
GRADWIRE_KERNEL T sum(Vec<T, N> v) {
  if constexpr (N == 1) {
    return v[0];
  } else {
    return sum<T, N / 2>(low_half<T, N>(v) + high_half<T, N>(v));
  }
}

// Returns the sums of K vectors of N >= K lanes, in K - 1 additions of halves and pairs.
template <class T, int N, int K>
GRADWIRE_KERNEL Vec<T, K> sums_of(const Vec<T, N>* v) {
  if constexpr (N > K) {
    Vec<T, N / 2> half[K];
    for (int i = 0; i < K; ++i) half[i] = low_half<T, N>(v[i]) + high_half<T, N>(v[i]);
    return sums_of<T, N / 2, K>(half);
  } else if constexpr (K == 8) {
    Vec<T, 8> a[4], b[2];
    for (int i = 0; i < 4; ++i)
      a[i] = __builtin_shufflevector(v[2 * i], v[2 * i + 1], 0, 8, 2, 10, 4, 12, 6, 14) +
             __builtin_shufflevector(v[2 * i], v[2 * i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    for (int i = 0; i < 2; ++i)
      b[i] = __builtin_shufflevector(a[2 * i], a[2 * i + 1], 0, 1, 8, 9, 4, 5, 12, 13) +
             __builtin_shufflevector(a[2 * i], a[2 * i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
    return __builtin_shufflevector(b[0], b[1], 0, 1, 2, 3, 8, 9, 10, 11) +
           __builtin_shufflevector(b[0], b[1], 4, 5, 6, 7, 12, 13, 14, 15);
  } else if constexpr (K == 4) {
    const Vec<T, 4> a =
        __builtin_shufflevector(v[0], v[1], 0, 4, 2, 6) + __builtin_shufflevector(v[0], v[1], 1, 5, 3, 7);
    const Vec<T, 4> b =
        __builtin_shufflevector(v[2], v[3], 0, 4, 2, 6) + __builtin_shufflevector(v[2], v[3], 1, 5, 3, 7);
    return __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
  } else {
    static_assert(K == 2);
    return __builtin_shufflevector(v[0], v[1], 0, 2) + __builtin_shufflevector(v[0], v[1], 1, 3);
  }
}

// Calls f.operator()<N>(first) for consecutive runs of N lanes. Runs are as wide as a register, and narrower
// at the end, down to 16 bytes. REQUIRES: lanes is a multiple of 4.
template <class T, int N = kNative<T>, class F>
GRADWIRE_KERNEL void for_lanes(Index lanes, F&& f, Index first = 0) {
  for (; first + N <= lanes; first += N) f.template operator()<N>(first);
  if constexpr (N > kNarrow<T>) {
    if (first < lanes) for_lanes<T, N / 2>(lanes, static_cast<F&&>(f), first);
  }
}

// Calls f.operator()<n - first>(first) if n - first is between 1 and kMost.
template <int kMost, class F>
GRADWIRE_KERNEL void rest_of(Index n, Index first, F&& f) {
  if constexpr (kMost > 0) {
    if (n - first == kMost)
      f.template operator()<kMost>(first);
    else
      rest_of<kMost - 1>(n, first, static_cast<F&&>(f));
  }
}
// Calls f.operator()<R>(first) over [0, n) in runs of kMost, then once for the rest.
template <int kMost, class F>
GRADWIRE_KERNEL void in_runs(Index n, F&& f) {
  Index i = 0;
  for (; i + kMost <= n; i += kMost) f.template operator()<kMost>(i);
  rest_of<kMost - 1>(n, i, static_cast<F&&>(f));
}

}  // namespace gradwire::GRADWIRE_ISA
