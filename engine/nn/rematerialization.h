// Cuts a plan into a chain of stages (engine/nn/chain.h), at places where few values are alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/nn/chain.h"
#include "engine/nn/plan.h"

namespace gradwire {

// The memory ranges of a plan's values, by number. A range holds one node, nodes that overwrite each other,
// or what a step keeps for its backward pass.
class Regions {
 public:
  explicit Regions(const Plan& plan);
  std::size_t of(std::uint32_t node) const { return at(plan_.places[node].value); }
  std::size_t of_kept(std::size_t step) const { return at(plan_.steps[step].keep); }
  std::size_t numbers(std::size_t region) const { return numbers_[region]; }
  std::size_t size() const { return first_.size(); }

 private:
  std::size_t at(std::size_t place) const;
  const Plan& plan_;
  std::vector<std::size_t> first_, numbers_;  // ascending
};

// Returns the nodes whose values the backward pass of an operation reads.
std::vector<std::uint32_t> read_backward(const NetworkOp& op);

struct Stages {
  // Stage s consists of the steps begin[s] .. begin[s + 1] - 1. The loss comes after the last stage.
  std::vector<std::size_t> begin;
  std::vector<ChainStage> chain;  // in bytes
};

// Cuts the plan. `number_bytes` is the size of one number of a value. If `packed`, the values that the
// backward pass reads are kept in bfloat16.
Stages cut_into_stages(const Plan& plan, const Regions& regions, std::size_t number_bytes, bool packed);

}  // namespace gradwire
