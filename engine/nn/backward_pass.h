// What of the backward sweep a gradient with options (GradientOptions) needs: an operation matters when it
// reads wanted parameters, or passes the gradient on to one that does. What matters runs as in the whole
// sweep, so its results have the same bits.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/nn/plan.h"
#include "engine/oracle.h"

namespace gradwire {

// Of one operation.
struct BackwardPart {
  bool runs = true;
  bool parameters = true;                // their gradient is needed
  bool input[3] = {true, true, true};    // the gradient of in[k] is needed
  CoordinateRange rows = {0, kAllRows};  // of the weights of an affine map, whose gradient is needed

  static constexpr std::size_t kAllRows = ~std::size_t{0};
};

class BackwardPass {
 public:
  BackwardPass() = default;  // the whole

  // Keeps views of `options`. Allocates when it sees a plan with more steps than any before.
  void plan(const Plan& plan, const GradientOptions& options);

  const BackwardPart& part(std::size_t step) const { return whole_pass_ ? whole_ : parts_[step]; }
  // The lowest step that runs; all steps from the loss down to it are looked at.
  std::size_t first_step() const { return first_; }
  const GradientOptions* options() const { return options_; }  // null: the whole

  // Whether the ranges that are finished are final: true in the last block of samples.
  bool last_micro_batch = true;
  std::size_t micro_batch = 0;  // number of the block: each draws its own paths

 private:
  bool whole_pass_ = true;  // all parts are as whole_
  BackwardPart whole_;
  std::vector<BackwardPart> parts_;  // by step
  std::vector<bool> needed_;         // by node: its gradient
  std::size_t first_ = 0;
  const GradientOptions* options_ = nullptr;
};

// Time of an operation on one lane, in multiply-adds of a large matrix product; measured, AVX-512.
struct OpCost {
  double forward = 0, input = 0, parameters = 0;
};
OpCost cost_of(const Plan& plan, const Plan::Step& step);

// Predicts the time of forward and the backward pass, as a share of forward and the whole sweep.
double backward_cost(const Plan& plan, const BackwardPass& pass);

// Fewer units of an affine map save little, and cost as much variance: then all are kept.
inline constexpr std::size_t kFewestRandomUnits = 48;

// Units of an affine map that randomised backpropagation keeps: those from `first` on, `count` of them,
// modulo `all`. Each is kept with probability count / all, by which its gradient is divided.
struct KeptUnits {
  std::size_t first = 0, count = 0, all = 0;
};
KeptUnits keep_units(const RandomPaths& paths, std::size_t step, std::size_t micro_batch, std::size_t units);

}  // namespace gradwire
