// Gradient codes: n clients hold copies of n parts, each sends one sum over its parts, and from the sums of
// some clients the server has the sum over all parts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/core/message.h"
#include "engine/data/client_dataset.h"

namespace gradwire {

class GradientCode {
 public:
  // How exact the sum over all parts is.
  //   exact: from any n - r clients, r = copies.count - 1. Groups are fractional repetition, a ring is cyclic
  //     repetition (Tandon et al., arXiv:1612.03301, sections 3 and 4).
  //   approximate: the closest that is possible, from as many clients as there are. All factors are 1, and
  //     the server solves a least-squares problem (Raviv et al., arXiv:1707.03858).
  // `seed`: of the factors of a ring, the same at both ends. REQUIRES: copies.count <= n, and divides n for
  // groups.
  GradientCode(std::uint32_t n, DataReplication replication, bool exact, std::uint64_t seed);

  // Whether all factors are 1.
  bool is_plain() const { return H_.empty(); }
  // b_i: the factors of the parts that client i holds, shape (copies.count).
  std::vector<double> factors(ClientId i) const;
  // a: with them Σ a_i (the sum that client i sends) is the sum over all parts, or the closest to it: the a
  // that minimise Σ_parts (1 − Σ a_i b_i,part)². `clients` ascends; shape (clients.size()). Groups: 1 for the
  // first client of each group and 0 for the others. Takes O(n |clients|²) for a ring.
  std::vector<double> weights(std::span<const ClientId> clients) const;

 private:
  std::vector<double> dense_factors(ClientId i) const;

  std::uint32_t n_;
  DataReplication replication_;
  std::vector<std::vector<double>> H_;  // of an exact ring: r rows of n numbers with sum 0, H b_i = 0
};

}  // namespace gradwire
