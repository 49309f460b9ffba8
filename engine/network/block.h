// One block of samples on its way through a network: where everything lies, and what each operation does with
// it, forward and backward.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/half.h"
#include "engine/kernels/kernels.h"
#include "engine/network/example.h"
#include "engine/network/plan.h"

namespace gradwire {

template <class Real>
class Block {
 public:
  static constexpr std::size_t kMost = 16;  // samples

  // The arena is in `memory`, of arena_bytes(plan) at least, or is allocated where that is empty.
  Block(const Network& network, Plan plan, const Kernels<Real>& kernels, std::span<std::byte> memory = {});
  static std::size_t arena_bytes(const Plan& plan);

  // push() adds a sample, after it checks that the sample fits the network. Throws DataError.
  void clear() {
    samples_ = nonzeros_ = 0;
    ascending_ = true;
  }
  void push(const Example<Real>& example);
  std::size_t samples() const { return samples_; }

  // Computes the values of all operations; returns the sum of the samples' losses. `seed` is the weight of
  // each sample's loss in the gradient that backward() computes.
  double forward(const Real* x, Real seed);
  // Computes the gradient by the parameters and writes it to `gradient`, or adds it. `gradient` may be x
  // itself when `add` is true: a descent step.
  void backward(const Real* x, Real* gradient, bool add);

  // Copies the loss's argument for one sample, [position][channel]; after forward().
  void copy_outputs(std::size_t sample, std::span<Real> outputs) const;

  const Plan& plan() const { return plan_; }
  std::size_t arena_bytes() const { return arena_bytes(plan_); }

 private:
  using Op = Network::Op;
  using Step = Plan::Step;

  Real* value(std::uint32_t node) { return where_[node]; }
  const Real* value(std::uint32_t node) const { return where_[node]; }
  // Where activations are kept in bfloat16: all values at their places; those of a step to the kept ones, and
  // back.
  void place_values();
  const Plan::Kept& kept_of(const Step& step) const {
    return plan_.kept[static_cast<std::size_t>(&step - plan_.steps.data())];
  }
  void pack(const Plan::Kept& kept);
  void restore(const Plan::Kept& kept, const Real* x);
  // Null for data, which take no gradient.
  Real* slope(std::uint32_t node) {
    const std::size_t at = plan_.places[node].gradient;
    return at == Plan::kNowhere ? nullptr : slopes_ + at;
  }
  Index channels(std::uint32_t node) const { return static_cast<Index>(plan_.places[node].shape.size()); }
  Index numbers(std::uint32_t node) const { return channels(node) * lanes_; }
  bool as_rows(std::uint32_t node) const { return plan_.places[node].rows || lanes_ == 1; }
  // Sample and position of a lane; lanes behind the last repeat lane 0, so that they are finite whenever the
  // samples are.
  std::size_t sample_of(Index lane) const {
    return lane < real_lanes_ ? static_cast<std::size_t>(lane) / plan_.positions : 0;
  }
  std::size_t position_of(Index lane) const {
    return lane < real_lanes_ ? static_cast<std::size_t>(lane) % plan_.positions : 0;
  }

  // `ascending`: whether the numbers of its features are.
  void check(const Example<Real>& example, bool ascending) const;

  // Data, as [lane][channel] in `rows`.
  template <class Row>
  void fill_rows(const Step& step, Row&& row);
  void embed(const Step& step, const Real* x);
  void embed_backward(const Step& step, Real* gradient);

  // Affine maps of sparse features, block_features.cpp.
  void features_forward(const Step& step, const Real* x);
  void features_backward(const Step& step, Real* gradient, bool add);
  bool dense(const Step& step) const;
  FeatureRows<Real> dense_rows(Index in);

  void forward(const Step& step, const Real* x);
  void backward(const Step& step, const Real* x, Real* gradient, bool add);
  void affine(const Step& step, const Real* x);
  void affine_backward(const Step& step, const Real* x, Real* gradient, bool add);
  void add_backward(const Step& step);
  void multiply_backward(const Step& step);
  void convolution_backward(const Step& step, const Real* x, Real* gradient, bool add);
  void mean_over_positions(std::uint32_t from, const Real* x, bool add, Real* y);
  ImageShape image(const Op& op) const;
  Attention<Real> attention(const Step& step);
  const Real* turned(std::uint32_t node);

  double loss(const Step& step, Real seed);
  double cross_entropy(std::uint32_t node);
  double squared_error(std::uint32_t node);
  double custom_loss(std::uint32_t node, const LossFunction& function);

  const Network& network_;
  Plan plan_;
  const Kernels<Real>& kernels_;
  struct Free {
    void operator()(Real* p) const;
  };
  std::unique_ptr<Real[], Free> arena_;  // null where the memory is the caller's
  Real *values_ = nullptr, *slopes_ = nullptr, *scratch_ = nullptr, *turned_ = nullptr;
  std::vector<Real*> where_;               // the value of each node
  BFloat16* kept_ = nullptr;               // activations, for backward
  std::uint32_t turned_node_ = Op::kNone;  // whose values turned_ holds as rows
  Real* dense_ = nullptr;                  // rows of features; memory that only dense data touch
  Index dense_in_ = 0;                     // how many features dense_ holds of this block's samples; 0: none

  std::array<Example<Real>, kMost> sample_;
  std::size_t samples_ = 0;
  std::array<SparseSample<Real>, kMost> features_;  // of the samples
  std::size_t nonzeros_ = 0;                        // of all features_
  bool ascending_ = true;                           // the numbers of each sample's features
  Index real_lanes_ = 0, lanes_ = 0;
  std::vector<Token> label_;                          // by lane
  std::vector<Real> seed_, top_, total_;              // by lane
  std::vector<double> output_, target_, derivative_;  // of a custom loss: one position
};

}  // namespace gradwire
