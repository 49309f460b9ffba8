// Decisions about a recorded network that do not depend on samples: which operations matter to the
// loss, where values and gradients are in the arena, and which operations overwrite a gradient or add to it.
//
// Values live from the forward to the backward pass, unless the network says otherwise
// (engine/nn/schedule.h). Gradients live from the first consumer that writes them to the operation that made
// the value. Then their places are reused. Values and gradients share places in three ways. A function whose
// derivative needs only its result works in place. A sum is added into an operand that no other operation
// reads. A sum shares its gradient with its operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/nn/network_ops.h"

namespace gradwire {

struct Plan {
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  // One action of a plan whose values do not keep their places for the whole pass (engine/nn/schedule.h).
  struct Action {
    // kForward and kBackward run a step. The others act on a node: kPack packs its value into bfloat16,
    // kUnpack unpacks it to a new place, and kReturn makes the original value current again.
    enum class Kind : std::uint8_t { kForward, kBackward, kPack, kUnpack, kReturn };
    Kind kind = Kind::kForward;
    std::uint32_t number = 0;
    std::size_t value = kNowhere;  // kForward, kUnpack, kReturn: the place of the value from now on
    std::size_t kept = kNowhere;   // kForward: the place of what the step keeps; kPack, kUnpack: the place in
                                   // bfloat16
  };

  struct Step {
    NetworkOp op;
    bool add[3] = {};             // add[i]: adds to the gradient of in[i]
    bool skip[3] = {};            // in[i] takes no gradient here: it has none, or shares that of the result
    bool add_parameters = false;  // adds to the gradient of the parameters, as other steps write it as well
    std::size_t keep = kNowhere;  // place of what the step keeps for its backward pass
  };

  struct ArenaPlace {
    TensorShape shape;
    std::size_t value = kNowhere;     // first number in the arena of values
    std::size_t gradient = kNowhere;  // the same in the arena of gradients; kNowhere if it is not needed
    bool rows = false;                // true for layout [lane][channel]
  };

  struct PlanRange {
    std::size_t first, count;
  };

  struct Final {
    PlanRange range;
    std::size_t step;
  };

  std::vector<Step> steps;  // in order of execution; the last is the loss
  // Empty if all values keep their places: forward does the steps in order, and backward in reverse order.
  // Otherwise the first forward_actions lead to the loss. Those up to backward_actions are the backward pass,
  // in which kBackward steps descend. The rest serves only gradients of single samples.
  std::vector<Action> actions;
  std::size_t forward_actions = 0, backward_actions = 0;
  std::vector<ArenaPlace> places;  // by node
  std::vector<PlanRange> zeroed;   // parameters whose gradients are set to 0 first; all others are assigned
  // Ranges of parameters, each with the step of the backward pass after which its gradient is final. Steps
  // descend. Parameters that no operation reads have the step of the loss.
  std::vector<Final> finals;
  std::size_t micro_batch = 0;  // the most samples
  std::size_t positions = 1;
  std::size_t capacity = 0;  // lanes that fit the arena
  std::size_t value_numbers = 0, gradient_numbers = 0, scratch_numbers = 0, turned_numbers = 0;
  std::size_t dense_numbers = 0;  // for rows of features, if the data turn out to have few zeros
  std::size_t kept_numbers = 0;   // in bfloat16; 0 unless the network asks for it
  bool single_lane = false;       // one sample runs as one lane
  bool shared_parameters = false;
};

// A layer with this many weights or more fills the second-level cache, together with its gradient. It wants
// many samples a microbatch, because each microbatch streams both through the cache.
inline constexpr std::size_t kLargeLayer = std::size_t{3} << 15;

// Returns the distance between two rows of features, in numbers. Adds to the row length, because rows at a
// distance of a power of two would share few sets of the cache.
std::size_t feature_stride(std::size_t features);

struct PlanOptions {
  std::size_t number_bytes = sizeof(float);
  // Keeps the gradients of the results of operations with parameters until the backward pass has ended.
  bool keep_gradients = false;
};

// Makes a plan for microbatches of at most `micro_batch` samples. Throws std::logic_error if the network has
// no loss, and BudgetTooSmall if it cannot run within Network::activation_budget().
Plan make_plan(const Network& network, std::size_t micro_batch, const PlanOptions& options);

std::size_t arena_bytes(const Plan& plan, std::size_t number_bytes);
// Returns the size of the arena, without the rows of dense features and without what is kept in bfloat16.
std::size_t arena_numbers(const Plan& plan);
constexpr std::size_t kArenaAlignment = 64;

// Returns the number of lanes for `samples` samples: 1, or a multiple of 4. It is a multiple of `vector` / 2
// if that wastes little.
std::size_t padded_lanes(const Plan& plan, std::size_t samples, std::size_t vector);

}  // namespace gradwire
