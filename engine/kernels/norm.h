// Layer normalization over the channels of each lane, and softmax cross-entropy.
#pragma once

#include "engine/kernels/sums.h"
#include "engine/kernels/vec_math.h"

namespace gradwire::GRADWIRE_ISA {

// Computes 1 / (standard deviation) for lanes where the sum of squares overflows but the deviation does not.
// epsilon is negligible then.
template <class T, int N>
[[gnu::noinline, gnu::cold]] void inverse_of_large(const T* x, Index channels, Index lanes, T share,
                                                   const T* mean, T* inverse) {
  using V = Vec<T, N>;
  constexpr T kDown = sizeof(T) == 4 ? T(0x1p-80) : T(0x1p-540);
  V square = {};
  for (Index c = 0; c < channels; ++c) {
    const V d = (load<V>(x + c * lanes) - load<V>(mean)) * kDown;
    square = fma(d, d, square);
  }
  const V small = load<V>(inverse), large = inverse_root<T, N>(square * share) * kDown;
  store(inverse, small == 0 ? large : small);
}

// Stores keep[0][l] = mean and keep[1][l] = 1 / sqrt(variance + epsilon).
template <class T>
void norm_forward(const T* x, Index channels, Index lanes, const T* gain_bias, T epsilon, T* keep, T* y) {
  const T* bias = gain_bias + channels;
  const T share = T(1) / static_cast<T>(channels);
  for_lanes<T>(lanes, [&]<int N>(Index l) {
    using V = Vec<T, N>;
    V mean = {};
    for (Index c = 0; c < channels; ++c) mean += load<V>(x + c * lanes + l);
    mean *= share;
    V square = {};
    for (Index c = 0; c < channels; ++c) {
      const V d = load<V>(x + c * lanes + l) - mean;
      square = fma(d, d, square);
    }
    V inverse = inverse_root<T, N>(square * share + epsilon);
    store(keep + l, mean);
    store(keep + lanes + l, inverse);
    if (sum<T, N>(inverse == 0 ? splat<V>(T(1)) : V{}) > 0) {
      inverse_of_large<T, N>(x + l, channels, lanes, share, keep + l, keep + lanes + l);
      inverse = load<V>(keep + lanes + l);
    }
    for (Index c = 0; c < channels; ++c) {
      const V hat = (load<V>(x + c * lanes + l) - mean) * inverse;
      store(y + c * lanes + l, fma(gain_bias[c], hat, splat<V>(bias[c])));
    }
  });
}

template <class T>
void norm_tangent(const T* x, const T* dx, Index channels, Index lanes, const T* gain, const T* dgain_bias,
                  const T* keep, T* dy) {
  const T share = T(1) / static_cast<T>(channels);
  for_lanes<T>(lanes, [&]<int N>(Index l) {
    using V = Vec<T, N>;
    const V mean = load<V>(keep + l), inverse = load<V>(keep + lanes + l);
    V sum_d = {}, sum_dh = {};
    for (Index c = 0; c < channels; ++c) {
      const V d = load<V>(dx + c * lanes + l);
      sum_d += d;
      sum_dh = fma(d, (load<V>(x + c * lanes + l) - mean) * inverse, sum_dh);
    }
    sum_d *= share;
    sum_dh *= share;
    for (Index c = 0; c < channels; ++c) {
      const V hat = (load<V>(x + c * lanes + l) - mean) * inverse;
      const V d = (load<V>(dx + c * lanes + l) - sum_d - hat * sum_dh) * inverse;
      const V of_parameters = fma(dgain_bias[c], hat, splat<V>(dgain_bias[channels + c]));
      store(dy + c * lanes + l, fma(gain[c], d, of_parameters));
    }
  });
}

template <class T>
void norm_backward(const T* x, const T* dy, Index channels, Index lanes, const T* gain, const T* keep,
                   bool add_x, T* dx, bool add_w, T* dgain_bias, T* scratch) {
  const T share = T(1) / static_cast<T>(channels);
  for_lanes<T>(lanes, [&]<int N>(Index l) {
    using V = Vec<T, N>;
    const V mean = load<V>(keep + l), inverse = load<V>(keep + lanes + l);
    V sum_e = {}, sum_eh = {};
    for (Index c = 0; c < channels; ++c) {
      const V hat = (load<V>(x + c * lanes + l) - mean) * inverse;
      const V d = load<V>(dy + c * lanes + l);
      const V e = d * gain[c];
      store(scratch + c * lanes + l, hat * d);
      sum_e += e;
      sum_eh = fma(e, hat, sum_eh);
    }
    sum_e *= share;
    sum_eh *= share;
    for (Index c = 0; c < channels; ++c) {
      const V hat = (load<V>(x + c * lanes + l) - mean) * inverse;
      const V d = (load<V>(dy + c * lanes + l) * gain[c] - sum_e - hat * sum_eh) * inverse;
      store(dx + c * lanes + l, add_x ? load<V>(dx + c * lanes + l) + d : d);
    }
  });
  lane_sums(static_cast<const T*>(scratch), channels, lanes, add_w, dgain_bias);
  lane_sums(dy, channels, lanes, add_w, dgain_bias + channels);
}

// Does the work of cross_entropy() for one lane. Its channels are adjacent, so sums go across registers.
template <class T>
void cross_entropy_single(const T* x, Index channels, std::uint16_t label, T seed, T* top, T* total, T* dx) {
  constexpr int N = kNarrow<T>;
  using V = Vec<T, N>;
  T most = x[0], sum_of = 0;
  for (Index c = 1; c < channels; ++c) most = x[c] > most ? x[c] : most;
  Index c = 0;
  V sums = {};
  for (; c + N <= channels; c += N) {
    const V e = exp<T, N>(load<V>(x + c) - most);
    sums += e;
    store(dx + c, e);
  }
  sum_of = sum<T, N>(sums);
  if (c < channels) {
    const V e = exp<T, N>(load<V>(x + c) - most);
    for (int i = 0; c + i < channels; ++i) {
      sum_of += e[i];
      dx[c + i] = e[i];
    }
  }
  const T scale = seed / sum_of;
  for (c = 0; c < channels; ++c) dx[c] *= scale;
  dx[label] -= seed;
  *top = most;
  *total = sum_of;
}

template <class T>
void cross_entropy(const T* x, Index channels, Index lanes, const std::uint16_t* label, const T* seed, T* top,
                   T* total, T* dx) {
  if (lanes == 1) return cross_entropy_single(x, channels, *label, *seed, top, total, dx);
  for_lanes<T>(lanes, [&]<int N>(Index l) {
    using V = Vec<T, N>;
    V most = load<V>(x + l), total_of = {};
    for (Index c = 1; c < channels; ++c) most = larger(most, load<V>(x + c * lanes + l));
    for (Index c = 0; c < channels; ++c) {
      const V e = exp<T, N>(load<V>(x + c * lanes + l) - most);
      store(dx + c * lanes + l, e);
      total_of += e;
    }
    store(top + l, most);
    store(total + l, total_of);
    const V seeds = load<V>(seed + l);
    const V scale = seeds / total_of;
    for (Index c = 0; c < channels; ++c) store(dx + c * lanes + l, load<V>(dx + c * lanes + l) * scale);
    for (int i = 0; i < N; ++i) dx[label[l + i] * lanes + l + i] -= seeds[i];
  });
}

}  // namespace gradwire::GRADWIRE_ISA
