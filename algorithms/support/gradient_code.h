// Gradient codes: n clients hold copies of n parts of the data, and each sends one sum over its parts. The
// server computes the sum over all parts from the sums of some clients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/core/message.h"
#include "engine/data/client_dataset.h"

namespace gradwire {

class GradientCode {
 public:
  // `exact` selects the code:
  //   true: any n - r clients give the exact sum over all parts, r = replication.count - 1. Groups use
  //     fractional repetition, a ring uses cyclic repetition (Tandon et al., arXiv:1612.03301, sections 3
  //     and 4).
  //   false: the sum is the closest one that the available clients allow. All factors are 1, and the server
  //     solves a least-squares problem (Raviv et al., arXiv:1707.03858).
  // `seed` draws the factors of a ring, the same at both ends. REQUIRES: replication.count <= n, and it
  // divides n for groups.
  GradientCode(std::uint32_t n, DataReplication replication, bool exact, std::uint64_t seed);

  // Returns whether all factors are 1.
  bool is_plain() const { return H_.empty(); }
  // Returns b_i, the factors of the parts that client i holds, shape (replication.count).
  std::vector<double> factors(ClientId i) const;
  // Returns a, shape (clients.size()), such that Σ a_i (sum that client i sends) is the sum over all parts,
  // or as close to it as possible: a minimises Σ_parts (1 − Σ_i a_i b_{i,part})². `clients` ascends. For
  // groups, a_i is 1 for the first client of each group and 0 for the others. Takes O(n |clients|²) steps for
  // a ring.
  std::vector<double> weights(std::span<const ClientId> clients) const;

 private:
  std::vector<double> dense_factors(ClientId i) const;

  std::uint32_t n_;
  DataReplication replication_;
  std::vector<std::vector<double>>
      H_;  // r rows of n numbers with sum 0, H b_i = 0; empty unless the code is an exact ring
};

}  // namespace gradwire
