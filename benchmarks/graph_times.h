// Times of one gradient of the two small graphs of engine/tape.
#pragma once

#include "benchmarks/harness.h"

namespace gradwire::bench {

// Nanoseconds per gradient, in fp64.
struct GraphTimes {
  Series eager, in_buffer, lanes, fixed, fixed_chain;  // tapes
  Series stored, by_hand, by_hand_chain;               // loops written by hand for the graph
};

GraphTimes tiny_times(Bench& bench);   // ((a + b) - (a b + b^3))^2 / 2, ten nodes
GraphTimes small_times(Bench& bench);  // micrograd's example, 32 nodes

}  // namespace gradwire::bench
