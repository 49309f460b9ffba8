// The derivative of attention in a direction of keys, queries and values; after attention_forward(), which
// left the shares.
#pragma once

#include "engine/kernels/attention.h"

namespace gradwire::GRADWIRE_ISA {

// Eight positions, in registers. What is masked has a share of 0.
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

// One head of one sample: of the scores k^T q, of their softmax (the share), of its mix of v.
template <class T>
void head_tangent(const Attention<T>& a, Index at, const T* share, const T* const d[3], T* dy) {
  const Index n = a.positions, padded = a.padded();
  const Index size = a.channels / a.heads, L = a.lanes;
  const T scale = attention_scale<T>(size);
  const T *key = a.key + at, *query = a.query + at, *value = a.value + at;
  const T *dkey = d[0] + at, *dquery = d[1] + at, *dvalue = d[2] + at;
  T *moved = a.scratch, *total = a.scratch + n * padded;
  for (Index q = 0; q < n; ++q) total[q] = 0;
  for (Index t = 0; t < n; ++t) {
    T* row = moved + t * padded;
    const Index from = a.causal ? t : 0;
    for (Index q = 0; q < n; ++q) row[q] = 0;
    for (Index i = 0; i < size; ++i)
      for (Index q = from; q < n; ++q)
        row[q] += dkey[i * L + t] * query[i * L + q] + key[i * L + t] * dquery[i * L + q];
    for (Index q = from; q < n; ++q) {
      row[q] *= scale;
      total[q] += share[t * padded + q] * row[q];
    }
  }
  for (Index t = 0; t < n; ++t)
    for (Index q = a.causal ? t : 0; q < n; ++q)
      moved[t * padded + q] = share[t * padded + q] * (moved[t * padded + q] - total[q]);
  for (Index i = 0; i < size; ++i) {
    for (Index q = 0; q < n; ++q) total[q] = 0;
    for (Index t = 0; t < n; ++t)
      for (Index q = a.causal ? t : 0; q < n; ++q)
        total[q] += dvalue[i * L + t] * share[t * padded + q] + value[i * L + t] * moved[t * padded + q];
    for (Index q = 0; q < n; ++q) dy[at + i * L + q] = total[q];
  }
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
