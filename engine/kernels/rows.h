// Affine maps of inputs in rows [lane][in]: data, and single lanes. The forward pass computes dot products.
// The backward pass adds multiples of rows.
#pragma once

#include "engine/kernels/vec.h"

namespace gradwire::GRADWIRE_ISA {

// Returns total plus the dot product of w and x over [k, n). Uses no vector of more than 16 bytes, because
// the range is short.
template <class T>
GRADWIRE_KERNEL T rest_of_dot(const T* w, const T* x, Index k, Index n, T total) {
  constexpr int H = kNarrow<T>;
  using Short = Vec<T, H>;
  Short q = {};
  const Index wide = k;
  for (; k + H <= n; k += H) q = fma(load<Short>(w + k), load<Short>(x + k), q);
  if (k > wide) total += sum<T, H>(q);
  for (; k < n; ++k) total = scalar_fma(w[k], x[k], total);
  return total;
}

// Computes y[r][c] (+)= bias[r] + w_r . x_c over n numbers, for R rows of weights and C rows of data, with U
// accumulators each.
template <int R, int C, int U, class T>
GRADWIRE_KERNEL void dot_tile(const T* w, const T* x, Index n, Index stride, const T* bias, bool add, T* y,
                              Index y_stride) {
  constexpr int N = kNative<T>;
  using V = Vec<T, N>;
  V a[R][C][U] = {};
  Index k = 0;
  for (; k + N * U <= n; k += N * U) {
    GRADWIRE_UNROLL
    for (int u = 0; u < U; ++u) {
      V q[R];  // the weights stay in registers; the data are loaded one vector at a time
      GRADWIRE_UNROLL
      for (int r = 0; r < R; ++r) q[r] = load<V>(w + r * stride + k + u * N);
      GRADWIRE_UNROLL
      for (int c = 0; c < C; ++c) {
        const V v = load<V>(x + c * stride + k + u * N);
        GRADWIRE_UNROLL
        for (int r = 0; r < R; ++r) a[r][c][u] = fma(q[r], v, a[r][c][u]);
      }
    }
  }
  T total[R][C];
  constexpr bool kFour = C % 4 == 0 && N >= 4;
  GRADWIRE_UNROLL
  for (int r = 0; r < R; ++r) {
    if constexpr (U > 1) {
      GRADWIRE_UNROLL
      for (int c = 0; c < C; ++c)
        for (int u = 1; u < U; ++u) a[r][c][0] += a[r][c][u];
    }
    if constexpr (kFour && U == 1) {
      GRADWIRE_UNROLL
      for (int c = 0; c < C; c += 4) store(&total[r][c], sums_of<T, N, 4>(&a[r][c][0]));
    } else {
      GRADWIRE_UNROLL
      for (int c = 0; c < C; ++c) total[r][c] = sum<T, N>(a[r][c][0]);
    }
  }
  if (k < n) {
    GRADWIRE_UNROLL
    for (int r = 0; r < R; ++r) {
      GRADWIRE_UNROLL
      for (int c = 0; c < C; ++c)
        total[r][c] = rest_of_dot(w + r * stride, x + c * stride, k, n, total[r][c]);
    }
  }
  GRADWIRE_UNROLL
  for (int r = 0; r < R; ++r) {
    GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) {
      const T base = add ? y[r * y_stride + c] : bias != nullptr ? bias[r] : T(0);
      y[r * y_stride + c] = base + total[r][c];
    }
  }
}

inline constexpr bool kManyRegisters = kRegisterBytes == 64 || kTileRows == 12;

// Computes y for several lanes. REQUIRES: a multiple of 4 lanes.
template <class T>
void row_product(const RowAffine<T>& p, bool add, T* y) {
  const auto bias = [&](Index r) { return p.bias != nullptr ? p.bias + r : nullptr; };
  // The columns are cut into pieces. A piece of all lanes stays in the second-level cache while the weights
  // are read.
  constexpr Index kPiece = 8192 / sizeof(T);
  constexpr int R0 = kManyRegisters ? 6 : 3, C = 4;
  for (Index k = 0; k < p.in; k += kPiece) {
    const Index n = p.in - k < kPiece ? p.in - k : kPiece;
    bool reverse = false;
    in_runs<R0>(p.out, [&]<int R>(Index r) {
      const Index first = reverse ? p.lanes - C : 0, step = reverse ? -C : C,
                  end = first + p.lanes / C * step;
      Index l = first;
      do
        dot_tile<R, C, 1>(p.w + r * p.in + k, p.x + l * p.in + k, n, p.in, bias(r), add || k > 0,
                          y + r * p.lanes + l, p.lanes);
      while ((l += step) != end);
      reverse = !reverse;  // the lanes that were last are still in the first-level cache when new weights
                           // come
    });
  }
}

template <class T>
void row_forward(const RowAffine<T>& p, T* y) {
  if (p.lanes > 1) return row_product(p, false, y);
  in_runs<4>(p.out, [&]<int R>(Index r) {
    dot_tile<R, 1, 2>(p.w + r * p.in, p.x, p.in, p.in, p.bias != nullptr ? p.bias + r : nullptr, false, y + r,
                      1);
  });
}

// ---- tangent: dy = W dx + V x + bias of V ----

// Computes the tangent of one lane and y = W x + bias. W is read once for both. y has the bits of
// row_forward().
template <int R, class T>
GRADWIRE_KERNEL void single_tangent_tile(const RowAffine<T>& p, const RowTangent<T>& t, Index r, T* y) {
  constexpr int N = kNative<T>, U = 2;
  using V = Vec<T, N>;
  const T *w = p.w + r * p.in, *v = t.v + r * p.in;
  V a[R][U] = {}, b[R][U] = {};
  Index k = 0;
  for (; k + N * U <= p.in; k += N * U) {
    GRADWIRE_UNROLL
    for (int u = 0; u < U; ++u) {
      const V x = load<V>(p.x + k + u * N), dx = load<V>(t.dx + k + u * N);
      GRADWIRE_UNROLL
      for (int i = 0; i < R; ++i) {
        const V q = load<V>(w + i * p.in + k + u * N);
        a[i][u] = fma(q, x, a[i][u]);
        b[i][u] = fma(q, dx, b[i][u]);
        b[i][u] = fma(load<V>(v + i * p.in + k + u * N), x, b[i][u]);
      }
    }
  }
  GRADWIRE_UNROLL
  for (int i = 0; i < R; ++i) {
    const T total = rest_of_dot(w + i * p.in, p.x, k, p.in, sum<T, N>(a[i][0] + a[i][1]));
    y[r + i] = (p.bias != nullptr ? p.bias[r + i] : T(0)) + total;
    T moved = rest_of_dot(w + i * p.in, t.dx, k, p.in, sum<T, N>(b[i][0] + b[i][1]));
    moved = rest_of_dot(v + i * p.in, p.x, k, p.in, moved);
    t.dy[r + i] = (t.bias != nullptr ? t.bias[r + i] : T(0)) + moved;
  }
}

// Computes the tangent by two products if there are several lanes. They take less time than one tile that
// computes both (measured with AVX-512).
template <class T>
void row_tangent(const RowAffine<T>& p, const RowTangent<T>& t, T* y) {
  if (p.lanes == 1) {
    in_runs<4>(p.out, [&]<int R>(Index r) { single_tangent_tile<R>(p, t, r, y); });
    return;
  }
  row_product(p, false, y);
  row_product({t.v, t.bias, p.out, p.in, p.x, p.lanes}, false, t.dy);
  row_product({p.w, nullptr, p.out, p.in, t.dx, p.lanes}, true, t.dy);
}

// ---- weight gradient: dw[o][k] (+)= sum_l dy[o][l] x[l][k] ----

// Computes R rows by C registers, and half a register after them if kHalf. The halves of two rows share one
// register, because half a register may take as long as a whole one.
template <int R, int C, bool kHalf, class T>
GRADWIRE_KERNEL void outer_tile(const T* dy, Index lanes, const T* x, Index in, bool add, T* dw) {
  constexpr int N = kNative<T>, kPairs = kHalf ? R / 2 : 0;
  constexpr bool kSingle = kHalf && R % 2 == 1;
  using V = Vec<T, N>;
  using H = Vec<T, kHalf ? N / 2 : N>;
  V a[R][C > 0 ? C : 1];
  V pair[kPairs > 0 ? kPairs : 1] = {};
  H single = {};
  const T* from = dw;
  GRADWIRE_UNROLL
  for (int r = 0; r < R; ++r, next_row(from, in)) {
    GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) a[r][c] = add ? load<V>(from + c * N) : V{};
    if constexpr (kHalf) {
      const H h = add ? load<H>(from + C * N) : H{};
      if (kSingle && r + 1 == R)
        single = h;
      else
        pair[r / 2] = r % 2 == 0 ? twice<T, N>(h) : low_and_high<T, N>(pair[r / 2], twice<T, N>(h));
    }
  }
  // There are two base pointers, because one per row would not fit the registers. The asm stops the compiler
  // from making one per row.
  const T* base[2] = {dy, R > 4 ? dy + 4 * lanes : dy};
  for (const T* const end = dy + lanes; base[0] != end; ++base[0], ++base[1], x += in) {
    asm("" : "+r"(base[0]), "+r"(base[1]));
    V v[C > 0 ? C : 1], last = {};
    GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) v[c] = load<V>(x + c * N);
    if constexpr (kHalf) last = twice<T, N>(load<H>(x + C * N));
    V before = {};
    GRADWIRE_UNROLL
    for (int r = 0; r < R; ++r) {
      V q = splat<V>(base[r / 4][r % 4 * lanes]);
      if constexpr (kHalf) q = in_register(q);
      GRADWIRE_UNROLL
      for (int c = 0; c < C; ++c) a[r][c] = fma(q, v[c], a[r][c]);
      if constexpr (kHalf) {
        if (kSingle && r + 1 == R)
          single = fma(low_half<T, N>(q), low_half<T, N>(last), single);
        else if (r % 2 == 1)
          pair[r / 2] = fma(low_and_high<T, N>(before, q), last, pair[r / 2]);
      }
      before = q;
    }
  }
  GRADWIRE_UNROLL
  for (int r = 0; r < R; ++r, next_row(dw, in)) {
    GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) store(dw + c * N, a[r][c]);
    if constexpr (kHalf) {
      if (kSingle && r + 1 == R)
        store(dw + C * N, single);
      else
        store(dw + C * N, r % 2 == 0 ? low_half<T, N>(pair[r / 2]) : high_half<T, N>(pair[r / 2]));
    }
  }
}

inline constexpr int kOuterRows = kManyRegisters ? 8 : 4;

// Computes columns and returns their number. Leaves fewer columns than the narrowest register holds.
template <int R, class T>
GRADWIRE_KERNEL Index outer_columns(const T* dy, Index lanes, const T* x, Index in, bool add, T* dw) {
  constexpr int N = kNative<T>, kShort = kNarrow<T>;
  Index k = 0;
  for (; k + 3 * N <= in; k += 3 * N) outer_tile<R, 3, false>(dy, lanes, x + k, in, add, dw + k);
  const auto rest = [&]<int C, bool kHalf>() {
    outer_tile<R, C, kHalf>(dy, lanes, x + k, in, add, dw + k);
    k += C * N + (kHalf ? N / 2 : 0);
  };
  const Index full = (in - k) / N;
  if constexpr (N > kShort) {
    const bool half = (in - k) % N >= N / 2;
    if (full == 2) half ? rest.template operator()<2, true>() : rest.template operator()<2, false>();
    if (full == 1) half ? rest.template operator()<1, true>() : rest.template operator()<1, false>();
    if (full == 0 && half) rest.template operator()<0, true>();
    for (; k + kShort <= in; k += kShort) {
      using V = Vec<T, kShort>;
      for (int r = 0; r < R; ++r) {
        V a = add ? load<V>(dw + r * in + k) : V{};
        for (Index l = 0; l < lanes; ++l) a = fma(dy[r * lanes + l], load<V>(x + l * in + k), a);
        store(dw + r * in + k, a);
      }
    }
  } else {
    if (full == 2) rest.template operator()<2, false>();
    if (full == 1) rest.template operator()<1, false>();
  }
  return k;
}

template <class T>
void outer(const T* dy, Index out, Index lanes, const T* x, Index in, bool add, T* dw) {
  in_runs<kOuterRows>(out, [&]<int R>(Index o) {
    const T* d = dy + o * lanes;
    T* g = dw + o * in;
    for (Index k = outer_columns<R>(d, lanes, x, in, add, g); k < in; ++k) {
      for (int r = 0; r < R; ++r) {
        T s = add ? g[r * in + k] : T(0);
        for (Index l = 0; l < lanes; ++l) s = scalar_fma(d[r * lanes + l], x[l * in + k], s);
        g[r * in + k] = s;
      }
    }
  });
}

// ---- input gradient: dx[l][k] (+)= sum_o dy[o][l] w[o][k] ----

// Adds R rows of weights into C lanes. The gradients of the rows stay in registers while n columns are read.
template <int R, int C, bool kAdd, class T>
GRADWIRE_KERNEL void back_tile(const T* dy, Index lanes, const T* w, Index n, Index stride, T* dx) {
  T q[R][C];
  GRADWIRE_UNROLL
  for (int r = 0; r < R; ++r) {
    GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) q[r][c] = dy[r * lanes + c];
  }
  Index k = 0;
  const auto columns = [&]<int N>() __attribute__((always_inline)) {
    using V = Vec<T, N>;
    V slope[R][C];
    GRADWIRE_UNROLL
    for (int r = 0; r < R; ++r) {
      GRADWIRE_UNROLL
      for (int c = 0; c < C; ++c) slope[r][c] = splat<V>(q[r][c]);
    }
    for (; k + N <= n; k += N) {
      V v[R];
      GRADWIRE_UNROLL
      for (int r = 0; r < R; ++r) v[r] = load<V>(w + r * stride + k);
      GRADWIRE_UNROLL
      for (int c = 0; c < C; ++c) {
        V a = kAdd ? load<V>(dx + c * stride + k) : V{};
        GRADWIRE_UNROLL
        for (int r = 0; r < R; ++r) a = fma(slope[r][c], v[r], a);
        store(dx + c * stride + k, a);
      }
    }
  };
  columns.template operator()<kNative<T>>();
  if constexpr (kNative < T >> kNarrow<T>) columns.template operator()<kNarrow<T>>();
  for (; k < n; ++k) {
    GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) {
      T s = kAdd ? dx[c * stride + k] : T(0);
      GRADWIRE_UNROLL
      for (int r = 0; r < R; ++r) s = scalar_fma(q[r][c], w[r * stride + k], s);
      dx[c * stride + k] = s;
    }
  }
}

// Computes the same with other loops: the sums of C lanes and U registers of N columns stay in registers
// while `units` rows of weights are read.
template <int C, int U, int N, class T>
GRADWIRE_KERNEL void back_sums_tile(const T* dy, Index units, Index lanes, const T* w, Index in, bool add,
                                    T* dx) {
  using V = Vec<T, N>;
  V a[C][U];
  const T* from = dx;
  GRADWIRE_UNROLL
  for (int c = 0; c < C; ++c, next_row(from, in)) {
    GRADWIRE_UNROLL
    for (int u = 0; u < U; ++u) a[c][u] = add ? load<V>(from + u * N) : V{};
  }
  for (const T* const end = dy + units * lanes; dy != end; dy += lanes, w += in) {
    V v[U];
    GRADWIRE_UNROLL
    for (int u = 0; u < U; ++u) v[u] = load<V>(w + u * N);
    GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) {
      const V q = splat<V>(dy[c]);
      GRADWIRE_UNROLL
      for (int u = 0; u < U; ++u) a[c][u] = fma(q, v[u], a[c][u]);
    }
  }
  GRADWIRE_UNROLL
  for (int c = 0; c < C; ++c, next_row(dx, in)) {
    GRADWIRE_UNROLL
    for (int u = 0; u < U; ++u) store(dx + u * N, a[c][u]);
  }
}

// REQUIRES: a multiple of 4 lanes.
template <class T>
void back_by_sums(const RowAffine<T>& p, const T* dy, bool add, T* dx) {
  constexpr int N = kNative<T>, C = 8;
  constexpr Index kUnits = 128;  // units whose weights stay in the second-level cache for all lanes
  for (Index o = 0; o < p.out; o += kUnits) {
    const Index units = p.out - o < kUnits ? p.out - o : kUnits;
    const bool adds = add || o > 0;
    const T *w = p.w + o * p.in, *d = dy + o * p.lanes;
    Index k = 0;
    const auto columns = [&]<int U, int M>() __attribute__((always_inline)) {
      for (; k + U * M <= p.in; k += U * M) {
        Index l = 0;
        for (; l + C <= p.lanes; l += C)
          back_sums_tile<C, U, M>(d + l, units, p.lanes, w + k, p.in, adds, dx + l * p.in + k);
        if (l < p.lanes) back_sums_tile<4, U, M>(d + l, units, p.lanes, w + k, p.in, adds, dx + l * p.in + k);
      }
    };
    columns.template operator()<3, N>();
    columns.template operator()<1, N>();
    if constexpr (N > kNarrow<T>) columns.template operator()<1, kNarrow<T>>();
    for (; k < p.in; ++k)
      for (Index l = 0; l < p.lanes; ++l) {
        T s = adds ? dx[l * p.in + k] : T(0);
        for (Index r = 0; r < units; ++r) s = scalar_fma(d[r * p.lanes + l], w[r * p.in + k], s);
        dx[l * p.in + k] = s;
      }
  }
}

// Both branches add up the units in the same order, so they give the same bits.
template <class T>
void row_backward(const RowAffine<T>& p, const T* dy, bool add, T* dx) {
  if constexpr (kRegisterBytes == 64) {
    // Measured on a Zen 4: if rows are a multiple of 4 KB, back_by_sums() mostly takes 0.55 to 0.95 of the
    // time of the tiles below; otherwise it takes the same time. It takes longer for few units, and for
    // weights that come from memory.
    constexpr Index kFewestUnits = 16, kMostBytes = Index{16} << 20;
    if (p.out >= kFewestUnits && p.out * p.in <= kMostBytes / static_cast<Index>(sizeof(T)))
      return back_by_sums(p, dy, add, dx);
  }
  constexpr Index kPiece = 8192 / sizeof(T);  // as in row_product()
  constexpr int R0 = kManyRegisters ? 6 : 3, C = 4;
  for (Index k = 0; k < p.in; k += kPiece) {
    const Index n = p.in - k < kPiece ? p.in - k : kPiece;
    in_runs<R0>(p.out, [&]<int R>(Index o) {
      for (Index l = 0; l < p.lanes; l += C) {
        const T* d = dy + o * p.lanes + l;
        if (add || o > 0)
          back_tile<R, C, true>(d, p.lanes, p.w + o * p.in + k, n, p.in, dx + l * p.in + k);
        else
          back_tile<R, C, false>(d, p.lanes, p.w + o * p.in + k, n, p.in, dx + l * p.in + k);
      }
    });
  }
}

}  // namespace gradwire::GRADWIRE_ISA
