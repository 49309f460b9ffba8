// Other algorithms for the problem of an experiment, with a compressor that each takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "algorithms/algorithms.h"

namespace gradwire {

// Returns `wished` if theory of the algorithm covers it for n clients and vectors of length d. Otherwise
// returns randk or topk with as many numbers, or identity for an algorithm that compresses nothing. An
// algorithm that compresses gets 1 % of the numbers if `wished` is identity.
std::string fitting_compressor(const AlgorithmTraits& algorithm, const std::string& wished, std::size_t d,
                               std::uint32_t n);

// Returns the reason for a choice of fitting_compressor(), as in "topk:k=5 is biased".
std::string why_compressor(const AlgorithmTraits& algorithm, const std::string& wished,
                           const std::string& chosen);

// Returns `own` with another algorithm: a compressor that fits, the algorithm's default step size, batch and
// participation if the algorithm has them, and its default parameters. Keeps the parameters if `own` is the
// spec of this algorithm.
AlgorithmSpec fitting_spec(const AlgorithmInfo& algorithm, const AlgorithmSpec& own, std::size_t d,
                           std::uint32_t n);

// Returns whether theory gives the parameter step_size of the algorithm by default.
bool has_theory_step(const AlgorithmInfo& algorithm);
// Returns the key of the step size that theory gives by default, step_size or another one. Empty if theory
// gives none.
std::string theory_step_key(const AlgorithmInfo& algorithm);

}  // namespace gradwire
