// What is decided once about a recorded network, before any sample is seen: which operations matter to the
// loss, where values and gradients lie in the arena, and which operation overwrites a gradient and which adds
// to it.
//
// Values live from forward to backward. Gradients live only from the first consumer that writes them to the
// operation that made the value; then their places are reused. There are three ways to share a place: a
// function whose derivative needs only its result works in place; a sum is added into an operand that nobody
// else reads; the gradient of a sum is that of its operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/network/network.h"

namespace gradwire {

struct Plan {
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  // Where activations are kept in bfloat16: what a step has to do with them.
  struct Restore {
    std::uint32_t node;
    std::size_t at;     // in the arena of values
    std::size_t maker;  // the step that reads it from the samples once more; nowhere: from what was kept
  };
  struct Kept {
    std::vector<std::uint32_t> pack;  // nodes to keep when the step is done
    std::vector<Restore> restore;     // before its backward
  };

  struct Step {
    Network::Op op;
    bool add[3] = {};   // into the gradient of in[i]
    bool skip[3] = {};  // in[i] takes no gradient here: it has none, or shares that of the result
    bool packs = false, restores = false;  // see Kept
    bool add_parameters = false;           // others add to the same parameters
    std::size_t keep = kNowhere;           // what backward wants to find again
  };

  struct Place {
    TensorShape shape;
    std::size_t value = kNowhere;     // first number in the arena of values
    std::size_t gradient = kNowhere;  // in that of gradients; nowhere: not needed
    bool rows = false;                // [lane][channel]
    std::size_t kept = kNowhere;      // first number in the arena of bfloat16
  };

  struct Range {
    std::size_t first, count;
  };

  struct Final {
    Range range;
    std::size_t step;
  };

  std::vector<Step> steps;    // in order of execution; the last is the loss
  std::vector<Kept> kept;     // by step, where activations are kept in bfloat16; else empty
  std::vector<Place> places;  // by node
  std::vector<Range> zeroed;  // parameters whose gradients are set to 0 first: all others are assigned
  // After which step of the sweep each parameter's gradient is final; steps descend, the first is that of the
  // loss: of parameters that nothing reads.
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

// For blocks of at most `block` samples. `keep_gradients`: the gradients of the results of operations with
// parameters are still there after the sweep. Throws std::logic_error when the network has no loss.
Plan make_plan(const Network& network, std::size_t block, bool keep_gradients = false);

// Gives a plan's values new places, for Network::keep_activations(): engine/network/compact.cpp.
void keep_bfloat16(Plan& plan);

// Lanes that `samples` samples take: 1, or a multiple of 4, and of `vector` / 2 where little is lost by it.
std::size_t padded_lanes(const Plan& plan, std::size_t samples, std::size_t vector);

}  // namespace gradwire
