// Convolution and pooling of images [channel][y][x][lane]. Lanes are adjacent, so every tap of a filter is a
// weight times a row of lanes, and no patch is copied.
#pragma once

#include "engine/kernels/vec.h"

namespace gradwire::GRADWIRE_ISA {

// The taps first .. last - 1 of a filter, which fall inside the image for one output coordinate.
struct Taps {
  Index first, last;
};
GRADWIRE_KERNEL Taps taps(Index out, Index window, Index padding, Index in) {
  const Index low = padding - out, high = in + padding - out;
  return {low > 0 ? low : 0, high < window ? high : window};
}

template <class T>
void convolution_forward(const ImageShape& s, const T* x, const T* w, const T* bias, T* y) {
  const Index area = s.window * s.window, filter = s.in_channels * area, L = s.lanes;
  const Index in_plane = s.in_height * s.in_width * L, out_plane = s.out_height * s.out_width * L;
  for (Index i = 0; i < s.out_height; ++i) {
    const Taps ky = taps(i, s.window, s.padding, s.in_height);
    for (Index j = 0; j < s.out_width; ++j) {
      const Taps kx = taps(j, s.window, s.padding, s.in_width);
      const T* corner = x + ((i - s.padding) * s.in_width + j - s.padding) * L;
      T* to = y + (i * s.out_width + j) * L;
      for_lanes<T>(L, [&]<int N>(Index l) {
        using V = Vec<T, N>;
        in_runs<kTileRows>(s.out_channels, [&]<int R>(Index o) {
          V a[R];
          for (int r = 0; r < R; ++r) a[r] = splat<V>(bias[o + r]);
          for (Index c = 0; c < s.in_channels; ++c)
            for (Index p = ky.first; p < ky.last; ++p) {
              const T* from = corner + c * in_plane + p * s.in_width * L + l;
              const T* weight = w + o * filter + c * area + p * s.window;
              for (Index q = kx.first; q < kx.last; ++q) {
                const V v = load<V>(from + q * L);
                for (int r = 0; r < R; ++r) a[r] = fma(weight[r * filter + q], v, a[r]);
              }
            }
          for (int r = 0; r < R; ++r) store(to + (o + r) * out_plane + l, a[r]);
        });
      });
    }
  }
}

// Computes dx[c][y][x] (+)= the sum over filters and taps of
// w[o][c][p][q] dy[o][y + padding - p][x + padding - q].
template <class T>
void convolution_input(const ImageShape& s, const T* dy, const T* w, bool add, T* dx) {
  const Index area = s.window * s.window, filter = s.in_channels * area, L = s.lanes;
  const Index in_plane = s.in_height * s.in_width * L, out_plane = s.out_height * s.out_width * L;
  for (Index i = 0; i < s.in_height; ++i) {
    // out row = i + padding - p must lie in [0, out_height)
    const Index p_first = i + s.padding - (s.out_height - 1) > 0 ? i + s.padding - (s.out_height - 1) : 0;
    const Index p_last = i + s.padding < s.window - 1 ? i + s.padding + 1 : s.window;
    for (Index j = 0; j < s.in_width; ++j) {
      const Index q_first = j + s.padding - (s.out_width - 1) > 0 ? j + s.padding - (s.out_width - 1) : 0;
      const Index q_last = j + s.padding < s.window - 1 ? j + s.padding + 1 : s.window;
      T* to = dx + (i * s.in_width + j) * L;
      for_lanes<T>(L, [&]<int N>(Index l) {
        using V = Vec<T, N>;
        in_runs<kTileRows>(s.in_channels, [&]<int R>(Index c) {
          V a[R];
          for (int r = 0; r < R; ++r) a[r] = add ? load<V>(to + (c + r) * in_plane + l) : V{};
          for (Index o = 0; o < s.out_channels; ++o)
            for (Index p = p_first; p < p_last; ++p)
              for (Index q = q_first; q < q_last; ++q) {
                const Index at = (i + s.padding - p) * s.out_width + j + s.padding - q;
                const V v = load<V>(dy + o * out_plane + at * L + l);
                const T* weight = w + o * filter + c * area + p * s.window + q;
                for (int r = 0; r < R; ++r) a[r] = fma(weight[r * area], v, a[r]);
              }
          for (int r = 0; r < R; ++r) store(to + (c + r) * in_plane + l, a[r]);
        });
      });
    }
  }
}

// Computes dw[o][c][p][q] (+)= the sum of dy x over pixels and lanes, for R filters and Q taps of one row.
// Sums over lanes last.
template <int R, int Q, class T>
GRADWIRE_KERNEL void tap_sums(const ImageShape& s, const T* dy, const T* x, Index p, Index q0, bool add,
                              T* dw) {
  using V = Vec<T, kNarrow<T>>;
  constexpr int N = kNative<T>;
  using Wide = Vec<T, N>;
  const Index filter = s.in_channels * s.window * s.window, L = s.lanes;
  const Index out_plane = s.out_height * s.out_width * L;
  Wide wide[R][Q] = {};
  V narrow[R][Q] = {};
  const Index i_first = s.padding - p > 0 ? s.padding - p : 0;
  const Index i_last =
      s.in_height + s.padding - p < s.out_height ? s.in_height + s.padding - p : s.out_height;
  // Adds one pixel for K taps from q on. K is Q if all taps fall inside the image. For the few other columns,
  // K is 1.
  const auto pixel = [&]<int K>(Index i, Index j, int q) __attribute__((always_inline)) {
    const T* from = x + ((i + p - s.padding) * s.in_width + j + q0 + q - s.padding) * L;
    const T* slope = dy + (i * s.out_width + j) * L;
    Index l = 0;
    for (; l + N <= L; l += N)
      for (int r = 0; r < R; ++r) {
        const Wide d = load<Wide>(slope + r * out_plane + l);
        for (int k = 0; k < K; ++k)
          wide[r][K == 1 ? q : k] = fma(d, load<Wide>(from + k * L + l), wide[r][K == 1 ? q : k]);
      }
    for (; l < L; l += kNarrow<T>)
      for (int r = 0; r < R; ++r) {
        const V d = load<V>(slope + r * out_plane + l);
        for (int k = 0; k < K; ++k)
          narrow[r][K == 1 ? q : k] = fma(d, load<V>(from + k * L + l), narrow[r][K == 1 ? q : k]);
      }
  };
  for (Index i = i_first; i < i_last; ++i)
    for (Index j = 0; j < s.out_width; ++j) {
      const Index left = j + q0 - s.padding, right = left + Q;
      if (left >= 0 && right <= s.in_width)
        pixel.template operator()<Q>(i, j, 0);
      else
        for (int q = 0; q < Q; ++q)
          if (left + q >= 0 && left + q < s.in_width) pixel.template operator()<1>(i, j, q);
    }
  for (int r = 0; r < R; ++r)
    for (int q = 0; q < Q; ++q) {
      T* g = dw + r * filter + p * s.window + q0 + q;
      *g = (add ? *g : T(0)) + sum<T, N>(wide[r][q]) + sum<T, kNarrow<T>>(narrow[r][q]);
    }
}

template <class T>
void convolution_weights(const ImageShape& s, const T* dy, const T* x, bool add, T* dw) {
#ifdef GRADWIRE_FEW_VARIANTS
  constexpr int kChannels = 1, kTaps = 1;
#else
  constexpr int kChannels = 2, kTaps = 5;
#endif
  const Index area = s.window * s.window, filter = s.in_channels * area;
  const Index in_plane = s.in_height * s.in_width * s.lanes, out_plane = s.out_height * s.out_width * s.lanes;
  in_runs<kChannels>(s.out_channels, [&]<int R>(Index o) {
    for (Index c = 0; c < s.in_channels; ++c)
      for (Index p = 0; p < s.window; ++p)
        in_runs<kTaps>(s.window, [&]<int Q>(Index q) {
          tap_sums<R, Q>(s, dy + o * out_plane, x + c * in_plane, p, q, add, dw + o * filter + c * area);
        });
  });
}

// ---- pooling: adjacent squares of window x window ----

// Calls f(from, to) for every square and run of lanes: the offsets of the first input of the square, and of
// its output.
template <class T, class F>
GRADWIRE_KERNEL void for_squares(const ImageShape& s, F&& f) {
  for (Index c = 0; c < s.out_channels; ++c)
    for (Index i = 0; i < s.out_height; ++i)
      for (Index j = 0; j < s.out_width; ++j) {
        const Index from = ((c * s.in_height + i * s.window) * s.in_width + j * s.window) * s.lanes;
        const Index to = ((c * s.out_height + i) * s.out_width + j) * s.lanes;
        for_lanes<T>(s.lanes, [&]<int N>(Index l) { f.template operator()<N>(from + l, to + l); });
      }
}

// Keeps the first of equal inputs. The first nan wins over every number.
template <class T>
void max_pool_forward(const ImageShape& s, const T* x, T* winner, T* y) {
  for_squares<T>(s, [&]<int N>(Index from, Index to) {
    using V = Vec<T, N>;
    V best = load<V>(x + from), which = {};
    for (Index p = 0; p < s.window; ++p)
      for (Index q = 0; q < s.window; ++q) {
        const V v = load<V>(x + from + (p * s.in_width + q) * s.lanes);
        const auto wins = ~(v <= best) & (best == best);
        which = wins ? splat<V>(static_cast<T>(p * s.window + q)) : which;
        best = wins ? v : best;
      }
    store(y + to, best);
    store(winner + to, which);
  });
}

template <class T>
void max_pool_tangent(const ImageShape& s, const T* dx, const T* winner, T* dy) {
  for_squares<T>(s, [&]<int N>(Index from, Index to) {
    using V = Vec<T, N>;
    const V which = load<V>(winner + to);
    V d = {};
    for (Index p = 0; p < s.window; ++p)
      for (Index q = 0; q < s.window; ++q)
        d = which == static_cast<T>(p * s.window + q) ? load<V>(dx + from + (p * s.in_width + q) * s.lanes)
                                                      : d;
    store(dy + to, d);
  });
}

template <class T>
GRADWIRE_KERNEL void clear_image(const ImageShape& s, T* dx) {
  const Index n = s.in_channels * s.in_height * s.in_width * s.lanes;
  for (Index i = 0; i < n; i += kNarrow<T>) store(dx + i, Vec<T, kNarrow<T>>{});
}

template <class T>
void max_pool_backward(const ImageShape& s, const T* dy, const T* winner, bool add, T* dx) {
  if (!add) clear_image(s, dx);  // squares need not cover the image
  for_squares<T>(s, [&]<int N>(Index from, Index to) {
    using V = Vec<T, N>;
    const V d = load<V>(dy + to), which = load<V>(winner + to);
    for (Index p = 0; p < s.window; ++p)
      for (Index q = 0; q < s.window; ++q) {
        T* at = dx + from + (p * s.in_width + q) * s.lanes;
        store(at, load<V>(at) + (which == static_cast<T>(p * s.window + q) ? d : V{}));
      }
  });
}

template <class T>
void average_pool_forward(const ImageShape& s, const T* x, T* y) {
  const T share = T(1) / static_cast<T>(s.window * s.window);
  for_squares<T>(s, [&]<int N>(Index from, Index to) {
    using V = Vec<T, N>;
    V total = {};
    for (Index p = 0; p < s.window; ++p)
      for (Index q = 0; q < s.window; ++q) total += load<V>(x + from + (p * s.in_width + q) * s.lanes);
    store(y + to, total * share);
  });
}

template <class T>
void average_pool_backward(const ImageShape& s, const T* dy, bool add, T* dx) {
  const T share = T(1) / static_cast<T>(s.window * s.window);
  if (!add) clear_image(s, dx);
  for_squares<T>(s, [&]<int N>(Index from, Index to) {
    using V = Vec<T, N>;
    const V d = load<V>(dy + to) * share;
    for (Index p = 0; p < s.window; ++p)
      for (Index q = 0; q < s.window; ++q) {
        T* at = dx + from + (p * s.in_width + q) * s.lanes;
        store(at, load<V>(at) + d);
      }
  });
}

}  // namespace gradwire::GRADWIRE_ISA
