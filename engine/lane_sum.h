#pragma once

#include <cstddef>

namespace gradwire {

// Returns sum_j term(j), added in double. It has one running sum per lane: with a single sum, each addition
// would wait for the one before. A term that captures pointers, not references to spans, is vectorized.
template <class Term>
double lane_sum(std::size_t count, Term&& term) {
  constexpr std::size_t kLanes = 8;
  double sums[kLanes] = {};
  std::size_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += term(j + lane);
  }
  for (; j < count; ++j) sums[0] += term(j);
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace gradwire
