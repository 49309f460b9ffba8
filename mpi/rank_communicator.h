// The clients of a run, shared by ranks: each has a range of their numbers. Sums have the bits that one
// process gives them (algorithms/core/tree_sum.h): a rank adds up the subtrees that it holds whole, and
// whoever owns a coordinate adds up those of all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "algorithms/core/communicator.h"
#include "algorithms/core/context.h"
#include "algorithms/core/tree_sum.h"
#include "mpi/ranks.h"

namespace gradwire {

// The clients of rank `rank` of `count`. Where there are enough clients, ranges begin where large subtrees
// do.
ClientRange clients_of_rank(std::uint32_t clients, unsigned rank, unsigned count);

template <class Real>
class RankCommunicator final : public Communicator<Real> {
 public:
  using typename Communicator<Real>::Summand;

  RankCommunicator(std::shared_ptr<Ranks> ranks, std::uint32_t clients);

  ClientRange mine() const override { return mine_; }
  void add(std::span<const Summand> summands, Real scale, const ForRanges& ranges, Vec<Real>& out) override;
  Vec<double> sum(TreeSum<double>& tree) override;
  std::vector<double> gather(std::span<const double> mine) override;

  Ranks& ranks() { return *ranks_; }
  // Whether no leaf of the tree is divided among ranks.
  bool has_whole_leaves() const { return whole_leaves_; }

 private:
  struct SummandTotals {
    std::uint64_t dense = 0, others = 0;  // summands of all ranks
  };
  SummandTotals totals_of(std::span<const Summand> summands);
  // Rank r has coordinates [begin[r], begin[r + 1]). Sends it the to[r] that make(to, begin) packs, calls
  // take(lo, hi, messages of all ranks) for the coordinates of this one, and gives everybody `out`, of which
  // take() has written [lo, hi).
  template <class Number>
  void share(std::size_t size, const auto& make, const auto& take, std::span<Number> out);

  std::shared_ptr<Ranks> ranks_;
  std::uint32_t clients_;
  ClientRange mine_;
  bool whole_leaves_;
  RankBytes received_;
};

}  // namespace gradwire
