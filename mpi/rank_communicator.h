// The clients of a run, distributed over ranks: each rank has a range of client numbers. Sums have the
// bits of a single process (algorithms/core/tree_sum.h). Each rank adds up the subtrees whose clients are all
// its own. Then the rank that owns a coordinate adds up the results of all ranks.
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

// Returns the clients of rank `rank` of `count`. If there are enough clients, ranges begin at the start of
// large subtrees.
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
  // Returns whether no leaf of the tree is divided among ranks.
  bool has_whole_leaves() const { return whole_leaves_; }

 private:
  struct SummandTotals {
    std::uint64_t dense = 0, others = 0;  // summands of all ranks
  };
  SummandTotals totals_of(std::span<const Summand> summands);
  // Distributes a computation by coordinates: rank r computes [begin[r], begin[r + 1]). make(to, begin) packs
  // the message to[r] for each rank r. take(lo, hi, messages from all ranks) writes this rank's coordinates,
  // [lo, hi) of `out`. At the end, all ranks have the whole `out`.
  template <class Number>
  void share(std::size_t size, const auto& make, const auto& take, std::span<Number> out);

  std::shared_ptr<Ranks> ranks_;
  std::uint32_t clients_;
  ClientRange mine_;
  bool whole_leaves_;
  RankBytes received_;
};

}  // namespace gradwire
