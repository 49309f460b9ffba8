// A plan as a chain of stages (engine/nn/chain.h): cut where few values are alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/nn/chain.h"
#include "engine/nn/plan.h"

namespace gradwire {

// The ranges of a plan's values, by number: those of one node, of nodes that overwrite each other, or what a
// step keeps for its backward.
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

// The nodes whose values an operation reads on the way back.
std::vector<std::uint32_t> read_backward(const Network::Op& op);

struct Stages {
  // Stage s is the steps from begin[s] to begin[s + 1]; the loss is behind the last.
  std::vector<std::size_t> begin;
  std::vector<ChainStage> chain;  // in bytes
};

// `number_bytes`: of a value. `packed`: what backward reads is kept in bfloat16.
Stages cut_into_stages(const Plan& plan, const Regions& regions, std::size_t number_bytes, bool packed);

}  // namespace gradwire
