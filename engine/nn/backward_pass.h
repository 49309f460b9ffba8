// The part of the backward pass that a gradient with options (GradientOptions) needs. An operation runs if it
// reads wanted parameters, or passes the gradient to an operation that does. It runs as in the whole pass, so
// its results have the same bits.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/nn/plan.h"
#include "gradwire/oracle.h"

namespace gradwire {

// The work of one operation in a backward pass.
struct BackwardPart {
  bool runs = true;
  bool parameters = true;                // true if the gradient of its parameters is needed
  bool input[3] = {true, true, true};    // input[k]: true if the gradient of in[k] is needed
  CoordinateRange rows = {0, kAllRows};  // rows of an affine map's weights whose gradient is needed

  static constexpr std::size_t kAllRows = ~std::size_t{0};
};

class BackwardPass {
 public:
  BackwardPass() = default;  // the whole backward pass

  // Selects what to run. Keeps a pointer to `options`. Allocates if `plan` is larger than all plans before.
  void plan(const Plan& plan, const GradientOptions& options);

  const BackwardPart& part(std::size_t step) const { return whole_pass_ ? whole_ : parts_[step]; }
  // Returns the lowest step that runs. The pass visits all steps from the loss down to it.
  std::size_t first_step() const { return first_; }
  const GradientOptions* options() const { return options_; }  // null for the whole pass

  // True for the last microbatch of a batch: only then the backward pass makes ranges of the gradient final.
  bool last_micro_batch = true;
  std::size_t micro_batch = 0;  // number of the microbatch; each draws its own paths

 private:
  bool whole_pass_ = true;  // all parts equal whole_
  BackwardPart whole_;
  std::vector<BackwardPart> parts_;  // by step
  std::vector<bool> needed_;         // by node: whether its gradient is needed
  std::size_t first_ = 0;
  const GradientOptions* options_ = nullptr;
};

// The time of an operation on one lane: its forward pass, and the gradients of its input and its parameters.
// The unit is one multiply-add of a large matrix product. Measured with AVX-512.
struct OpCost {
  double forward = 0, input = 0, parameters = 0;
};
OpCost cost_of(const Plan& plan, const Plan::Step& step);

// Predicts the time of the forward pass and this backward pass, as a share of the forward and the whole
// backward pass.
double backward_cost(const Plan& plan, const BackwardPass& pass);

// Affine maps with fewer units keep all of them: leaving some out would save little time, but would add as
// much variance as in a large map.
inline constexpr std::size_t kFewestRandomUnits = 48;

// The units of an affine map that randomized backpropagation keeps: `count` units from `first` on, modulo
// `all`. Each unit is kept with probability count / all, and its gradient is divided by that probability.
struct KeptUnits {
  std::size_t first = 0, count = 0, all = 0;
};
KeptUnits keep_units(const RandomPaths& paths, std::size_t step, std::size_t micro_batch, std::size_t units);

}  // namespace gradwire
