// The arithmetic of networks and Hessians as a table of functions. It is compiled once per instruction set
// (engine/CMakeLists.txt); select.h chooses one table for the processor at program start. The rest of the
// engine is ordinary code.
//
// Layouts. A "lane" is one position of one sample in the microbatch. Activations are [channel][lane] with a
// multiple of 4 lanes, or plain vectors if there is one lane. Values straight from the data may be
// [lane][channel] ("rows"). Weights are [out][in]. Kernels may read and write arrays of activations up to the
// next multiple of kSlack numbers. If `add` is set, a kernel adds its result to the old values; else it
// overwrites them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradwire {

using Index = std::ptrdiff_t;
inline constexpr Index kSlack = 16;
inline constexpr Index kMostGramRows = 128;

// y[r][l] (+)= bias[r] + sum_k w(r, k) x[k][l], with w(r, k) = w[r w_stride + k], or w[k w_stride + r] if
// transposed.
template <class Real>
struct LaneProduct {
  const Real* w;
  Index w_stride;
  bool transposed;
  Index rows, depth;
  const Real* x;
  Index x_stride, lanes;
  const Real* bias;  // or null
  bool add;
  Real* y;
  Index y_stride;
};

// One affine map y = W x + b with x as rows [lane][in]; y and dy are [out][lane].
template <class Real>
struct RowAffine {
  const Real* w;
  const Real* bias;  // or null
  Index out, in;
  const Real* x;
  Index lanes;
};

// The tangent of a RowAffine: dy = W dx + V x + bias. dx is the derivative of x. V and `bias` are the
// directions of the weights and the bias.
template <class Real>
struct RowTangent {
  const Real* v;
  const Real* bias;  // or null
  const Real* dx;
  Real* dy;
};

// dw[r][c] (+)= sum_l A(r, l) B(c, l): a weight gradient of many lanes. A and B are [row][lane], or
// [lane][row] if turned.
template <class Real>
struct LaneOuter {
  const Real* a;
  Index a_stride;
  bool a_turned;
  Index rows;
  const Real* b;
  Index b_stride;
  bool b_turned;
  Index columns;
  Index lanes;
  bool add;
  Real* dw;      // [rows][columns]
  Real* panels;  // scratch of columns * lanes numbers
};

// The nonzero features of one sample: their numbers and their values.
template <class Real>
struct SparseSample {
  const std::uint32_t* index;
  const Real* value;
  Index count;
};

// Samples with all their features: x[lane][feature], rows `stride` apart.
template <class Real>
struct FeatureRows {
  const Real* x;
  Index stride;
  Index in, lanes;
};

// Causal or full attention of one microbatch. key, query, value and the result are [channel][lane].
template <class Real>
struct Attention {
  Index channels, heads, samples, positions, lanes;
  bool causal;
  const Real *key, *query, *value;
  Real* share;    // softmax, kept for the backward pass: kept() numbers
  Real* scratch;  // scratch_size() numbers
  Index padded() const { return (positions + 3) / 4 * 4; }
  static Index kept(Index heads, Index samples, Index positions) {
    return samples * heads * positions * ((positions + 3) / 4 * 4);
  }
  static Index scratch_size(Index channels, Index heads, Index positions) {
    const Index padded = (positions + 3) / 4 * 4;
    return 2 * padded * padded + 8 * (channels / heads) * padded + 2 * kSlack;
  }
};

// The shape of an image operation. Its input and output are [channel][y][x][lane].
struct ImageShape {
  Index in_channels, in_height, in_width;
  Index out_channels, out_height, out_width;
  Index window, padding;
  Index lanes;
};

template <class Real>
struct Kernels {
  const char* name;
  Index vector;  // numbers in a register

  // ---- affine maps and other products ----
  void (*lane_product)(const LaneProduct<Real>&);
  // Computes lane_product, and adds the products of w2 and x2, which have the layouts of w and x.
  void (*lane_product_pair)(const LaneProduct<Real>&, const Real* w2, const Real* x2);
  void (*row_forward)(const RowAffine<Real>&, Real* y);
  // Computes y with the bits of row_forward(), and its tangent.
  void (*row_tangent)(const RowAffine<Real>&, const RowTangent<Real>&, Real* y);
  void (*row_backward)(const RowAffine<Real>&, const Real* dy, bool add, Real* dx);
  // Computes dx and dW of one lane in one pass over W. It reads W before it writes dw, so dw may be w itself:
  // a descent step, which implies `add`. If dw is null, it computes only dx.
  void (*single_backward)(const RowAffine<Real>&, const Real* dy, bool add_x, Real* dx, bool add_w, Real* dw);
  // dw[o][k] (+)= sum_l dy[o][l] x[l][k]
  void (*outer)(const Real* dy, Index out, Index lanes, const Real* x, Index in, bool add, Real* dw);
  // Computes the same for matrices that exceed the caches. Copies B into panels first.
  void (*lane_outer)(const LaneOuter<Real>&);
  // g[c] (+)= sum_l d[c][l]
  void (*lane_sums)(const Real* d, Index channels, Index lanes, bool add, Real* g);
  // y[c][r] = x[r][c]
  void (*transpose)(const Real* x, Index rows, Index columns, Index x_stride, Real* y, Index y_stride);
  // ---- affine maps of data. w and dw are [in][out]. The bias follows w in memory, and its gradient follows
  // dw, so kernels may read `out` numbers after w and dw. Rows of y and dy have a stride that is a
  // multiple of kSlack. Kernels overwrite y and add to dw. ----

  // y[s][c] = bias[c] + sum_k value_s[k] w[index_s[k]][c]
  void (*sparse_forward)(const Real* w, const Real* bias, Index out, const SparseSample<Real>* sample,
                         Index samples, Real* y, Index y_stride);
  // dw[index_s[k]][c] += value_s[k] dy[s][c]
  void (*sparse_backward)(const Real* dy, Index dy_stride, Index out, const SparseSample<Real>* sample,
                          Index samples, Real* dw);
  // Do the same for samples with all their features. The bits are the same, except for the sign of a 0 and
  // for a 0 times a number that is not finite. REQUIRES: out > 1.
  void (*dense_forward)(const Real* w, const Real* bias, Index out, const FeatureRows<Real>& x, Real* y,
                        Index y_stride);
  void (*dense_backward)(const Real* dy, Index dy_stride, Index out, const FeatureRows<Real>& x, Real* dw);

  // Adds sum_l weight[l] x_l x_l^T to the packed upper triangle of engine/upper_triangle.h. Sums over l in
  // ascending order before it adds to `upper`. Takes at most kMostGramRows rows. May read kSlack numbers
  // after the end of a row.
  void (*gram)(const FeatureRows<Real>& x, const Real* weight, Real* upper);

  // ---- number by number; n numbers, all arrays with slack ----
  void (*activation_forward[4])(Index n, const Real* x, Real* y);  // by Activation; y may be x
  void (*activation_backward[4])(Index n, const Real* y_or_x, const Real* dy, bool add,
                                 Real* dx);                     // dx may be dy
  void (*add)(Index n, const Real* x, const Real* y, Real* z);  // z may be x or y
  void (*copy)(Index n, const Real* x, Real* y);
  void (*multiply)(Index n, const Real* x, const Real* y, bool add, Real* z);
  // x[c][l] *= factor[l]
  void (*scale_lanes)(Real* x, Index channels, Index lanes, const Real* factor);
  // g[k][l] = sum_c x[c][l] x[c][l + k] for k < distances <= kSlack. Reads numbers after the last lane;
  // results from them have no meaning.
  void (*lane_grams)(const Real* x, Index channels, Index lanes, Index distances, Real* g);
  void (*axpy)(Index n, Real a, const Real* x, Real* y);  // y += a x; no slack needed

  // ---- layer norm: `keep` is [2][lanes], the mean and 1 / sqrt(variance + epsilon) ----
  void (*norm_forward)(const Real* x, Index channels, Index lanes, const Real* gain_bias, Real epsilon,
                       Real* keep, Real* y);
  // scratch is [channels][lanes]
  void (*norm_backward)(const Real* x, const Real* dy, Index channels, Index lanes, const Real* gain,
                        const Real* keep, bool add_x, Real* dx, bool add_w, Real* dgain_bias, Real* scratch);

  // dy = the derivative of the norm in the direction dx of x and dgain_bias of its parameters.
  void (*norm_tangent)(const Real* x, const Real* dx, Index channels, Index lanes, const Real* gain,
                       const Real* dgain_bias, const Real* keep, Real* dy);

  void (*attention_forward)(const Attention<Real>&, Real* y);
  // dy = the derivative in the directions d[0..2] of key, query, value. Call it after attention_forward().
  void (*attention_tangent)(const Attention<Real>&, const Real* const d[3], Real* dy);
  // d[0..2] = gradients of key, query, value, each assigned or added.
  void (*attention_backward)(const Attention<Real>&, const Real* dy, const bool add[3], Real* const d[3]);

  // ---- images ----
  void (*convolution_forward)(const ImageShape&, const Real* x, const Real* w, const Real* bias, Real* y);
  void (*convolution_input)(const ImageShape&, const Real* dy, const Real* w, bool add, Real* dx);
  void (*convolution_weights)(const ImageShape&, const Real* dy, const Real* x, bool add, Real* dw);
  // `winner` has the shape of y. It stores which input of each window is largest.
  void (*max_pool_forward)(const ImageShape&, const Real* x, Real* winner, Real* y);
  void (*max_pool_tangent)(const ImageShape&, const Real* dx, const Real* winner, Real* dy);
  void (*max_pool_backward)(const ImageShape&, const Real* dy, const Real* winner, bool add, Real* dx);
  void (*average_pool_forward)(const ImageShape&, const Real* x, Real* y);
  void (*average_pool_backward)(const ImageShape&, const Real* dy, bool add, Real* dx);

  // ---- softmax cross-entropy. The loss of a lane is log(total) + top - x[label]. Its gradient is
  // dx = seed (softmax(x) - e), where e is 1 at the label and 0 elsewhere. ----
  void (*cross_entropy)(const Real* x, Index channels, Index lanes, const std::uint16_t* label,
                        const Real* seed, Real* top, Real* total, Real* dx);

  // ---- peak of the core ----
  // Computes v <- v a + b for multiply_adds_a_round numbers, `rounds` times. They start at 1. Returns their
  // sum.
  Real (*multiply_adds)(Index rounds, Real a, Real b);
  Index multiply_adds_a_round;
};

}  // namespace gradwire
