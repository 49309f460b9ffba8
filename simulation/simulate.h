// Runs one experiment with all clients in this process.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "mpi/ranks.h"
#include "report/summary.h"
#include "rounds/round_loop.h"
#include "simulation/checkpoint.h"
#include "simulation/prepare.h"

namespace gradwire {

enum class TransportKind : std::uint8_t { kMemory, kEncoded, kTcp, kTls };
// Returns true if the clients are real processes that communicate over sockets.
constexpr bool is_networked(TransportKind kind) {
  return kind == TransportKind::kTcp || kind == TransportKind::kTls;
}

struct RunResult {
  Outcome outcome = Outcome::kFinished;
  std::uint32_t rounds = 0;       // finished rounds
  RoundRecord last;               // last evaluation
  double seconds = 0;             // wall time
  double evaluation_seconds = 0;  // part of `seconds` that evaluations took
  std::vector<double> model;      // shape (d); exact, even for fp32
  std::string kernels;            // instruction set of the gradient kernels
  std::string monitor;            // verdict of run.monitor, one line; empty if it is off
  bool crossed = false;           // true if the Lyapunov function crossed its bound
  std::vector<ProcessInfo> processes;
  std::string clients;  // the content of clients.csv, if other processes wrote it
};

struct RunObserver {
  std::function<void(const RoundRecord&)> on_record;       // after every evaluation
  std::function<bool(const RoundRecord&)> is_enough = {};  // the hook LoopHooks::is_enough; one rank only
  std::function<void(std::uint32_t rounds)> on_round;      // after every round; not over TCP
  Log on_note;                                             // one line for the user
  // The hook LoopHooks::on_clients. Either all ranks set it, or none.
  std::function<void(std::uint32_t round, std::span<const ClientEvaluation>)> on_clients = {};
  // Gets what was measured until the last whole round, if an exception ends the run.
  std::function<void(const RunResult&)> on_failure = {};
};

// Snapshots that let another process continue the simulation. If `checkpoint` is null, none are taken.
struct Checkpoints {
  RunCheckpoint* checkpoint = nullptr;
  RunCheckpoint::Saved saved;  // state to continue from; without sections, start from the beginning
  double seconds = 30;         // approximate interval; a stopped run takes one more; 0 takes none
};

// Runs the experiment. Takes over the samples of `prepared`, so that only one copy exists. With `encoded`,
// every message passes through the codec. `ranks` are the processes that share the clients; null means only
// this one. check_for_ranks() must accept the run, all ranks must pass the same experiment, and only rank 0
// has a checkpoint. Throws std::runtime_error (one line).
RunResult simulate(Prepared prepared, bool encoded, unsigned threads, const RunObserver& observer,
                   const std::atomic<bool>& stop, Checkpoints checkpoints = {},
                   std::shared_ptr<Ranks> ranks = nullptr);

}  // namespace gradwire
