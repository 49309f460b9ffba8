// The operations of a microbatch that take more than one call of a kernel.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "engine/nn/micro_batch.h"

namespace gradwire {

// ---- affine maps ----

namespace {

Index last_row(const BackwardPart& part, Index out) {
  return part.rows.end < static_cast<std::size_t>(out) ? static_cast<Index>(part.rows.end) : out;
}

}  // namespace

template <class Real>
void MicroBatch<Real>::affine(const Step& step, const Real* x, Real* to) {
  const Op& op = step.op;
  const Index in = channels(op.in[0]), out = channels(op.out);
  const Real* w = x + op.first[0];
  const Real* bias = op.count[1] > 0 ? x + op.first[1] : nullptr;
  if (as_rows(op.in[0])) {
    kernels_.row_forward({w, bias, out, in, value(op.in[0]), lanes_}, to);
  } else {
    kernels_.lane_product({w, in, false, out, in, value(op.in[0]), lanes_, lanes_, bias, false, to, lanes_});
  }
}

// Returns the values of a node as rows, for gradients of weights. Consecutive operations that read the same
// node share them.
template <class Real>
const Real* MicroBatch<Real>::turned(std::uint32_t node) {
  if (as_rows(node)) return value(node);
  if (turned_node_ != node) {
    kernels_.transpose(value(node), channels(node), lanes_, lanes_, turned_, channels(node));
    turned_node_ = node;
  }
  return turned_;
}

// Computes the gradients by the input and by the weights for a run of units.
template <class Real>
void MicroBatch<Real>::unit_gradients(const Step& step, const UnitRun& units, const Real* dy, const Real* x,
                                      Real* gradient) {
  const Op& op = step.op;
  const Index in = channels(op.in[0]), at = units.first * in;
  const Real* w = x + op.first[0] + at;
  const Real* slopes = dy;
  dy += units.first * lanes_;
  const RowAffine<Real> rows{w, nullptr, units.count, in, value(op.in[0]), lanes_};
  Real* dx = units.input ? slope(op.in[0]) : nullptr;
  const Index weights = units.weights_end - units.weights_first;
  Real* dw = gradient + op.first[0] + units.weights_first * in;
  if (lanes_ == 1 && !step.skip[0]) {
    // One pass over the weights computes both gradients. Units are added to the gradient of the input one
    // after another, so it does not matter where the pass is cut.
    if (dx != nullptr) {
      bool add_input = units.add_input;
      const auto pass = [&](Index first, Index end, bool with_weights) {
        if (first == end) return;
        const Index weight = first * in;
        kernels_.single_backward({x + op.first[0] + weight, nullptr, end - first, in, rows.x, lanes_},
                                 slopes + first, add_input, dx, units.add_weights,
                                 with_weights ? gradient + op.first[0] + weight : nullptr);
        add_input = true;
      };
      const Index last = units.first + units.count;
      const Index from = weights > 0 ? units.weights_first : last,
                  to = weights > 0 ? units.weights_end : last;
      pass(units.first, from, false);
      pass(from, to, true);
      pass(to, last, false);
    } else if (weights > 0)
      kernels_.single_backward(
          {x + op.first[0] + units.weights_first * in, nullptr, weights, in, value(op.in[0]), lanes_},
          dy + (units.weights_first - units.first), false, slope(op.in[0]), units.add_weights, dw);
    return;
  }
  // Read the weights before writing their gradient, which may overwrite them.
  if (dx != nullptr && as_rows(op.in[0])) kernels_.row_backward(rows, dy, units.add_input, dx);
  if (dx != nullptr && !as_rows(op.in[0]))
    kernels_.lane_product(
        {w, in, true, in, units.count, dy, lanes_, lanes_, nullptr, units.add_input, dx, lanes_});
  if (weights == 0) return;
  const Real* of_weights = dy + (units.weights_first - units.first) * lanes_;
  if (!wide(op.count[0]))
    return kernels_.outer(of_weights, weights, lanes_, turned(op.in[0]), in, units.add_weights, dw);
  const bool rows_of_x = as_rows(op.in[0]);
  turned_node_ = Op::kNone;
  kernels_.lane_outer({of_weights, lanes_, false, weights, value(op.in[0]), rows_of_x ? in : lanes_,
                       rows_of_x, in, lanes_, units.add_weights, dw, turned_});
}

template <class Real>
void MicroBatch<Real>::affine_backward(const Step& step, const BackwardPart& part, const Real* x,
                                       Real* gradient, bool add) {
  const Op& op = step.op;
  const Index out = channels(op.out);
  const Real* dy = slope(op.out);
  unit_gradients(step,
                 {.first = 0,
                  .count = out,
                  .input = part.input[0] && !step.skip[0],
                  .add_input = step.add[0],
                  .weights_first = static_cast<Index>(part.rows.first),
                  .weights_end = last_row(part, out),
                  .add_weights = add},
                 dy, x, gradient);
  if (op.count[1] > 0 && part.parameters) kernels_.lane_sums(dy, out, lanes_, add, gradient + op.first[1]);
}

// Sets the gradient of dropped units to 0. Divides the gradient of the others by their probability.
template <class Real>
void MicroBatch<Real>::random_affine_backward(const Step& step, const BackwardPart& part,
                                              const KeptUnits& kept, const Real* x, Real* gradient,
                                              bool add) {
  if (kept.count == kept.all) return affine_backward(step, part, x, gradient, add);
  const Op& op = step.op;
  const Index out = channels(op.out), in = channels(op.in[0]);
  const auto first = static_cast<Index>(kept.first), count = static_cast<Index>(kept.count);
  const Index round = std::max<Index>(first + count - out, 0);  // units that wrap to the beginning
  const Real scale = static_cast<Real>(kept.all) / static_cast<Real>(kept.count);
  const Real* dy = slope(op.out);
  const Index low = static_cast<Index>(part.rows.first), high = last_row(part, out);
  bool add_input = step.add[0];
  const auto run = [&](Index from, Index end) {
    for (Index i = from * lanes_; i < end * lanes_; ++i) scratch_[i] = scale * dy[i];
    const Index weights_first = std::max(from, low);
    unit_gradients(step,
                   {.first = from,
                    .count = end - from,
                    .input = part.input[0] && !step.skip[0],
                    .add_input = add_input,
                    .weights_first = weights_first,
                    .weights_end = std::max(weights_first, std::min(end, high)),
                    .add_weights = add},
                   scratch_, x, gradient);
    add_input = true;
    if (op.count[1] > 0 && part.parameters)
      kernels_.lane_sums(scratch_ + from * lanes_, end - from, lanes_, add, gradient + op.first[1] + from);
  };
  const auto clear = [&](Index from, Index end) {
    if (add || !part.parameters) return;
    std::fill_n(gradient + op.first[0] + from * in, (end - from) * in, Real(0));
    if (op.count[1] > 0) std::fill_n(gradient + op.first[1] + from, end - from, Real(0));
  };
  run(first, std::min(first + count, out));
  if (round > 0) run(0, round);
  clear(round, first);
  clear(std::min(first + count, out), out);
}

// ---- two operands ----

template <class Real>
void MicroBatch<Real>::add_backward(const Step& step, const BackwardPart& part) {
  const Op& op = step.op;
  const Index n = numbers(op.out);
  const Real* dz = slope(op.out);
  for (int k = 0; k < 2; ++k) {
    if (step.skip[k] || !part.input[k]) continue;
    Real* d = slope(op.in[k]);
    if (step.add[k])
      kernels_.add(n, d, dz, d);
    else
      kernels_.copy(n, dz, d);
  }
}

template <class Real>
void MicroBatch<Real>::multiply_backward(const Step& step, const BackwardPart& part) {
  const Op& op = step.op;
  for (int k = 0; k < 2; ++k)
    if (part.input[k])
      kernels_.multiply(numbers(op.out), slope(op.out), value(op.in[1 - k]), step.add[k], slope(op.in[k]));
}

// Computes y = the mean of x over each sample's positions. The map is its own transpose, so backward calls it
// also.
template <class Real>
void MicroBatch<Real>::mean_over_positions(std::uint32_t node, const Real* x, bool add, Real* y) {
  const Index positions = static_cast<Index>(plan_.positions);
  const Real share = Real(1) / static_cast<Real>(positions);
  for (Index c = 0; c < channels(node); ++c) {
    const Real* from = x + c * lanes_;
    Real* to = y + c * lanes_;
    for (Index first = 0; first < real_lanes_; first += positions) {
      Real sum = 0;
      for (Index t = 0; t < positions; ++t) sum += from[first + t];
      for (Index t = 0; t < positions; ++t) to[first + t] = (add ? to[first + t] : Real(0)) + sum * share;
    }
    // Padding lanes must only be finite, and 0 in the backward pass, so a copy is enough.
    for (Index l = real_lanes_; l < lanes_ && !add; ++l) to[l] = from[l];
  }
}

// ---- images and attention ----

template <class Real>
ImageShape MicroBatch<Real>::image(const Op& op) const {
  const TensorShape& in = plan_.places[op.in[0]].shape;
  const TensorShape& out = plan_.places[op.out].shape;
  const auto index = [](std::size_t n) { return static_cast<Index>(n); };
  return {index(in.channels),  index(in.height),  index(in.width),
          index(out.channels), index(out.height), index(out.width),
          index(op.window),    index(op.padding), lanes_};
}

template <class Real>
void MicroBatch<Real>::convolution_backward(const Step& step, const BackwardPart& part, const Real* x,
                                            Real* gradient, bool add) {
  const Op& op = step.op;
  const ImageShape shape = image(op);
  const Real* dy = slope(op.out);
  if (!step.skip[0] && part.input[0])
    kernels_.convolution_input(shape, dy, x + op.first[0], step.add[0], slope(op.in[0]));
  if (!part.parameters) return;
  kernels_.convolution_weights(shape, dy, value(op.in[0]), add, gradient + op.first[0]);
  const Index plane = shape.out_height * shape.out_width * lanes_;
  kernels_.lane_sums(dy, shape.out_channels, plane, add, gradient + op.first[1]);
}

template <class Real>
Attention<Real> MicroBatch<Real>::attention(const Step& step) {
  const Op& op = step.op;
  return {.channels = channels(op.out),
          .heads = static_cast<Index>(op.heads),
          .samples = static_cast<Index>(samples_),
          .positions = static_cast<Index>(plan_.positions),
          .lanes = lanes_,
          .causal = op.causal,
          .key = value(op.in[0]),
          .query = value(op.in[1]),
          .value = value(op.in[2]),
          .share = keep(step),
          .scratch = scratch_};
}

// ---- losses: the value, and the gradient of seed * loss by the argument, in one pass ----

template <class Real>
double MicroBatch<Real>::loss(const Step& step, Real seed) {
  for (Index l = 0; l < lanes_; ++l) seed_[static_cast<std::size_t>(l)] = l < real_lanes_ ? seed : Real(0);
  switch (step.op.kind) {
    case OpKind::kCrossEntropy: return cross_entropy(step.op.in[0]);
    case OpKind::kSquaredError: return squared_error(step.op.in[0]);
    default: return custom_loss(step.op.in[0], network_.content().losses[step.op.loss]);
  }
}

template <class Real>
double MicroBatch<Real>::cross_entropy(std::uint32_t node) {
  for (Index l = 0; l < lanes_; ++l)
    label_[static_cast<std::size_t>(l)] = sample_[sample_of(l)].labels[position_of(l)];
  const Real* x = value(node);
  kernels_.cross_entropy(x, channels(node), lanes_, label_.data(), seed_.data(), top_.data(), total_.data(),
                         slope(node));
  double sum = 0;
  for (Index l = 0; l < real_lanes_; ++l) {
    const auto i = static_cast<std::size_t>(l);
    sum += std::log(static_cast<double>(total_[i])) +
           (static_cast<double>(top_[i]) - static_cast<double>(x[label_[i] * lanes_ + l]));
  }
  return sum;
}

template <class Real>
double MicroBatch<Real>::squared_error(std::uint32_t node) {
  const Index width = channels(node);
  const Real share = Real(1) / static_cast<Real>(width);
  double sum = 0;
  for (Index c = 0; c < width; ++c)
    for (Index l = 0; l < lanes_; ++l) {
      const Index at = c * lanes_ + l;
      const Real* target = sample_[sample_of(l)].targets.data() + static_cast<Index>(position_of(l)) * width;
      const Real difference = value(node)[at] - target[c];
      slope(node)[at] = 2 * share * seed_[static_cast<std::size_t>(l)] * difference;
      if (l < real_lanes_) sum += static_cast<double>(difference) * static_cast<double>(difference);
    }
  return sum / static_cast<double>(width);
}

namespace {

// A nan that no computation gives. It marks the entries that a user's loss has not written yet.
constexpr std::uint64_t kUnwritten = 0x7ff8'6e6f'7420'7965;

// Calls a user's loss, and checks that it writes every entry of the derivative.
double call(const LossFunction& function, std::span<const double> output, std::size_t label,
            std::span<const double> target, std::span<double> derivative) {
  std::fill(derivative.begin(), derivative.end(), std::bit_cast<double>(kUnwritten));
  const double loss = function(output, label, target, derivative);
  for (std::size_t c = 0; c < derivative.size(); ++c)
    if (std::bit_cast<std::uint64_t>(derivative[c]) == kUnwritten)
      throw std::logic_error("the function of custom_loss left entry " + std::to_string(c) + " of " +
                             std::to_string(derivative.size()) + " of its derivative unwritten");
  return loss;
}

}  // namespace

template <class Real>
double MicroBatch<Real>::custom_loss(std::uint32_t node, const LossFunction& function) {
  const Index width = channels(node);
  double sum = 0;
  for (Index l = 0; l < lanes_; ++l) {
    const Example<Real>& e = sample_[sample_of(l)];
    const std::size_t targets = e.targets.size() / plan_.positions;
    if (target_.size() < targets) target_.resize(targets);
    const auto first = e.targets.begin() + static_cast<std::ptrdiff_t>(position_of(l) * targets);
    std::copy_n(first, targets, target_.begin());
    for (Index c = 0; c < width; ++c)
      output_[static_cast<std::size_t>(c)] = static_cast<double>(value(node)[c * lanes_ + l]);
    const std::size_t label = e.labels.empty() ? 0 : e.labels[position_of(l)];
    if (l < real_lanes_) sum += call(function, output_, label, {target_.data(), targets}, derivative_);
    const double seed = static_cast<double>(seed_[static_cast<std::size_t>(l)]);
    for (Index c = 0; c < width; ++c)
      slope(node)[c * lanes_ + l] =
          l < real_lanes_ ? static_cast<Real>(seed * derivative_[static_cast<std::size_t>(c)]) : Real(0);
  }
  return sum;
}

// These are instantiated member by member, as in micro_batch.cpp.
#define GRADWIRE_INSTANTIATE(Real)                                                                          \
  template void MicroBatch<Real>::affine(const Plan::Step&, const Real*, Real*);                            \
  template void MicroBatch<Real>::affine_backward(const Plan::Step&, const BackwardPart&, const Real*,      \
                                                  Real*, bool);                                             \
  template void MicroBatch<Real>::random_affine_backward(const Plan::Step&, const BackwardPart&,            \
                                                         const KeptUnits&, const Real*, Real*, bool);       \
  template void MicroBatch<Real>::add_backward(const Plan::Step&, const BackwardPart&);                     \
  template void MicroBatch<Real>::multiply_backward(const Plan::Step&, const BackwardPart&);                \
  template void MicroBatch<Real>::mean_over_positions(std::uint32_t, const Real*, bool, Real*);             \
  template const Real* MicroBatch<Real>::turned(std::uint32_t);                                             \
  template ImageShape MicroBatch<Real>::image(const NetworkOp&) const;                                      \
  template void MicroBatch<Real>::convolution_backward(const Plan::Step&, const BackwardPart&, const Real*, \
                                                       Real*, bool);                                        \
  template Attention<Real> MicroBatch<Real>::attention(const Plan::Step&);                                  \
  template double MicroBatch<Real>::loss(const Plan::Step&, Real);
GRADWIRE_INSTANTIATE(float)
GRADWIRE_INSTANTIATE(double)
#undef GRADWIRE_INSTANTIATE

}  // namespace gradwire
