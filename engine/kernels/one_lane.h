// The backward pass of affine maps of one lane: dx and dw in one pass over the weights.
#pragma once

#include "engine/kernels/vec.h"

namespace gradwire::GRADWIRE_ISA {

enum class To { kAssign, kAdd, kSelf, kNone };  // assigns dw; adds to dw; adds to w itself; computes no dw

template <bool kAddX, To kTo, int R, class T>
GRADWIRE_KERNEL void single_tile(const T* dy, const T* x, const T* w, Index in, T* dx, T* dw) {
  T slope[R];  // a copy: the compiler would read dy again for each column, since dw might overlap it
  GRADWIRE_UNROLL
  for (int r = 0; r < R; ++r) slope[r] = dy[r];
  Index k = 0;
  const auto columns = [&]<int N>() __attribute__((always_inline)) {
    using V = Vec<T, N>;
    V q[R];
    GRADWIRE_UNROLL
    for (int r = 0; r < R; ++r) q[r] = splat<V>(slope[r]);
    for (; k + N <= in; k += N) {
      const V v = load<V>(x + k);
      V s = kAddX ? load<V>(dx + k) : V{};
      // All loads come before the stores. Rows are often a multiple of 4 KB apart, and a processor delays a
      // load after a store whose address ends in the same bits.
      V weight[R], sum[R];
      GRADWIRE_UNROLL
      for (int r = 0; r < R; ++r) {
        weight[r] = load<V>(w + r * in + k);
        sum[r] = kTo == To::kAdd ? load<V>(dw + r * in + k) : weight[r];
      }
      GRADWIRE_UNROLL
      for (int r = 0; r < R; ++r) s = fma(q[r], weight[r], s);
      if constexpr (kTo != To::kNone) {
        GRADWIRE_UNROLL
        for (int r = 0; r < R; ++r)
          store(dw + r * in + k, kTo == To::kAssign ? q[r] * v : fma(q[r], v, sum[r]));
      }
      store(dx + k, s);
    }
  };
  columns.template operator()<kNative<T>>();
  if constexpr (kNative < T >> kNarrow<T>) columns.template operator()<kNarrow<T>>();
  for (; k < in; ++k) {
    T s = kAddX ? dx[k] : T(0);
    for (int r = 0; r < R; ++r) {
      const Index at = r * in + k;
      const T weight = w[at];
      s = scalar_fma(slope[r], weight, s);
      if constexpr (kTo != To::kNone)
        dw[at] = kTo == To::kAssign ? slope[r] * x[k]
                                    : scalar_fma(slope[r], x[k], kTo == To::kSelf ? weight : dw[at]);
    }
    dx[k] = s;
  }
}

template <class T>
void single_backward(const RowAffine<T>& p, const T* dy, bool add_x, T* dx, bool add_w, T* dw) {
  // At most 4 rows are read at once. Rows are often a multiple of 4 KB long, so they share one set of the
  // first-level cache, which has 8 or 12 lines. More rows would evict each other.
#ifdef GRADWIRE_FEW_VARIANTS
  constexpr int kRows = 1;
#else
  constexpr int kRows = 4;
#endif
  in_runs<kRows>(p.out, [&]<int R>(Index o) {
    const Index at = o * p.in;
    const auto run = [&]<To kTo>() {
      T* to = kTo == To::kNone ? nullptr : dw + at;
      if (add_x || o > 0)
        single_tile<true, kTo, R>(dy + o, p.x, p.w + at, p.in, dx, to);
      else
        single_tile<false, kTo, R>(dy + o, p.x, p.w + at, p.in, dx, to);
    };
    if (dw == nullptr)
      run.template operator()<To::kNone>();
    else if (dw == p.w)
      run.template operator()<To::kSelf>();
    else if (add_w)
      run.template operator()<To::kAdd>();
    else
      run.template operator()<To::kAssign>();
  });
}

}  // namespace gradwire::GRADWIRE_ISA
