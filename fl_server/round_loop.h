// The one synchronous round loop: simulation, TCP and a cluster differ only in the Transport handed to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/method.h"
#include "fl_server/transport.h"

namespace gradwire {

// What the server process remembers of its clients: 8 bytes each. Part of its snapshot.
struct Ledger {
  std::uint64_t ticket = 0;  // the highest ever issued
  // Per client: the ticket of its last reply that was used; 0: none was.
  std::vector<std::uint64_t> committed;
};

struct RoundLimits {
  std::uint32_t rounds = 0;
  double quorum = 1;                 // share of the cohort whose replies end a round
  double deadline_seconds = 60;      // then whoever is missing is asked again
  std::uint32_t attempts = 10;       // deadlines without a quorum before the run gives up
  std::uint32_t evaluate_every = 1;  // 0: never
  double stop_at_grad_norm_sq = 0;   // 0: never
};

// Row k of the metrics: at x^k. Cumulative where the name has no "per round" meaning (docs/results.md).
struct RoundRecord {
  std::uint32_t round = 0;
  double loss = 0, grad_norm_sq = 0;
  std::optional<double> accuracy;
  double bits_up = 0, bits_down = 0;              // per client on average, by the wire definition
  double bits_up_paper = 0, bits_down_paper = 0;  // the same as papers count
  std::uint64_t bytes_up = 0, bytes_down = 0;
  double grad_calls = 0;      // per-sample gradients / n
  std::uint32_t replies = 0;  // used in the round that led here
  double seconds = 0;
};

enum class Outcome : std::uint8_t { kFinished, kReachedTarget, kStopped, kDiverged };

template <class Real>
struct LoopHooks {
  std::function<void(const RoundRecord&)> on_record;  // evaluated rounds
  std::function<void(std::uint32_t round)>
      on_round;  // after every round: snapshot here, before any commit is announced
  std::function<void(const std::string&)>
      on_note;                              // one line worth a log: who is awaited, who was resynchronised
  const std::atomic<bool>* stop = nullptr;  // set: finish the round, then stop
};

// Runs rounds until the limits are reached. Throws std::runtime_error (one line) when a round cannot be
// completed: no quorum after all attempts, or a client lost state that nobody can restore.
template <class Real>
Outcome run_rounds(ServerHalf<Real>& server, const Facts& facts, const Setup<Real>& setup,
                   Transport<Real>& transport, Ledger& ledger, const RoundLimits& limits,
                   const LoopHooks<Real>& hooks);

}  // namespace gradwire
