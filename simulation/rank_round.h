// Messages that ranks exchange after their clients have answered a round.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "algorithms/core/message.h"
#include "mpi/rank_communicator.h"
#include "rounds/reply_counts.h"

namespace gradwire {

// The wishes of one process to stop or to take a snapshot, and the decisions that all processes follow after
// the same round.
struct RankSignals {
  const std::atomic<bool>* stop = nullptr;  // this process's flag; null if it never stops
  std::function<bool()> is_snapshot_due;    // empty if this process takes no snapshots
  std::atomic<bool> all_stop = false;       // set once any process must stop
  bool all_snapshot = false;                // set if any process needs a snapshot
};

struct RankRound {
  ReplyCounts counts;
  std::uint64_t bytes_up = 0, good = 0;  // good: number of replies
  // The clients without a usable reply, ascending, and the status of their answers.
  std::vector<std::pair<ClientId, ReplyStatus>> others;
};

// Collective. Adds up the counts of all ranks; `counts` has those of this rank's replies.
template <class Real>
RankRound agree_on_round(RankCommunicator<Real>& communicator, RankSignals& signals, ReplyCountSum& counts,
                         const RankRound& mine) {
  struct Head {
    std::uint64_t bytes_up, good, grad_calls, others;
    std::uint64_t stop, snapshot;
  } head{mine.bytes_up,
         mine.good,
         counts.grad_calls(),
         mine.others.size(),
         signals.stop != nullptr && signals.stop->load(),
         signals.is_snapshot_due && signals.is_snapshot_due()};
  struct Bits {
    std::uint64_t client;
    double up, up_paper;
  };
  struct Other {
    std::uint32_t client, status;
  };
  std::vector<std::byte> told;
  const auto put = [&told](const auto& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    told.insert(told.end(), bytes.begin(), bytes.end());
  };
  put(head);
  for (const auto& [client, status] : mine.others) put(Other{client, static_cast<std::uint32_t>(status)});
  for (const auto& node : counts.bits().nodes()) put(Bits{node.client, node.sum[0], node.sum[1]});

  RankBytes all;
  communicator.ranks().all_gather(told, all);
  RankRound round;
  ReplyCountSum sum;
  bool stop = false;
  signals.all_snapshot = false;
  for (unsigned r = 0; r < communicator.ranks().count(); ++r) {
    std::span<const std::byte> rest = all.of(r);
    const auto take = [&rest](auto value) {
      if (rest.size() < sizeof value) throw std::logic_error("the ranks are not in the same round");
      std::memcpy(&value, rest.data(), sizeof value);
      rest = rest.subspan(sizeof value);
      return value;
    };
    const Head of_rank = take(Head{});
    round.bytes_up += of_rank.bytes_up;
    round.good += of_rank.good;
    round.counts.grad_calls += of_rank.grad_calls;
    stop = stop || of_rank.stop;
    signals.all_snapshot = signals.all_snapshot || of_rank.snapshot;
    for (std::uint64_t k = 0; k < of_rank.others; ++k) {
      const Other other = take(Other{});
      round.others.emplace_back(other.client, static_cast<ReplyStatus>(other.status));
    }
    while (!rest.empty()) {
      const Bits bits = take(Bits{});
      sum.add(static_cast<ClientId>(bits.client), {bits.up, bits.up_paper, 0});
    }
  }
  if (stop) signals.all_stop = true;
  const ReplyCounts bits = sum.sum();
  round.counts.bits_up = bits.bits_up;
  round.counts.bits_up_paper = bits.bits_up_paper;
  return round;
}

}  // namespace gradwire
