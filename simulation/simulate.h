// One experiment with all clients in this process.
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
// Real processes that speak over sockets.
constexpr bool is_networked(TransportKind kind) {
  return kind == TransportKind::kTcp || kind == TransportKind::kTls;
}

struct RunObserver {
  std::function<void(const RoundRecord&)> on_record;   // evaluated rounds
  std::function<void(std::uint32_t rounds)> on_round;  // after every round; not over TCP
  Log on_note;                                         // one line
  // LoopHooks::on_clients. On ranks either all have it or none.
  std::function<void(std::uint32_t round, std::span<const ClientEvaluation>)> on_clients = {};
};

struct RunResult {
  Outcome outcome = Outcome::kFinished;
  std::uint32_t rounds = 0;       // that were done
  RoundRecord last;               // of the last evaluation
  double seconds = 0;             // wall
  double evaluation_seconds = 0;  // of them
  std::vector<double> model;      // shape (d); exact also for fp32
  std::string kernels;            // that computed gradients
  std::string monitor;            // what run.monitor found, one line; empty: it is off
  bool crossed = false;           // the Lyapunov function crossed its bound
  std::vector<ProcessInfo> processes;
  std::string clients;  // the content of clients.csv, if other processes wrote it
};

// How a simulation saves all that another process needs to continue it. Without a checkpoint: not at all.
struct Checkpoints {
  RunCheckpoint* checkpoint = nullptr;
  RunCheckpoint::Saved saved;  // to continue from; no sections: start from the beginning
  double seconds = 30;         // from one to the next, about; one more when the run is stopped; 0: none
};

// Takes the samples of `prepared` over, so that there is one copy of them.
// `encoded`: every message passes through the codec. `ranks`: the processes that share the clients; null:
// this one alone. They must be able to (check_for_ranks), and all call this with the same experiment; only
// rank 0 has a checkpoint. Throws std::runtime_error (one line).
RunResult simulate(Prepared prepared, bool encoded, unsigned threads, const RunObserver& observer,
                   const std::atomic<bool>& stop, Checkpoints checkpoints = {},
                   std::shared_ptr<Ranks> ranks = nullptr);

}  // namespace gradwire
