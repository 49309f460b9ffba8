// Affine maps of data, y = W x + b, with W as [in][out]. A sample is given by its nonzero features, or by a
// row with all features. Both forms add in the same order. An output is the bias plus the features in
// ascending order. The gradient of a weight adds the samples in ascending order. So both give the same bits,
// except for the sign of a 0 and for a 0 times a number that is not finite.
//
// Kernels may read up to `out` numbers after the end of W and of its gradient, where those of the bias lie.
#pragma once

#include "engine/kernels/lane_product.h"

namespace gradwire::GRADWIRE_ISA {

// Returns the length of the narrowest vector that holds `count` numbers, or of a register if none does.
template <class T>
constexpr int vector_for(int count) {
  int n = kNative<T>;
  while (n > kNarrow<T> && n / 2 >= count) n /= 2;
  return n;
}

// ---- a few outputs: 2 to kFewOutputs ----

#ifdef GRADWIRE_FEW_VARIANTS
inline constexpr int kFewOutputs = 2;
#elif defined(GRADWIRE_SMALL)
inline constexpr int kFewOutputs = 8;
#else
inline constexpr int kFewOutputs = 16;
#endif

// kOut numbers in as few registers as hold them. The rest of the last register is never used.
template <int kOut, class T>
struct OutputRow {
  static constexpr int N = kNative<T>, kWhole = kOut / N, kRest = kOut % N;
  static constexpr int kLast = vector_for<T>(kRest == 0 ? N : kRest);
  static constexpr int kVectors = kWhole + (kRest > 0);
  using Last = Vec<T, kLast>;
  Vec<T, N> whole[kWhole > 0 ? kWhole : 1];
  Last last;

  GRADWIRE_KERNEL void load_from(const T* p) {
    for (int i = 0; i < kWhole; ++i) whole[i] = load<Vec<T, N>>(p + i * N);
    if constexpr (kRest > 0) last = load<Last>(p + kWhole * N);
  }
  GRADWIRE_KERNEL void store_to(T* p) const {
    for (int i = 0; i < kWhole; ++i) store(p + i * N, whole[i]);
    if constexpr (kRest > 0) store(p + kWhole * N, last);
  }
  GRADWIRE_KERNEL void add_row(T q, const T* p) {
    for (int i = 0; i < kWhole; ++i) whole[i] = fma(q, load<Vec<T, N>>(p + i * N), whole[i]);
    if constexpr (kRest > 0) last = fma(q, load<Last>(p + kWhole * N), last);
  }
};

// Computes kSamples samples at a time. The additions of one sample wait for each other; those of different
// samples do not.
template <int kOut, int kSamples, class T>
GRADWIRE_KERNEL void forward_of_few(const T* w, const OutputRow<kOut, T>& bias, const SparseSample<T>* sample,
                                    T* y, Index y_stride) {
  OutputRow<kOut, T> a[kSamples];
  Index common = sample[0].count;
  for (int s = 0; s < kSamples; ++s) {
    a[s] = bias;
    common = sample[s].count < common ? sample[s].count : common;
  }
  for (Index k = 0; k < common; ++k)
    for (int s = 0; s < kSamples; ++s)
      a[s].add_row(sample[s].value[k], w + static_cast<Index>(sample[s].index[k]) * kOut);
  for (int s = 0; s < kSamples; ++s) {
    for (Index k = common; k < sample[s].count; ++k)
      a[s].add_row(sample[s].value[k], w + static_cast<Index>(sample[s].index[k]) * kOut);
    a[s].store_to(y + s * y_stride);
  }
}

template <int kOut, class T>
void sparse_forward_few(const T* w, const T* bias, const SparseSample<T>* sample, Index samples, T* y,
                        Index y_stride) {
  constexpr int kVectors = OutputRow<kOut, T>::kVectors;
  constexpr int kTogether = kVectors <= 2 ? 4 : kVectors <= 4 ? 2 : 1;
  alignas(64) T padded[kFewOutputs] = {};
  for (int c = 0; c < kOut; ++c) padded[c] = bias[c];
  OutputRow<kOut, T> b;
  b.load_from(padded);
  in_runs<kTogether>(
      samples, [&]<int S>(Index s) __attribute__((always_inline)) {
        forward_of_few<kOut, S>(w, b, sample + s, y + s * y_stride, y_stride);
      });
}

// Loads two floats as half of a 16-byte vector. The compiler would keep a vector of only two floats in
// general registers.
GRADWIRE_KERNEL Vec<float, 4> load_pair(const float* p) {
  double pair;
  __builtin_memcpy(&pair, p, sizeof pair);
  return (Vec<float, 4>)Vec<double, 2>{pair, 0};
}
GRADWIRE_KERNEL void store_pair(float* p, Vec<float, 4> v) {
  const double pair = ((Vec<double, 2>)v)[0];
  __builtin_memcpy(p, &pair, sizeof pair);
}

// Computes y[c] += q x[c] for exactly kCount numbers. A longer or masked store would delay the next load of
// the numbers after y.
template <int kCount, int N = kNative<float>, class T>
GRADWIRE_KERNEL void add_exactly(T q, const T* x, T* y) {
  if constexpr (kCount == 0) {
    return;
  } else if constexpr (N >= kNarrow<T>) {
    if constexpr (N * sizeof(T) <= kRegisterBytes && kCount >= N) {
      store(y, fma(q, load<Vec<T, N>>(x), load<Vec<T, N>>(y)));
      add_exactly<kCount - N, N>(q, x + N, y + N);
    } else {
      add_exactly<kCount, N / 2>(q, x, y);
    }
  } else if constexpr (N == 2 && kCount >= 2) {
    store_pair(y, fma(q, load_pair(x), load_pair(y)));
    add_exactly<kCount - 2, 1>(q, x + 2, y + 2);
  } else {
    static_assert(kCount == 1);
    y[0] = scalar_fma(q, x[0], y[0]);
  }
}

template <int kOut, class T>
void sparse_backward_few(const T* dy, Index dy_stride, const SparseSample<T>* sample, Index samples, T* dw) {
  for (Index s = 0; s < samples; ++s) {
    alignas(64) T row[kOut];  // its address does not escape, so it stays in registers
    for (int c = 0; c < kOut; ++c) row[c] = dy[s * dy_stride + c];
    for (Index k = 0; k < sample[s].count; ++k)
      add_exactly<kOut>(sample[s].value[k], row, dw + static_cast<Index>(sample[s].index[k]) * kOut);
  }
}

// Calls f.operator()<out>() and returns true if out is 2 to kFewOutputs; else returns false.
template <int kOut = kFewOutputs, class F>
GRADWIRE_KERNEL bool with_few_outputs(Index out, F&& f) {
  if constexpr (kOut < 2) {
    return false;
  } else {
    if (out != kOut) return with_few_outputs<kOut - 1>(out, static_cast<F&&>(f));
    f.template operator()<kOut>();
    return true;
  }
}

// ---- any number of outputs ----

template <class T>
void sparse_forward_of(const T* w, const T* bias, Index out, const SparseSample<T>& sample, T* y) {
  Index c = 0;
  const auto columns = [&]<int N, int C>() {
    using V = Vec<T, N>;
    for (; c + N * C <= out; c += N * C) {
      V a[C];
      for (int i = 0; i < C; ++i) a[i] = load<V>(bias + c + i * N);
      for (Index k = 0; k < sample.count; ++k) {
        const T* row = w + static_cast<Index>(sample.index[k]) * out + c;
        for (int i = 0; i < C; ++i) a[i] = fma(sample.value[k], load<V>(row + i * N), a[i]);
      }
      for (int i = 0; i < C; ++i) store(y + c + i * N, a[i]);
    }
  };
  columns.template operator()<kNative<T>, 4>();
  columns.template operator()<kNative<T>, 1>();
  if constexpr (kNative < T >> kNarrow<T>) columns.template operator()<kNarrow<T>, 1>();
  for (; c < out; ++c) {
    T s = bias[c];
    for (Index k = 0; k < sample.count; ++k)
      s = scalar_fma(sample.value[k], w[static_cast<Index>(sample.index[k]) * out + c], s);
    y[c] = s;
  }
}

template <class T>
void sparse_forward(const T* w, const T* bias, Index out, const SparseSample<T>* sample, Index samples, T* y,
                    Index y_stride) {
  if (with_few_outputs(out,
                       [&]<int kOut>() { sparse_forward_few<kOut>(w, bias, sample, samples, y, y_stride); }))
    return;
  for (Index s = 0; s < samples; ++s) sparse_forward_of(w, bias, out, sample[s], y + s * y_stride);
}

template <class T>
void sparse_backward_of(const T* dy, Index out, const SparseSample<T>& sample, T* dw) {
  for (Index k = 0; k < sample.count; ++k) {
    T* row = dw + static_cast<Index>(sample.index[k]) * out;
    const T q = sample.value[k];
    Index c = 0;
    const auto columns = [&]<int N>() {
      for (; c + N <= out; c += N) store(row + c, fma(q, load<Vec<T, N>>(dy + c), load<Vec<T, N>>(row + c)));
    };
    columns.template operator()<kNative<T>>();
    if constexpr (kNative < T >> kNarrow<T>) columns.template operator()<kNarrow<T>>();
    for (; c < out; ++c) row[c] = scalar_fma(q, dy[c], row[c]);
  }
}

template <class T>
void sparse_backward(const T* dy, Index dy_stride, Index out, const SparseSample<T>* sample, Index samples,
                     T* dw) {
  if (with_few_outputs(out,
                       [&]<int kOut>() { sparse_backward_few<kOut>(dy, dy_stride, sample, samples, dw); }))
    return;
  for (Index s = 0; s < samples; ++s) sparse_backward_of(dy + s * dy_stride, out, sample[s], dw);
}

// ---- rows with all features ----

// Computes a product with W in which the samples are the rows, so the data need not be transposed.
template <class T>
void dense_forward(const T* w, const T* bias, Index out, const FeatureRows<T>& x, T* y, Index y_stride) {
  constexpr Index kPiece = 256;  // features whose weights stay in the cache while all samples are read
  constexpr int kUnit = kNative < T >> 4 ? kNative<T> : 4;
  const Index unit = out < kUnit ? vector_for<T>(static_cast<int>(out)) : kUnit;
  const Index width = unit < 4 ? 4 : (out + unit - 1) / unit * unit;  // the product needs a multiple of 4
  for (Index l = 0; l < x.lanes; ++l) {
    for (Index c = 0; c < out; ++c) y[l * y_stride + c] = bias[c];
    for (Index c = out; c < width; ++c) y[l * y_stride + c] = 0;
  }
  for (Index k = 0; k < x.in; k += kPiece)
    lane_product<T>({x.x + k, x.stride, false, x.lanes, x.in - k < kPiece ? x.in - k : kPiece, w + k * out,
                     out, width, nullptr, true, y, y_stride});
}

// Stores the first `count` numbers of v.
template <int N, class T>
GRADWIRE_KERNEL void store_first(T* p, Vec<T, N> v, Index count) {
  if constexpr (N == 1) {
    if (count == 1) *p = v[0];
  } else {
    if (count >= N) return store(p, v);
    if (count < N / 2) return store_first<N / 2>(p, low_half<T, N>(v), count);
    store(p, low_half<T, N>(v));
    store_first<N / 2>(p + N / 2, high_half<T, N>(v), count - N / 2);
  }
}

// Computes dw[k][c] += sum_l x[l][k] dy[l][c] for R features and C vectors of outputs. The last vector has
// `last` numbers.
template <int R, int C, int N, class T>
GRADWIRE_KERNEL void feature_tile(const FeatureRows<T>& x, Index k, const T* dy, Index dy_stride, Index out,
                                  Index last, T* dw) {
  using V = Vec<T, N>;
  V a[R][C];
  GRADWIRE_UNROLL
  for (int r = 0; r < R; ++r) GRADWIRE_UNROLL
  for (int c = 0; c < C; ++c) a[r][c] = load<V>(dw + r * out + c * N);
  const T* q = x.x + k;
  for (Index l = 0; l < x.lanes; ++l, q += x.stride, dy += dy_stride) {
    V v[C];
    GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) v[c] = load<V>(dy + c * N);
    GRADWIRE_UNROLL
    for (int r = 0; r < R; ++r) GRADWIRE_UNROLL
    for (int c = 0; c < C; ++c) a[r][c] = fma(q[r], v[c], a[r][c]);
  }
  GRADWIRE_UNROLL
  for (int r = 0; r < R; ++r) {
    GRADWIRE_UNROLL
    for (int c = 0; c + 1 < C; ++c) store(dw + r * out + c * N, a[r][c]);
    store_first<N>(dw + r * out + (C - 1) * N, a[r][C - 1], last);
  }
}

template <int C, int N, class T>
GRADWIRE_KERNEL void feature_columns(const FeatureRows<T>& x, const T* dy, Index dy_stride, Index out,
                                     Index last, T* dw) {
  Index k = 0;
  const auto rows = [&]<int R>() __attribute__((always_inline)) {
    for (; k + R <= x.in; k += R) feature_tile<R, C, N>(x, k, dy, dy_stride, out, last, dw + k * out);
  };
  rows.template operator()<kTileRows>();
  rows.template operator()<1>();
}

// Computes the outputs after the last whole register.
template <int N, class T>
GRADWIRE_KERNEL void last_columns(const FeatureRows<T>& x, const T* dy, Index dy_stride, Index out,
                                  Index last, T* dw) {
  if constexpr (N / 2 >= kNarrow<T>) {
    if (last <= N / 2) return last_columns<N / 2>(x, dy, dy_stride, out, last, dw);
  }
  feature_columns<1, N>(x, dy, dy_stride, out, last, dw);
}

template <class T>
void dense_backward(const T* dy, Index dy_stride, Index out, const FeatureRows<T>& x, T* dw) {
  constexpr int N = kNative<T>;
  Index c = 0;
  for (; c + 2 * N <= out; c += 2 * N) feature_columns<2, N>(x, dy + c, dy_stride, out, N, dw + c);
  for (; c + N <= out; c += N) feature_columns<1, N>(x, dy + c, dy_stride, out, N, dw + c);
  if (c < out) last_columns<N>(x, dy + c, dy_stride, out, out - c, dw + c);
}

}  // namespace gradwire::GRADWIRE_ISA
