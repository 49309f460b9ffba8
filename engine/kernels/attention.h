// Scaled dot-product attention, head by head and sample by sample. Queries are lanes and keys are rows. If
// there are eight positions, all scores of a head stay in registers. Other lengths use the tiles of
// lane_product.h, on the triangle that the causal mask leaves.
#pragma once

#include "engine/kernels/lane_product.h"
#include "engine/kernels/sums.h"
#include "engine/kernels/vec_math.h"

namespace gradwire::GRADWIRE_ISA {

template <class T, int N>
GRADWIRE_KERNEL IntVec<T, N> lane_numbers(Index first) {
  IntVec<T, N> v = {};
  for (int i = 0; i < N; ++i) v[i] = static_cast<typename IntOf<T>::type>(first + i);
  return v;
}

// The score of a masked position, lower than every real score. A finite number would win if all real scores
// were lower.
template <class T>
inline constexpr T kMasked = -static_cast<T>(__builtin_inf());

template <class T>
GRADWIRE_KERNEL T attention_scale(Index size) {
  return T(1) / static_cast<T>(__builtin_sqrt(static_cast<double>(size)));
}

// ---- eight positions: a head's scores are eight rows of eight lanes, in registers ----

template <class T>
struct Eight {
  static constexpr int N = kNative<T> < 8 ? kNative<T> : 8, C = 8 / N;
  using V = Vec<T, N>;
};

// The number of heads whose scores fit 32 registers.
template <class T>
inline constexpr int kHeadsAtOnce = kRegisterBytes == 64 && Eight<T>::N == 8 ? 2 : 1;

// Folds eight vectors pair by pair. If they were folded one by one, each step would wait for the one before.
template <class V, class F>
GRADWIRE_KERNEL V fold_eight(const V* v, F&& f) {
  return f(f(f(v[0], v[1]), f(v[2], v[3])), f(f(v[4], v[5]), f(v[6], v[7])));
}

// Computes exp, the expensive part, for two registers at a time if a register of twice the width exists.
template <class T, int N, int K>
GRADWIRE_KERNEL void exp_of(Vec<T, N>* e) {
  int t = 0;
  if constexpr (N == 8 && kNative<T> == 16) {
    GRADWIRE_UNROLL
    for (; t + 2 <= K; t += 2) {
      const auto both = exp<T, 16>(
          __builtin_shufflevector(e[t], e[t + 1], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
      e[t] = low_half<T, 16>(both);
      e[t + 1] = high_half<T, 16>(both);
    }
  }
  GRADWIRE_UNROLL
  for (; t < K; ++t) e[t] = exp<T, N>(e[t]);
}

// Computes exp(e[t]) in the lanes from t on, and 0 in the lanes before t, for H heads. Row t needs 8 - t
// lanes and row 8 - t needs t lanes, so both share one register.
template <class T, int H>
GRADWIRE_KERNEL void exp_of_triangles(Vec<T, 8> (*heads)[8]) {
  using V = Vec<T, 8>;
  V packed[H][5];
  GRADWIRE_UNROLL
  for (int h = 0; h < H; ++h) {
    const V* e = heads[h];
    packed[h][0] = e[0];
    packed[h][1] = __builtin_shufflevector(e[1], e[7], 15, 1, 2, 3, 4, 5, 6, 7);
    packed[h][2] = __builtin_shufflevector(e[2], e[6], 14, 15, 2, 3, 4, 5, 6, 7);
    packed[h][3] = __builtin_shufflevector(e[3], e[5], 13, 14, 15, 3, 4, 5, 6, 7);
    packed[h][4] = e[4];
  }
  exp_of<T, 8, 5 * H>(&packed[0][0]);
  GRADWIRE_UNROLL
  for (int h = 0; h < H; ++h) {
    V* e = heads[h];
    const V *p = packed[h], zero = {};
    e[0] = p[0];
    e[1] = __builtin_shufflevector(p[1], zero, 8, 1, 2, 3, 4, 5, 6, 7);
    e[2] = __builtin_shufflevector(p[2], zero, 8, 9, 2, 3, 4, 5, 6, 7);
    e[3] = __builtin_shufflevector(p[3], zero, 8, 9, 10, 3, 4, 5, 6, 7);
    e[4] = __builtin_shufflevector(p[4], zero, 8, 9, 10, 11, 4, 5, 6, 7);
    e[5] = __builtin_shufflevector(p[3], zero, 8, 9, 10, 11, 12, 0, 1, 2);
    e[6] = __builtin_shufflevector(p[2], zero, 8, 9, 10, 11, 12, 13, 0, 1);
    e[7] = __builtin_shufflevector(p[1], zero, 8, 9, 10, 11, 12, 13, 14, 0);
  }
}

// Computes H heads at once, because each step of a single head waits for the step before.
template <int H, class T>
GRADWIRE_KERNEL void eight_forward(const T* k, const T* q, const T* v, Index size, Index L, bool causal,
                                   T scale, T* share, T* y) {
  constexpr int N = Eight<T>::N, C = Eight<T>::C;
  using V = typename Eight<T>::V;
  const Index head = size * L;
  for (int c = 0; c < C; ++c) {
    V e[H][8] = {};
    for (Index i = 0; i < size; ++i) {
      GRADWIRE_UNROLL
      for (int h = 0; h < H; ++h) {
        const V query = load<V>(q + h * head + i * L + c * N) * scale;
        GRADWIRE_UNROLL
        for (int t = 0; t < 8; ++t) e[h][t] = fma(k[h * head + i * L + t], query, e[h][t]);
      }
    }
    if (causal) {
      const auto lane = lane_numbers<T, N>(c * N);
      GRADWIRE_UNROLL
      for (int h = 0; h < H; ++h) {
        GRADWIRE_UNROLL
        for (int t = 1; t < 8; ++t) e[h][t] = lane >= t ? e[h][t] : splat<V>(kMasked<T>);
      }
    }
    GRADWIRE_UNROLL
    for (int h = 0; h < H; ++h) {
      const V top = fold_eight(e[h], [](V a, V b) { return larger(a, b); });
      GRADWIRE_UNROLL
      for (int t = 0; t < 8; ++t) e[h][t] -= top;
    }
    if constexpr (N == 8)
      causal ? exp_of_triangles<T, H>(e) : exp_of<T, N, 8 * H>(&e[0][0]);
    else
      exp_of<T, N, 8 * H>(&e[0][0]);  // 0 where masked
    GRADWIRE_UNROLL
    for (int h = 0; h < H; ++h) {
      const V part = T(1) / fold_eight(e[h], [](V a, V b) { return a + b; });
      GRADWIRE_UNROLL
      for (int t = 0; t < 8; ++t) store(share + h * 64 + t * 8 + c * N, e[h][t] *= part);
    }
    for (Index i = 0; i < size; ++i) {
      GRADWIRE_UNROLL
      for (int h = 0; h < H; ++h) {
        const T* value = v + h * head + i * L;
        V even = {}, odd = {};
        GRADWIRE_UNROLL
        for (int t = 0; t < 8; t += 2) {
          even = fma(value[t], e[h][t], even);
          odd = fma(value[t + 1], e[h][t + 1], odd);
        }
        store(y + h * head + i * L + c * N, even + odd);
      }
    }
  }
}

template <class T>
GRADWIRE_KERNEL void put(T* p, bool add, typename Eight<T>::V v) {
  store(p, add ? load<typename Eight<T>::V>(p) + v : v);
}

template <class T>
GRADWIRE_KERNEL void eight_backward(const T* k, const T* q, const T* v, const T* dy, Index size, Index L,
                                    T scale, const T* share, const bool add[3], T* dk, T* dq, T* dv) {
  constexpr int N = Eight<T>::N, C = Eight<T>::C;
  using V = typename Eight<T>::V;
  alignas(64) T score[64], share_t[64], score_t[64];
  for (int c = 0; c < C; ++c) {
    V d[8];
    for (int t = 0; t < 8; ++t) d[t] = V{};
    for (Index i = 0; i < size; ++i) {
      const V slope = load<V>(dy + i * L + c * N);
      for (int t = 0; t < 8; ++t) d[t] = fma(v[i * L + t], slope, d[t]);
    }
    for (int t = 0; t < 8; ++t) d[t] *= load<V>(share + t * 8 + c * N);
    const V total = fold_eight(d, [](V a, V b) { return a + b; });
    for (int t = 0; t < 8; ++t)
      store(score + t * 8 + c * N, fma(-total, load<V>(share + t * 8 + c * N), d[t]) * scale);
  }
  transpose_block<T>(share, 8, 8, 8, share_t, 8);
  transpose_block<T>(score, 8, 8, 8, score_t, 8);
  for (Index i = 0; i < size; ++i) {
    for (int c = 0; c < C; ++c) {
      V a = {}, b = {}, e = {};
      for (int t = 0; t < 8; ++t) {
        a = fma(q[i * L + t], load<V>(score_t + t * 8 + c * N), a);
        b = fma(k[i * L + t], load<V>(score + t * 8 + c * N), b);
        e = fma(dy[i * L + t], load<V>(share_t + t * 8 + c * N), e);
      }
      put(dk + i * L + c * N, add[0], a);
      put(dq + i * L + c * N, add[1], b);
      put(dv + i * L + c * N, add[2], e);
    }
  }
}

// ---- any length: matrices [row][padded] of one head; the triangle in steps of kStep ----

inline constexpr Index kStep = 32;

// The slices of one head. They are used in place if the number of positions is a multiple of 4. Otherwise
// they are copied to a buffer, with zeros after the last position.
template <class T>
struct Slices {
  Index size, positions, padded, lanes;
  bool packed() const { return positions != padded; }
  Index stride() const { return packed() ? padded : lanes; }

  const T* take(const T* from, T* buffer) const {
    if (!packed()) return from;
    for (Index i = 0; i < size; ++i)
      for (Index t = 0; t < padded; ++t) buffer[i * padded + t] = t < positions ? from[i * lanes + t] : T(0);
    return buffer;
  }
  void give(const T* buffer, bool add, T* to) const {
    if (!packed()) return;  // was written in place
    for (Index i = 0; i < size; ++i)
      for (Index t = 0; t < positions; ++t)
        to[i * lanes + t] = (add ? to[i * lanes + t] : T(0)) + buffer[i * padded + t];
  }
};

GRADWIRE_KERNEL Index least(Index a, Index b) { return a < b ? a : b; }

// Computes m[t][q] (+)= sum_i a[i][t] b[i][q], for t <= q if causal.
template <class T>
void scores(const Slices<T>& s, bool causal, const T* a, const T* b, bool add, T* m) {
  for (Index t = 0; t < s.positions; t += kStep) {
    const Index q = causal ? t : 0;
    lane_product_of<true>(LaneProduct<T>{a + t, s.stride(), true, least(kStep, s.positions - t), s.size,
                                         b + q, s.stride(), s.padded - q, nullptr, add, m + t * s.padded + q,
                                         s.padded});
  }
}

// Computes y[i][q] (+)= sum_t a[i][t] m[t][q], over t <= q if causal.
template <class T>
void mix(const Slices<T>& s, bool causal, const T* a, const T* m, bool add, T* y) {
  for (Index q = 0; q < s.padded; q += kStep) {
    const Index depth = causal ? least(s.positions, q + kStep) : s.positions;
    lane_product_of<false>(LaneProduct<T>{a, s.stride(), false, s.size, depth, m + q, s.padded,
                                          least(kStep, s.padded - q), nullptr, add, y + q, s.stride()});
  }
}

// Computes y[i][t] (+)= sum_q a[i][q] m[q][t], over q >= t if causal. m is the transpose of the matrix in
// mix().
template <class T>
void mix_back(const Slices<T>& s, bool causal, const T* a, const T* m, bool add, T* y) {
  for (Index t = 0; t < s.padded; t += kStep) {
    const Index q = causal ? t : 0;
    lane_product_of<false>(LaneProduct<T>{a + q, s.stride(), false, s.size, s.positions - q,
                                          m + q * s.padded + t, s.padded, least(kStep, s.padded - t), nullptr,
                                          add, y + t, s.stride()});
  }
}

// Transposes the result of scores(), as far as mix_back() reads it.
template <class T>
void turn(const Slices<T>& s, bool causal, const T* m, T* turned) {
  for (Index t = 0; t < s.positions; t += kStep) {
    const Index q = causal ? t : 0;
    transpose<T>(m + t * s.padded + q, least(kStep, s.positions - t), s.padded - q, s.padded,
                 turned + q * s.padded + t, s.padded);
  }
}

// Returns the number of rows that scores() writes in column q: all up to the end of the step that holds q.
GRADWIRE_KERNEL Index rows_of(bool causal, Index q, Index positions) {
  return causal ? least(positions, (q / kStep + 1) * kStep) : positions;
}

template <class T>
void softmax_columns(const Slices<T>& s, bool causal, T* m) {
  const T scale = attention_scale<T>(s.size);
  for_lanes<T>(s.padded, [&]<int N>(Index q) {
    using V = Vec<T, N>;
    const Index rows = rows_of(causal, q, s.positions);
    const auto lane = lane_numbers<T, N>(q);
    V top = splat<V>(kMasked<T>), total = {};
    for (Index t = 0; t < rows; ++t) {
      V e = load<V>(m + t * s.padded + q) * scale;
      if (causal && t > q) e = lane >= static_cast<typename IntOf<T>::type>(t) ? e : splat<V>(kMasked<T>);
      store(m + t * s.padded + q, e);
      top = larger(top, e);
    }
    for (Index t = 0; t < rows; ++t) {
      const V e = exp<T, N>(load<V>(m + t * s.padded + q) - top);
      store(m + t * s.padded + q, e);
      total += e;
    }
    total = T(1) / total;
    for (Index t = 0; t < rows; ++t) store(m + t * s.padded + q, load<V>(m + t * s.padded + q) * total);
  });
}

// Computes d = share (d - sum_t share d) scale.
template <class T>
void softmax_columns_backward(const Slices<T>& s, bool causal, const T* share, T* d) {
  const T scale = attention_scale<T>(s.size);
  for_lanes<T>(s.padded, [&]<int N>(Index q) {
    using V = Vec<T, N>;
    const Index rows = rows_of(causal, q, s.positions);
    V total = {};
    for (Index t = 0; t < rows; ++t)
      total = fma(load<V>(share + t * s.padded + q), load<V>(d + t * s.padded + q), total);
    for (Index t = 0; t < rows; ++t) {
      const Index at = t * s.padded + q;
      store(d + at, load<V>(share + at) * (load<V>(d + at) - total) * scale);
    }
  });
}

template <class T>
void head_forward(const Attention<T>& a, const T* k, const T* q, const T* v, T* share, T* y) {
  const Slices<T> s{a.channels / a.heads, a.positions, a.padded(), a.lanes};
  const Index part = s.size * s.padded;
  T* buffer = a.scratch;
  k = s.take(k, buffer), q = s.take(q, buffer + part), v = s.take(v, buffer + 2 * part);
  scores(s, a.causal, k, q, false, share);
  softmax_columns(s, a.causal, share);
  T* out = s.packed() ? buffer + 3 * part : y;
  mix(s, a.causal, v, share, false, out);
  s.give(out, false, y);
}

template <class T>
void head_backward(const Attention<T>& a, const T* k, const T* q, const T* v, const T* dy, const T* share,
                   const bool add[3], T* dk, T* dq, T* dv) {
  const Slices<T> s{a.channels / a.heads, a.positions, a.padded(), a.lanes};
  const Index part = s.size * s.padded, square = s.padded * s.padded;
  T* buffer = a.scratch + 2 * square;
  k = s.take(k, buffer), q = s.take(q, buffer + part), v = s.take(v, buffer + 2 * part);
  dy = s.take(dy, buffer + 3 * part);
  T* out = buffer + 4 * part;
  T* d = a.scratch;
  T* turned = a.scratch + square;
  scores(s, a.causal, v, dy, false, d);
  softmax_columns_backward(s, a.causal, share, d);
  const auto put = [&](bool added, T* to, auto&& product) {
    product(s.packed() ? false : added, s.packed() ? out : to);
    s.give(out, added, to);
  };
  turn(s, a.causal, d, turned);
  put(add[0], dk, [&](bool plus, T* to) { mix_back(s, a.causal, q, turned, plus, to); });
  put(add[1], dq, [&](bool plus, T* to) { mix(s, a.causal, k, d, plus, to); });
  turn(s, a.causal, share, turned);
  put(add[2], dv, [&](bool plus, T* to) { mix_back(s, a.causal, dy, turned, plus, to); });
}

// Fills lanes after the last sample with lane 0, so they are finite if the samples are.
template <class T>
void attention_forward(const Attention<T>& a, T* y) {
  const Index size = a.channels / a.heads, L = a.lanes;
  const Index square = a.positions * a.padded();
  const T scale = attention_scale<T>(size);
  for (Index s = 0; s < a.samples; ++s) {
    const auto at = [&](Index h) { return h * size * L + s * a.positions; };
    const auto share = [&](Index h) { return a.share + (s * a.heads + h) * square; };
    if (a.positions == 8) {
      in_runs<kHeadsAtOnce<T>>(a.heads, [&]<int H>(Index h) {
        eight_forward<H>(a.key + at(h), a.query + at(h), a.value + at(h), size, L, a.causal, scale, share(h),
                         y + at(h));
      });
      continue;
    }
    for (Index h = 0; h < a.heads; ++h)
      head_forward(a, a.key + at(h), a.query + at(h), a.value + at(h), share(h), y + at(h));
  }
  for (Index c = 0; c < a.channels; ++c)
    for (Index l = a.samples * a.positions; l < L; ++l) y[c * L + l] = y[c * L];
}

template <class T>
void attention_backward(const Attention<T>& a, const T* dy, const bool add[3], T* const d[3]) {
  const Index size = a.channels / a.heads, L = a.lanes;
  const Index square = a.positions * a.padded();
  const T scale = attention_scale<T>(size);
  for (Index s = 0; s < a.samples; ++s)
    for (Index h = 0; h < a.heads; ++h) {
      const Index at = h * size * L + s * a.positions;
      const T* share = a.share + (s * a.heads + h) * square;
      if (a.positions == 8)
        eight_backward(a.key + at, a.query + at, a.value + at, dy + at, size, L, scale, share, add, d[0] + at,
                       d[1] + at, d[2] + at);
      else
        head_backward(a, a.key + at, a.query + at, a.value + at, dy + at, share, add, d[0] + at, d[1] + at,
                      d[2] + at);
    }
  for (int i = 0; i < 3; ++i) {
    if (add[i]) continue;
    for (Index c = 0; c < a.channels; ++c)
      for (Index l = a.samples * a.positions; l < L; ++l) d[i][c * L + l] = T(0);
  }
}

}  // namespace gradwire::GRADWIRE_ISA
