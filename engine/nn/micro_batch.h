// One block of samples on its way through a network: where everything lies, and what each operation does with
// it, forward and backward.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/half.h"
#include "engine/kernels/kernels.h"
#include "engine/nn/backward_pass.h"
#include "engine/nn/example.h"
#include "engine/nn/plan.h"

namespace gradwire {

// Whether MicroBatch::clipped() knows the norms of single samples' gradients: no image, no parameter that is
// read twice, and few positions.
bool has_sample_norms(const Plan& plan);

template <class Real>
class MicroBatch {
 public:
  static constexpr std::size_t kMost = 16;  // samples

  // The arena is in `memory`, of arena_bytes(plan) at least, or is allocated where that is empty.
  MicroBatch(const Network& network, Plan plan, const Kernels<Real>& kernels,
             std::span<std::byte> memory = {});
  static std::size_t arena_bytes(const Plan& plan) { return gradwire::arena_bytes(plan, sizeof(Real)); }

  // push() adds a sample; what runs the network first throws DataError where a sample does not fit it.
  void clear() {
    samples_ = read_ = nonzeros_ = 0;
    ascending_ = true;
  }
  void push(const Example<Real>& example);
  std::size_t samples() const { return samples_; }

  // Computes the values of all operations; returns the sum of the samples' losses. `seed` is the weight of
  // each sample's loss in the gradient that backward() computes.
  // Nothing when `stop` was set in between.
  double forward(const Real* x, Real seed) { return *forward(x, seed, nullptr); }
  std::optional<double> forward(const Real* x, Real seed, const std::atomic<bool>* stop);
  // Computes the gradient by the parameters and writes it to `gradient`, or adds it. `gradient` may be x
  // itself when `add` is true: a descent step.
  void backward(const Real* x, Real* gradient, bool add) { backward(x, gradient, add, BackwardPass()); }
  // What the backward pass asks for alone; false when it was stopped.
  bool backward(const Real* x, Real* gradient, bool add, const BackwardPass& pass);

  // Values, the sum of the losses, and its derivative in the direction v of the parameters, by forward mode:
  // no gradient. Allocates at its first call.
  struct Tangent {
    double loss, derivative;
  };
  Tangent directional(const Real* x, const Real* v);

  // Adds to `gradient` the gradients of the samples' losses, each times what `factor` makes of its squared
  // norm; returns the sum of the losses. REQUIRES: has_sample_norms(plan()), and a plan that keeps gradients;
  // `gradient` may hold anything before the first block of a batch, for which `add` is false.
  using FactorOf = std::function<double(double square)>;
  double clipped(const Real* x, const FactorOf& factor, Real* gradient, bool add);

  // Copies the loss's argument for one sample, [position][channel]; after forward().
  void copy_outputs(std::size_t sample, std::span<Real> outputs) const;

  const Plan& plan() const { return plan_; }
  std::size_t arena_bytes() const { return arena_bytes(plan_); }

 private:
  using Op = Network::Op;
  using Step = Plan::Step;

  Real* value(std::uint32_t node) { return where_[node]; }
  const Real* value(std::uint32_t node) const { return where_[node]; }
  Real* keep(const Step& step) const { return keep_[static_cast<std::size_t>(&step - plan_.steps.data())]; }

  // Of plans with actions, micro_batch_actions.cpp. What a forward step writes goes to its place of the
  // moment:
  void place(const Plan::Action& action);
  void act(const Plan::Action& action, const Real* x);  // whatever is not backward
  // Does the actions first .. end - 1, and calls back(step) for those that go backward, until it returns
  // false. False when it was stopped in between.
  template <class Back>
  bool follow(std::size_t first, std::size_t end, const Real* x, const std::atomic<bool>* stop, Back&& back) {
    for (std::size_t t = first; t < end; ++t) {
      if (stopped(stop)) return false;
      const Plan::Action& action = plan_.actions[t];
      if (action.kind != Plan::Action::Kind::kBackward)
        act(action, x);
      else if (!back(action.number))
        break;
    }
    return true;
  }

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
  void read(std::size_t sample);  // checks it, and notes its features

  // Data, as [lane][channel] in `rows`.
  template <class Row>
  void fill_rows(const Step& step, Real* out, Row&& row);
  void embed(const Step& step, const Real* x, Real* out);
  void embed_backward(const Step& step, Real* gradient);

  // Affine maps of sparse features, micro_batch_features.cpp.
  void features_forward(const Step& step, const Real* x, Real* to);
  void features_backward(const Step& step, Real* gradient, bool add);
  bool dense(const Step& step) const;
  FeatureRows<Real> dense_rows(Index in);

  void start_forward();
  void forward(const Step& step, const Real* x);
  void backward(const Step& step, const BackwardPart& part, const Real* x, Real* gradient, bool add);
  void affine(const Step& step, const Real* x, Real* to);
  struct UnitRun {  // of an affine map
    Index first, count;
    bool input, add_input;             // whether the gradient of the input is needed, and added
    Index weights_first, weights_end;  // units of the run whose weights' gradient is needed
    bool add_weights;
  };
  void unit_gradients(const Step& step, const UnitRun& units, const Real* dy, const Real* x, Real* gradient);
  void affine_backward(const Step& step, const BackwardPart& part, const Real* x, Real* gradient, bool add);
  void random_affine_backward(const Step& step, const BackwardPart& part, const KeptUnits& kept,
                              const Real* x, Real* gradient, bool add);
  void add_backward(const Step& step, const BackwardPart& part);
  void multiply_backward(const Step& step, const BackwardPart& part);
  void convolution_backward(const Step& step, const BackwardPart& part, const Real* x, Real* gradient,
                            bool add);
  void mean_over_positions(std::uint32_t from, const Real* x, bool add, Real* y);
  ImageShape image(const Op& op) const;
  Attention<Real> attention(const Step& step);
  const Real* turned(std::uint32_t node);

  // Of directional(): where the derivative of a node lies, laid out as its value; null for data, which do not
  // change.
  Real* tangent(std::uint32_t node);
  void tangent(const Step& step, const Real* x, const Real* v);
  void affine_tangent(const Step& step, const Real* x, const Real* v);
  void convolution_tangent(const Step& step, const Real* x, const Real* v);

  // Of clipped(): adds the squared norms of the samples' gradients by the parameters of a step.
  void scale_slopes(std::uint32_t node);
  void add_squares(const Step& step);
  void affine_squares(const Step& step);
  void norm_squares(const Step& step);
  void embed_squares(const Step& step);
  void features_squares(const Step& step);
  void row_squares(const Real* rows, Index width, Real* squares);

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
  std::vector<Real*> where_;                // the value of each node
  std::vector<Real*> keep_;                 // what each step keeps for backward
  BFloat16* kept_ = nullptr;                // activations, for backward
  std::uint32_t turned_node_ = Op::kNone;   // whose values turned_ holds as rows
  std::unique_ptr<Real[], Free> tangents_;  // as values_; then zeros: a bias that does not change
  std::vector<double> square_;              // of clipped(), by sample
  std::vector<Real> factor_;                // by lane
  std::vector<Real> grams_;                 // of the input and the slope of a step
  Real* dense_ = nullptr;                   // rows of features; memory that only dense data touch
  Index dense_in_ = 0;                      // how many features dense_ holds of this block's samples; 0: none

  std::array<Example<Real>, kMost> sample_;
  std::size_t samples_ = 0;
  std::size_t read_ = 0;                            // samples that read() has seen
  std::array<SparseSample<Real>, kMost> features_;  // of the samples
  std::size_t nonzeros_ = 0;                        // of all features_
  bool ascending_ = true;                           // the numbers of each sample's features
  Index real_lanes_ = 0, lanes_ = 0;
  std::vector<Token> label_;                          // by lane
  std::vector<Real> seed_, top_, total_;              // by lane
  std::vector<double> output_, target_, derivative_;  // of a custom loss: one position
};

}  // namespace gradwire
