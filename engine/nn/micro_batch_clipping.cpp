// Clipped gradients of single samples, without a gradient per sample in memory. The norms come from the
// values and gradients of each operation ("ghost norms": Goodfellow, arXiv:1510.01799; over positions: Li et
// al., arXiv:2110.05679). Then each sample's gradients of values are scaled, and their products with the
// values add up to the clipped sum. This takes one backward pass that keeps the gradients of all values.
#include <algorithm>
#include <numeric>

#include "engine/nn/micro_batch.h"

namespace gradwire {

bool has_sample_norms(const Plan& plan) {
  constexpr std::size_t kMostPositions = 16;  // the cost grows with their square
  if (plan.shared_parameters || plan.positions > kMostPositions) return false;
  return std::all_of(plan.steps.begin(), plan.steps.end(), [&](const Plan::Step& step) {
    switch (step.op.kind) {
      case OpKind::kConvolution: return false;
      case OpKind::kAffine: return plan.positions == 1 || !plan.places[step.op.in[0]].rows;
      default: return true;
    }
  });
}

template <class Real>
double MicroBatch<Real>::clipped(const Real* x, const FactorOf& factor, Real* gradient, bool add) {
  const double sum = forward(x, Real(1));
  square_.assign(samples_, 0.0);
  turned_node_ = Op::kNone;
  BackwardPart slopes;
  slopes.parameters = false;
  slopes.rows = {};
  const auto down = [&](std::size_t i) {
    const Step& step = plan_.steps[i];
    add_squares(step);
    if (step.op.in[0] != Op::kNone) backward(step, slopes, x, gradient, true);
    return true;
  };
  const std::size_t last = plan_.steps.size() - 1;
  for (std::size_t i = last; i-- > 0 && plan_.actions.empty();) down(i);
  follow(plan_.forward_actions, plan_.backward_actions, x, nullptr, down);
  factor_.assign(static_cast<std::size_t>(lanes_) + kSlack, Real(0));
  for (Index l = 0; l < real_lanes_; ++l)
    factor_[static_cast<std::size_t>(l)] = static_cast<Real>(factor(square_[sample_of(l)]));
  if (!add)
    for (const Plan::PlanRange& range : plan_.zeroed)
      std::fill_n(gradient + range.first, range.count, Real(0));
  // Goes up in ascending order, so that a step overwrites only gradients of operations that are done.
  BackwardPart parameters;
  for (bool& input : parameters.input) input = false;
  turned_node_ = Op::kNone;
  const auto up = [&](std::size_t i) {
    const Step& step = plan_.steps[i];
    if (step.op.count[0] == 0) return true;
    scale_slopes(step.op.out);
    backward(step, parameters, x, gradient, add);
    return true;
  };
  for (std::size_t i = 0; i < last && plan_.actions.empty(); ++i) up(i);
  follow(plan_.backward_actions, plan_.actions.size(), x, nullptr, up);
  return sum;
}

template <class Real>
void MicroBatch<Real>::scale_slopes(std::uint32_t node) {
  const Index width = channels(node);
  if (!as_rows(node)) return kernels_.scale_lanes(slope(node), width, lanes_, factor_.data());
  for (Index l = 0; l < lanes_; ++l)
    for (Index c = 0; c < width; ++c) slope(node)[l * width + c] *= factor_[static_cast<std::size_t>(l)];
}

template <class Real>
void MicroBatch<Real>::add_squares(const Step& step) {
  switch (step.op.kind) {
    case OpKind::kAffine: return affine_squares(step);
    case OpKind::kNorm: return norm_squares(step);
    case OpKind::kEmbed: return embed_squares(step);
    case OpKind::kSparseFeatures: return features_squares(step);
    default: return;
  }
}

// Writes squares[l] = ||rows[l]||^2. Overwrites scratch_ from its start.
template <class Real>
void MicroBatch<Real>::row_squares(const Real* rows, Index width, Real* squares) {
  kernels_.multiply(lanes_ * width, rows, rows, false, scratch_);
  kernels_.lane_sums(scratch_, lanes_, width, false, squares);
}

// Adds || sum_t dy_t x_t^T ||^2 = sum_{t, u} (dy_t . dy_u) (x_t . x_u). The bias counts as one more input,
// which is always 1.
template <class Real>
void MicroBatch<Real>::affine_squares(const Step& step) {
  const Op& op = step.op;
  const Index positions = static_cast<Index>(plan_.positions);
  const std::size_t part = static_cast<std::size_t>(lanes_ * positions) + kSlack;
  if (grams_.size() < 2 * part) grams_.resize(2 * part);
  Real *of_x = grams_.data(), *of_dy = of_x + part;
  if (lanes_ == 1) {
    row_squares(value(op.in[0]), channels(op.in[0]), of_x);
    row_squares(slope(op.out), channels(op.out), of_dy);
  } else {
    if (as_rows(op.in[0]))
      row_squares(value(op.in[0]), channels(op.in[0]), of_x);
    else
      kernels_.lane_grams(value(op.in[0]), channels(op.in[0]), lanes_, positions, of_x);
    kernels_.lane_grams(slope(op.out), channels(op.out), lanes_, positions, of_dy);
  }
  const double bias = op.count[1] > 0 ? 1 : 0;
  for (Index l = 0; l < real_lanes_; ++l)
    for (Index k = 0; k < positions - static_cast<Index>(position_of(l)); ++k) {
      const Index at = k * lanes_ + l;
      square_[sample_of(l)] +=
          (k > 0 ? 2 : 1) * static_cast<double>(of_dy[at]) * (static_cast<double>(of_x[at]) + bias);
    }
}

template <class Real>
void MicroBatch<Real>::norm_squares(const Step& step) {
  const Op& op = step.op;
  const Real *x = value(op.in[0]), *dy = slope(op.out), *mean = keep(step), *inverse = mean + lanes_;
  const Index positions = static_cast<Index>(plan_.positions);
  for (Index c = 0; c < channels(op.out); ++c)
    for (std::size_t s = 0; s < samples_; ++s) {
      Real gain = 0, bias = 0;
      const Index end = static_cast<Index>(s + 1) * positions;
      for (Index l = end - positions; l < end; ++l) {
        const Real d = dy[c * lanes_ + l];
        gain += d * ((x[c * lanes_ + l] - mean[l]) * inverse[l]);
        bias += d;
      }
      square_[s] += static_cast<double>(gain) * static_cast<double>(gain) +
                    static_cast<double>(bias) * static_cast<double>(bias);
    }
}

// Adds the squared norms for the tables of an embedding. If a sample has a token several times, its gradients
// are summed first.
template <class Real>
void MicroBatch<Real>::embed_squares(const Step& step) {
  const Op& op = step.op;
  const Index all = channels(op.out), width = all / static_cast<Index>(op.tokens);
  const std::size_t entries = plan_.positions * op.tokens;
  if (as_rows(op.out))
    std::copy_n(slope(op.out), all * lanes_, scratch_);
  else
    kernels_.transpose(slope(op.out), all, lanes_, lanes_, scratch_, all);
  grams_.resize(std::max(grams_.size(), static_cast<std::size_t>(lanes_) + kSlack));
  const auto add_rows = [&] {
    row_squares(scratch_, all, grams_.data());
    for (Index l = 0; l < real_lanes_; ++l)
      square_[sample_of(l)] += static_cast<double>(grams_[static_cast<std::size_t>(l)]);
  };
  for (std::size_t s = 0; s < samples_; ++s) {
    const Token* token = sample_[s].tokens.data();
    Real* rows = scratch_ + static_cast<Index>(s * plan_.positions) * all;
    const auto row = [&](std::size_t k) { return rows + static_cast<Index>(k) * width; };
    for (std::size_t k = 1; k < entries; ++k) {
      const std::size_t first = static_cast<std::size_t>(std::find(token, token + k, token[k]) - token);
      if (first == k) continue;
      kernels_.axpy(width, Real(1), row(k), row(first));
      std::fill_n(row(k), width, Real(0));
    }
  }
  add_rows();
  if (op.count[1] == 0) return;
  // Each position has its own row of the second table, so the gradients of the result are those of the rows.
  if (as_rows(op.out))
    row_squares(slope(op.out), all, grams_.data());
  else
    kernels_.lane_grams(slope(op.out), all, lanes_, 1, grams_.data());
  for (Index l = 0; l < real_lanes_; ++l)
    square_[sample_of(l)] += static_cast<double>(grams_[static_cast<std::size_t>(l)]);
}

// Adds ||dy||^2 (||a||^2 + 1), where a are the features of a sample and 1 is for the bias. A feature that a
// sample has twice counts with the sum of its values.
template <class Real>
void MicroBatch<Real>::features_squares(const Step& step) {
  grams_.resize(std::max(grams_.size(), static_cast<std::size_t>(lanes_) + kSlack));
  const Index out = channels(step.op.out);
  if (lanes_ == 1)
    row_squares(slope(step.op.out), out, grams_.data());
  else
    kernels_.lane_grams(slope(step.op.out), out, lanes_, 1, grams_.data());
  for (std::size_t s = 0; s < samples_; ++s) {
    const Example<Real>& e = sample_[s];
    double square = 1;  // the bias
    if (ascending_) {
      for (const Real a : e.value) square += static_cast<double>(a) * static_cast<double>(a);
    } else {
      std::vector<std::uint32_t> order(e.index.size());
      std::iota(order.begin(), order.end(), 0u);
      std::sort(order.begin(), order.end(), [&](auto a, auto b) { return e.index[a] < e.index[b]; });
      for (std::size_t k = 0; k < order.size();) {
        const std::uint32_t feature = e.index[order[k]];
        double sum = 0;
        for (; k < order.size() && e.index[order[k]] == feature; ++k)
          sum += static_cast<double>(e.value[order[k]]);
        square += sum * sum;
      }
    }
    square_[s] += static_cast<double>(grams_[s]) * square;
  }
}

// These are instantiated member by member, as in micro_batch.cpp.
#define GRADWIRE_INSTANTIATE(Real) \
  template double MicroBatch<Real>::clipped(const Real*, const MicroBatch<Real>::FactorOf&, Real*, bool);
GRADWIRE_INSTANTIATE(float)
GRADWIRE_INSTANTIATE(double)
#undef GRADWIRE_INSTANTIATE

}  // namespace gradwire
