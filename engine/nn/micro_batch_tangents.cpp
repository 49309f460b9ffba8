// Forward mode: the derivative of every value in one direction of the parameters, computed right after the
// value. The derivative of a function of one number is its own transpose, so its backward kernel is used
// here.
#include <algorithm>
#include <new>

#include "engine/lane_sum.h"
#include "engine/nn/micro_batch.h"

namespace gradwire {

template <class Real>
Real* MicroBatch<Real>::tangent(std::uint32_t node) {
  return slope(node) == nullptr ? nullptr : tangents_.get() + (where_[node] - values_);
}

template <class Real>
typename MicroBatch<Real>::Tangent MicroBatch<Real>::directional(const Real* x, const Real* v) {
  if (tangents_ == nullptr) {
    std::size_t zeros = 0;
    for (const Plan::ArenaPlace& place : plan_.places) zeros = std::max(zeros, place.shape.channels);
    const std::size_t numbers = plan_.value_numbers + zeros + kSlack;
    tangents_.reset(new (std::align_val_t{64}) Real[numbers]());
  }
  Tangent result{0, 0};
  start_forward();
  const std::size_t last = plan_.steps.size() - 1;
  const auto both = [&](const Step& step) {
    // If the input is rows, one pass over the weights computes the value and its tangent.
    const bool together =
        step.op.kind == OpKind::kAffine && as_rows(step.op.in[0]) && tangent(step.op.in[0]) != nullptr;
    if (!together) forward(step, x);
    tangent(step, x, v);
  };
  for (std::size_t i = 0; i < last && plan_.actions.empty(); ++i) both(plan_.steps[i]);
  for (std::size_t t = 0; t < plan_.forward_actions; ++t) {
    const Plan::Action& action = plan_.actions[t];
    if (action.kind != Plan::Action::Kind::kForward) continue;
    place(action);
    both(plan_.steps[action.number]);
  }
  const double positions = static_cast<double>(plan_.positions);
  result.loss = loss(plan_.steps[last], Real(1) / static_cast<Real>(plan_.positions)) / positions;
  const std::uint32_t node = plan_.steps[last].op.in[0];
  const Real *by_output = slope(node), *moved = tangent(node);
  for (Index c = 0; c < channels(node); ++c) {
    const Real *slopes = by_output + c * lanes_, *moves = moved + c * lanes_;
    result.derivative += lane_sum(static_cast<std::size_t>(real_lanes_), [=](std::size_t l) {
      return static_cast<double>(slopes[l]) * static_cast<double>(moves[l]);
    });
  }
  return result;
}

template <class Real>
void MicroBatch<Real>::tangent(const Step& step, const Real* x, const Real* v) {
  const Op& op = step.op;
  Real* out = tangent(op.out);
  if (out == nullptr) return;
  const Real* in = op.in[0] != Op::kNone ? tangent(op.in[0]) : nullptr;
  const Index n = numbers(op.out);
  switch (op.kind) {
    case OpKind::kFeatures: std::fill_n(out, n, Real(0)); break;
    case OpKind::kSparseFeatures: features_forward(step, v, out); break;
    case OpKind::kEmbed: embed(step, v, out); break;
    case OpKind::kAffine: affine_tangent(step, x, v); break;
    case OpKind::kActivation:
      kernels_.activation_backward[static_cast<int>(op.activation)](
          n, value(op.activation == Activation::kGelu ? op.in[0] : op.out), in, false, out);
      break;
    case OpKind::kAdd: kernels_.add(n, in, tangent(op.in[1]), out); break;
    case OpKind::kMultiply:
      kernels_.multiply(n, in, value(op.in[1]), false, out);
      kernels_.multiply(n, value(op.in[0]), tangent(op.in[1]), true, out);
      break;
    case OpKind::kNorm:
      kernels_.norm_tangent(value(op.in[0]), in, channels(op.out), lanes_, x + op.first[0], v + op.first[0],
                            keep(step), out);
      break;
    case OpKind::kAttention: {
      const Real* const d[3] = {in, tangent(op.in[1]), tangent(op.in[2])};
      kernels_.attention_tangent(attention(step), d, out);
      break;
    }
    case OpKind::kConvolution: convolution_tangent(step, x, v); break;
    case OpKind::kMaxPool: kernels_.max_pool_tangent(image(op), in, keep(step), out); break;
    case OpKind::kAveragePool: kernels_.average_pool_forward(image(op), in, out); break;
    case OpKind::kMeanOverPositions: mean_over_positions(op.out, in, false, out); break;
    case OpKind::kCrossEntropy:
    case OpKind::kSquaredError:
    case OpKind::kCustomLoss: break;
  }
}

template <class Real>
void MicroBatch<Real>::affine_tangent(const Step& step, const Real* x, const Real* v) {
  const Op& op = step.op;
  const Index in = channels(op.in[0]), out = channels(op.out);
  const Real *w = x + op.first[0], *moved = tangent(op.in[0]);
  const auto bias = [&](const Real* of) { return op.count[1] > 0 ? of + op.first[1] : nullptr; };
  Real* to = tangent(op.out);
  if (moved == nullptr) return affine(step, v, to);
  if (as_rows(op.in[0]))
    kernels_.row_tangent({w, bias(x), out, in, value(op.in[0]), lanes_},
                         {v + op.first[0], bias(v), moved, to}, value(op.out));
  else
    kernels_.lane_product_pair({w, in, false, out, in, moved, lanes_, lanes_, bias(v), false, to, lanes_},
                               v + op.first[0], value(op.in[0]));
}

template <class Real>
void MicroBatch<Real>::convolution_tangent(const Step& step, const Real* x, const Real* v) {
  const Op& op = step.op;
  const ImageShape shape = image(op);
  Real* to = tangent(op.out);
  kernels_.convolution_forward(shape, value(op.in[0]), v + op.first[0], v + op.first[1], to);
  const Real* moved = tangent(op.in[0]);
  if (moved == nullptr) return;
  const Real* zeros = tangents_.get() + plan_.value_numbers;
  kernels_.convolution_forward(shape, moved, x + op.first[0], zeros, scratch_);
  kernels_.add(numbers(op.out), to, scratch_, to);
}

// These are instantiated member by member, as in micro_batch.cpp.
#define GRADWIRE_INSTANTIATE(Real) \
  template typename MicroBatch<Real>::Tangent MicroBatch<Real>::directional(const Real*, const Real*);
GRADWIRE_INSTANTIATE(float)
GRADWIRE_INSTANTIATE(double)
#undef GRADWIRE_INSTANTIATE

}  // namespace gradwire
