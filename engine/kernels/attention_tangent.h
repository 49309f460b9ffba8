// The derivative of attention in a direction of keys, queries and values. It runs after attention_forward(),
// which stores the softmax shares.
#pragma once

#include "engine/kernels/attention.h"

namespace gradwire::GRADWIRE_ISA {

// Computes one head of eight positions in registers. Masked positions have a share of 0.
template <class T>
GRADWIRE_KERNEL void eight_tangent(const Attention<T>& a, Index at, Index size, T scale, const T* share,
                                   const T* const d[3], T* dy) {
  constexpr int N = Eight<T>::N, C = Eight<T>::C;
  using V = typename Eight<T>::V;
  const T *k = a.key + at, *q = a.query + at, *v = a.value + at;
  const T *dk = d[0] + at, *dq = d[1] + at, *dv = d[2] + at;
  const Index L = a.lanes;
  for (int c = 0; c < C; ++c) {
    V e[8], part[8];
    for (int t = 0; t < 8; ++t) e[t] = V{};
    for (Index i = 0; i < size; ++i) {
      const V query = load<V>(q + i * L + c * N) * scale, moved = load<V>(dq + i * L + c * N) * scale;
      for (int t = 0; t < 8; ++t) e[t] = fma(k[i * L + t], moved, fma(dk[i * L + t], query, e[t]));
    }
    for (int t = 0; t < 8; ++t) {
      part[t] = load<V>(share + t * 8 + c * N);
      e[t] *= part[t];
    }
    const V total = fold_eight(e, [](V x, V y) { return x + y; });
    for (int t = 0; t < 8; ++t) e[t] = fma(-total, part[t], e[t]);
    for (Index i = 0; i < size; ++i) {
      V even = {}, odd = {};
      for (int t = 0; t < 8; t += 2) {
        even = fma(v[i * L + t], e[t], fma(dv[i * L + t], part[t], even));
        odd = fma(v[i * L + t + 1], e[t + 1], fma(dv[i * L + t + 1], part[t + 1], odd));
      }
      store(dy + at + i * L + c * N, even + odd);
    }
  }
}

// Computes one head of one sample: the tangents of the scores, of their softmax (the shares), and of the
// result.
template <class T>
void head_tangent(const Attention<T>& a, Index at, const T* share, const T* const d[3], T* dy) {
  const Slices<T> s{a.channels / a.heads, a.positions, a.padded(), a.lanes};
  const Index part = s.size * s.padded;
  T *moved = a.scratch, *buffer = a.scratch + s.padded * s.padded;
  const auto take = [&](const T* from, Index number) { return s.take(from + at, buffer + number * part); };
  const T *k = take(a.key, 0), *q = take(a.query, 1), *v = take(a.value, 2);
  const T *dk = take(d[0], 3), *dq = take(d[1], 4), *dv = take(d[2], 5);
  scores(s, a.causal, dk, q, false, moved);
  scores(s, a.causal, k, dq, true, moved);
  softmax_columns_backward(s, a.causal, share, moved);  // the derivative of softmax is its own transpose
  T* out = s.packed() ? buffer + 6 * part : dy + at;
  mix(s, a.causal, dv, share, false, out);
  mix(s, a.causal, v, moved, true, out);
  s.give(out, false, dy + at);
}

template <class T>
void attention_tangent(const Attention<T>& a, const T* const d[3], T* dy) {
  const Index size = a.channels / a.heads, L = a.lanes, square = a.positions * a.padded();
  const T scale = attention_scale<T>(size);
  for (Index s = 0; s < a.samples; ++s)
    for (Index h = 0; h < a.heads; ++h) {
      const Index at = h * size * L + s * a.positions;
      const T* share = a.share + (s * a.heads + h) * square;
      if (a.positions == 8)
        eight_tangent(a, at, size, scale, share, d, dy);
      else
        head_tangent(a, at, share, d, dy);
    }
  for (Index c = 0; c < a.channels; ++c)
    for (Index l = a.samples * a.positions; l < L; ++l) dy[c * L + l] = dy[c * L];
}

}  // namespace gradwire::GRADWIRE_ISA
