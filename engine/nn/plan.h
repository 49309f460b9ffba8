// What is decided once about a recorded network, before any sample is seen: which operations matter to the
// loss, where values and gradients lie in the arena, and which operation overwrites a gradient and which adds
// to it.
//
// Values live from forward to backward, unless the network says otherwise (engine/nn/schedule.h).
// Gradients live only from the first consumer that writes them to the operation that made the value; then
// their places are reused. There are three ways to share a place: a function whose derivative needs only its
// result works in place; a sum is added into an operand that nobody else reads; the gradient of a sum is that
// of its operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/nn/network.h"

namespace gradwire {

struct Plan {
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  // Where values have no place for the whole pass (engine/nn/schedule.h): one thing to do.
  struct Action {
    // A step; or a node, whose value goes to bfloat16, comes from there, or is again what it was before.
    enum class Kind : std::uint8_t { kForward, kBackward, kPack, kUnpack, kReturn };
    Kind kind = Kind::kForward;
    std::uint32_t number = 0;
    std::size_t value = kNowhere;  // kForward, kUnpack, kReturn: where the value lies from now on
    std::size_t kept = kNowhere;   // kForward: where what the step keeps does; kPack, kUnpack: in bfloat16
  };

  struct Step {
    Network::Op op;
    bool add[3] = {};             // into the gradient of in[i]
    bool skip[3] = {};            // in[i] takes no gradient here: it has none, or shares that of the result
    bool add_parameters = false;  // others add to the same parameters
    std::size_t keep = kNowhere;  // what backward wants to find again
  };

  struct ArenaPlace {
    TensorShape shape;
    std::size_t value = kNowhere;     // first number in the arena of values
    std::size_t gradient = kNowhere;  // in that of gradients; nowhere: not needed
    bool rows = false;                // [lane][channel]
  };

  struct PlanRange {
    std::size_t first, count;
  };

  struct Final {
    PlanRange range;
    std::size_t step;
  };

  std::vector<Step> steps;  // in order of execution; the last is the loss
  // Empty: all values stay where they are, forward is the steps in order, and backward in reverse. Else the
  // first forward_actions lead to the loss, those up to backward_actions are the backward sweep, in which
  // steps go backward in descending order too, and others follow only for gradients of single samples.
  std::vector<Action> actions;
  std::size_t forward_actions = 0, backward_actions = 0;
  std::vector<ArenaPlace> places;  // by node
  std::vector<PlanRange> zeroed;   // parameters whose gradients are set to 0 first: all others are assigned
  // After which step of the backward pass each parameter's gradient is final; steps descend, the first is
  // that of the loss: of parameters that nothing reads.
  std::vector<Final> finals;
  std::size_t positions = 1;
  std::size_t capacity = 0;  // lanes that the arena has room for
  std::size_t value_numbers = 0, gradient_numbers = 0, scratch_numbers = 0, turned_numbers = 0;
  std::size_t dense_numbers = 0;  // for rows of features, of data that turn out to have few zeros
  std::size_t kept_numbers = 0;   // in bfloat16; 0 unless the network says so
  bool single_lane = false;       // one sample runs as one lane
  bool shared_parameters = false;
};

// Numbers from one row of features to the next: not a power of two, whose rows would fall into few sets of
// the cache.
std::size_t feature_stride(std::size_t features);

struct PlanOptions {
  std::size_t number_bytes = sizeof(float);
  bool keep_gradients =
      false;  // those of the results of operations with parameters, until after the backward pass
};

// For blocks of at most `block` samples. Throws std::logic_error when the network has no loss, BudgetTooSmall
// when it cannot run within Network::activation_budget().
Plan make_plan(const Network& network, std::size_t block, const PlanOptions& options);

std::size_t arena_bytes(const Plan& plan, std::size_t number_bytes);
// Of the arena, without the rows of dense features and what is kept in bfloat16.
std::size_t arena_numbers(const Plan& plan);
constexpr std::size_t kArenaAlignment = 64;

// Lanes that `samples` samples take: 1, or a multiple of 4, and of `vector` / 2 where little is lost by it.
std::size_t padded_lanes(const Plan& plan, std::size_t samples, std::size_t vector);

}  // namespace gradwire
