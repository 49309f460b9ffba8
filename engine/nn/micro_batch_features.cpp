// Affine maps of sparse features. They run feature by feature, or on dense rows if there are so few zeros
// that this is faster. The choice depends on the samples of the microbatch and on the kernels. It changes at
// most the sign of a 0, as long as all numbers are finite.
#include <algorithm>

#include "engine/nn/micro_batch.h"

namespace gradwire {
namespace {

Index padded(Index n) { return (n + kSlack - 1) / kSlack * kSlack; }

}  // namespace

template <class Real>
bool MicroBatch<Real>::dense(const Step& step) const {
  // Measured cost of dense rows, as the number of nonzeros per 100 features that cost the same: `micro_batch`
  // once, and `sample` for each row. The first part is the time to move the weights through the registers.
  // Narrow tiles gain little.
  struct Cost {
    std::size_t micro_batch, sample;
  };
  constexpr Cost kFewOutputs{120, 32}, kManyOutputs{150, 25}, kNarrowRegisters{120, 70};
  const auto out = static_cast<std::size_t>(channels(step.op.out)), in = step.op.count[0] / out;
  const bool narrow = kernels_.vector * static_cast<Index>(sizeof(Real)) <= 16;
  const Cost& cost = narrow ? kNarrowRegisters : out <= 16 ? kFewOutputs : kManyOutputs;
  return ascending_ && out > 1 && samples_ > 1 && samples_ * feature_stride(in) <= plan_.dense_numbers &&
         nonzeros_ * 100 >= (cost.micro_batch + cost.sample * samples_) * in;
}

// Returns the dense rows. Consecutive layers of `in` features share them.
template <class Real>
FeatureRows<Real> MicroBatch<Real>::dense_rows(Index in) {
  const auto stride = static_cast<Index>(feature_stride(static_cast<std::size_t>(in)));
  const auto lanes = static_cast<Index>(samples_);
  if (dense_in_ != in) {
    for (Index l = 0; l < lanes; ++l) {
      const SparseSample<Real>& sample = features_[static_cast<std::size_t>(l)];
      Real* row = dense_ + l * stride;
      if (sample.count == in) {  // the numbers ascend, so these are all features
        std::copy_n(sample.value, in, row);
        continue;
      }
      std::fill_n(row, in, Real(0));
      for (Index k = 0; k < sample.count; ++k) row[sample.index[k]] = sample.value[k];
    }
    dense_in_ = in;
  }
  return {dense_, stride, in, lanes};
}

// Computes the forward pass of dense features with many outputs. Features and outputs are lanes.
template <class Real>
void MicroBatch<Real>::wide_features(const Step& step, const Real* x, Real* to) {
  const Op& op = step.op;
  const Index out = channels(op.out), in = static_cast<Index>(op.count[0]) / out;
  const FeatureRows<Real> rows = dense_rows(in);
  turned_node_ = Op::kNone;
  kernels_.transpose(rows.x, rows.lanes, in, rows.stride, turned_, lanes_);
  for (Index k = 0; k < in; ++k)
    std::fill(turned_ + k * lanes_ + rows.lanes, turned_ + (k + 1) * lanes_, Real(0));
  kernels_.lane_product(
      {x + op.first[0], out, true, out, in, turned_, lanes_, lanes_, x + op.first[1], false, to, lanes_});
}

template <class Real>
void MicroBatch<Real>::features_forward(const Step& step, const Real* x, Real* to) {
  const Op& op = step.op;
  if (wide(op.count[0]) && dense(step)) return wide_features(step, x, to);
  const Index out = channels(op.out), stride = padded(out);
  const Real *w = x + op.first[0], *bias = x + op.first[1];
  Real* rows = as_rows(op.out) ? to : scratch_;
  if (dense(step))
    kernels_.dense_forward(w, bias, out, dense_rows(static_cast<Index>(op.count[0]) / out), rows, stride);
  else
    kernels_.sparse_forward(w, bias, out, features_.data(), static_cast<Index>(samples_), rows, stride);
  if (rows == to) return;
  for (Index l = real_lanes_; l < lanes_; ++l) std::copy_n(rows, out, rows + l * stride);
  kernels_.transpose(rows, lanes_, out, stride, to, lanes_);
}

template <class Real>
void MicroBatch<Real>::features_backward(const Step& step, Real* gradient, bool add) {
  const Op& op = step.op;
  const Index out = channels(op.out), stride = padded(out);
  const Real* rows = slope(op.out);
  kernels_.lane_sums(rows, out, lanes_, add, gradient + op.first[1]);
  if (wide(op.count[0]) && dense(step)) {
    const FeatureRows<Real> x = dense_rows(static_cast<Index>(op.count[0]) / out);
    turned_node_ = Op::kNone;
    return kernels_.lane_outer({x.x, x.stride, true, x.in, rows, lanes_, false, out, x.lanes, true,
                                gradient + op.first[0], turned_});
  }
  if (lanes_ > 1) {
    kernels_.transpose(rows, out, lanes_, lanes_, scratch_, stride);
    rows = scratch_;
  }
  Real* dw = gradient + op.first[0];
  if (dense(step))
    kernels_.dense_backward(rows, stride, out, dense_rows(static_cast<Index>(op.count[0]) / out), dw);
  else
    kernels_.sparse_backward(rows, stride, out, features_.data(), static_cast<Index>(samples_), dw);
}

// These are instantiated member by member, as in micro_batch.cpp.
#define GRADWIRE_INSTANTIATE(Real)                                                         \
  template bool MicroBatch<Real>::dense(const Plan::Step&) const;                          \
  template FeatureRows<Real> MicroBatch<Real>::dense_rows(Index);                          \
  template void MicroBatch<Real>::wide_features(const Plan::Step&, const Real*, Real*);    \
  template void MicroBatch<Real>::features_forward(const Plan::Step&, const Real*, Real*); \
  template void MicroBatch<Real>::features_backward(const Plan::Step&, Real*, bool);
GRADWIRE_INSTANTIATE(float)
GRADWIRE_INSTANTIATE(double)
#undef GRADWIRE_INSTANTIATE

}  // namespace gradwire
