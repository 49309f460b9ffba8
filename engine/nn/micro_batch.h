// One microbatch on its way through a network: the place of each value, and the forward and backward pass of
// each operation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
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

// Returns whether MicroBatch::clipped() knows the norms of single samples' gradients: the network has no
// convolutions, no parameter that is read twice, and few positions.
bool has_sample_norms(const Plan& plan);

template <class Real>
class MicroBatch {
 public:
  // Puts the arena into `memory`, of at least arena_bytes(plan) bytes, or allocates it if `memory` is empty.
  MicroBatch(const Network& network, Plan plan, const Kernels<Real>& kernels,
             std::span<std::byte> memory = {});
  static std::size_t arena_bytes(const Plan& plan) { return gradwire::arena_bytes(plan, sizeof(Real)); }

  // clear() starts an empty microbatch, and push() adds a sample. The first pass over a sample that does not
  // fit the network throws DataError.
  void clear() {
    samples_ = read_ = nonzeros_ = 0;
    ascending_ = true;
  }
  void push(const Example<Real>& example);
  std::size_t samples() const { return samples_; }

  // Computes the values of all operations and returns the sum of the samples' losses. `seed` is the weight of
  // each sample's loss in the gradient that backward() computes. Returns nullopt if `stop` was set meanwhile.
  double forward(const Real* x, Real seed) { return *forward(x, seed, nullptr); }
  std::optional<double> forward(const Real* x, Real seed, const std::atomic<bool>* stop);
  // Computes the gradient by the parameters, and writes it to `gradient` or adds it. `gradient` may be x
  // itself if `add` is true: a descent step.
  void backward(const Real* x, Real* gradient, bool add) { backward(x, gradient, add, BackwardPass()); }
  // Computes only what `pass` asks for. Returns false if it was stopped.
  bool backward(const Real* x, Real* gradient, bool add, const BackwardPass& pass);

  // The sum of the losses, and its derivative in a direction of the parameters. directional() computes both
  // in direction v by forward mode, without a gradient. Its first call allocates.
  struct Tangent {
    double loss, derivative;
  };
  Tangent directional(const Real* x, const Real* v);

  // Adds to `gradient` the gradients of the samples' losses, each times `factor` of its squared norm. Returns
  // the sum of the losses. `add` is false for the first microbatch of a batch, whose `gradient` may hold
  // anything. REQUIRES: has_sample_norms(plan()), and a plan that keeps gradients.
  using FactorOf = std::function<double(double square)>;
  double clipped(const Real* x, const FactorOf& factor, Real* gradient, bool add);

  // Copies the input of the loss for one sample, as [position][channel]. Call it after forward().
  void copy_outputs(std::size_t sample, std::span<Real> outputs) const;

  const Plan& plan() const { return plan_; }
  std::size_t arena_bytes() const { return arena_bytes(plan_); }

 private:
  using Op = NetworkOp;
  using Step = Plan::Step;

  static constexpr Index kFewestWideLanes = 32;

  Real* value(std::uint32_t node) { return where_[node]; }
  const Real* value(std::uint32_t node) const { return where_[node]; }
  Real* keep(const Step& step) const { return keep_[static_cast<std::size_t>(&step - plan_.steps.data())]; }

  // Execution of plans with actions (micro_batch_actions.cpp). place() sets the address at which a forward
  // step writes its value.
  void place(const Plan::Action& action);
  void act(const Plan::Action& action, const Real* x);  // does any action except kBackward
  // Does the actions first .. end - 1. Calls back(step) for each kBackward, until it returns false. Returns
  // false if it was stopped meanwhile.
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

  // Returns the gradient of a node, or null for data, which have no gradient.
  Real* slope(std::uint32_t node) {
    const std::size_t at = plan_.places[node].gradient;
    return at == Plan::kNowhere ? nullptr : slopes_ + at;
  }
  Index channels(std::uint32_t node) const { return static_cast<Index>(plan_.places[node].shape.size()); }
  Index numbers(std::uint32_t node) const { return channels(node) * lanes_; }
  bool as_rows(std::uint32_t node) const { return plan_.places[node].rows || lanes_ == 1; }
  // Return the sample and the position of a lane. Padding lanes repeat lane 0, so they are finite if the
  // samples are.
  std::size_t sample_of(Index lane) const {
    return lane < real_lanes_ ? static_cast<std::size_t>(lane) / plan_.positions : 0;
  }
  std::size_t position_of(Index lane) const {
    return lane < real_lanes_ ? static_cast<std::size_t>(lane) % plan_.positions : 0;
  }

  // Throws DataError if the sample does not fit. `ascending` is true if its feature numbers ascend.
  void check(const Example<Real>& example, bool ascending) const;
  void read(std::size_t sample);  // checks the sample and records its features

  // Writes data to `out`. Calls row(example, position, to) for each lane to fill its channels.
  template <class Row>
  void fill_rows(const Step& step, Real* out, Row&& row);
  void embed(const Step& step, const Real* x, Real* out);
  void embed_backward(const Step& step, Real* gradient);

  // Affine maps of sparse features (micro_batch_features.cpp).
  void features_forward(const Step& step, const Real* x, Real* to);
  void features_backward(const Step& step, Real* gradient, bool add);
  bool dense(const Step& step) const;
  // Returns whether a layer of `weights` weights is large, and the lanes are enough for the kernels of large
  // layers.
  bool wide(std::size_t weights) const { return weights >= kLargeLayer && lanes_ >= kFewestWideLanes; }
  FeatureRows<Real> dense_rows(Index in);
  void wide_features(const Step& step, const Real* x, Real* to);

  void start_forward();
  void forward(const Step& step, const Real* x);
  void backward(const Step& step, const BackwardPart& part, const Real* x, Real* gradient, bool add);
  void affine(const Step& step, const Real* x, Real* to);
  struct UnitRun {  // consecutive units of an affine map
    Index first, count;
    bool input, add_input;             // the gradient of the input is needed; it is added
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

  // Returns the derivative of a node's value in directional(), with the layout of the value. Returns null for
  // data, which do not change.
  Real* tangent(std::uint32_t node);
  void tangent(const Step& step, const Real* x, const Real* v);
  void affine_tangent(const Step& step, const Real* x, const Real* v);
  void convolution_tangent(const Step& step, const Real* x, const Real* v);

  // Helpers of clipped(). They add the squared norms of the samples' gradients by the parameters of a step.
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
  struct ArenaDeleter {
    void operator()(Real* p) const;
  };
  struct FreeMemory {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, FreeMemory> arena_;  // null if the caller gave the memory
  Real *values_ = nullptr, *slopes_ = nullptr, *scratch_ = nullptr, *turned_ = nullptr;
  std::vector<Real*> where_;               // the value of each node
  std::vector<Real*> keep_;                // numbers that each step keeps for backward
  BFloat16* kept_ = nullptr;               // activations in bfloat16, for backward
  std::uint32_t turned_node_ = Op::kNone;  // the node whose values turned_ holds as rows
  std::unique_ptr<Real[], ArenaDeleter>
      tangents_;                // layout of values_; then zeros, the tangent of a constant bias
  std::vector<double> square_;  // squared norms for clipped(), by sample
  std::vector<Real> factor_;    // by lane
  std::vector<Real> grams_;     // Gram matrices of the input and the gradient of a step
  Real* dense_ = nullptr;       // rows of features; only dense data touch this memory
  Index dense_in_ = 0;          // number of features in dense_, or 0 if it is empty

  std::vector<Example<Real>> sample_;
  std::size_t samples_ = 0;
  std::size_t read_ = 0;                      // samples that read() has seen
  std::vector<SparseSample<Real>> features_;  // the features of each sample
  std::size_t nonzeros_ = 0;                  // total over features_
  bool ascending_ = true;                     // the feature numbers of each sample ascend
  Index real_lanes_ = 0, lanes_ = 0;
  std::vector<Token> label_;                          // by lane
  std::vector<Real> seed_, top_, total_;              // by lane
  std::vector<double> output_, target_, derivative_;  // one position of a custom loss
};

}  // namespace gradwire
