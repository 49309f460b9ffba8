// A run from its first round to its last: simulation, TCP and a cluster differ only in the Transport handed
// to it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "base/log.h"
#include "rounds/norm_limit.h"
#include "rounds/run_progress.h"
#include "rounds/transport.h"

namespace gradwire {

// The rows of the metrics that have ||grad f||^2; at both ends: the first row and the last.
enum class GradNormRows : std::uint8_t { kEvery, kEnds, kNone };

// How long the loss has had no new minimum.
struct Lull {
  double best = std::numeric_limits<double>::infinity();  // loss
  std::uint32_t evaluations = 0;                          // since it was met first

  void see(double loss) {
    evaluations = loss < best ? 0 : evaluations + 1;
    best = std::min(best, loss);
  }
};

struct RoundLimits {
  std::uint32_t rounds = 0;
  double quorum = 1;                 // share of the cohort whose replies end a round
  double over_selection = 0;         // clients asked beyond the cohort, as a share of it
  double deadline_seconds = 60;      // then whoever is missing is asked again
  std::uint32_t attempts = 10;       // deadlines without a quorum before the run gives up
  double first_wait_seconds = 0;     // the first request may take this long, if that is longer
  std::uint32_t evaluate_every = 1;  // 0: never
  GradNormRows grad_norm = GradNormRows::kEvery;
  double evaluated_share = 1;       // of the clients, that evaluations ask; the same ones in every row
  double stop_at_grad_norm_sq = 0;  // 0: never
  std::optional<double> stop_at_loss;
  double stop_at_accuracy = 0;  // 0: never
  std::uint32_t patience = 0;   // evaluations without a new minimum of the loss; 0: any number
  Lull lull;                    // of the rows before the first round
  // The oldest gradient that the theorem behind the step size allows for, in steps; a run warns of the first
  // that is older. Empty: any.
  std::optional<std::uint32_t> max_delay;
  NormLimit norm;             // of replies
  bool keep_clients = false;  // a run that is stopped goes on later: do not shut the clients down
};

// Row k of the metrics: at x^k. Cumulative where the name has no "per round" meaning (docs/results.md).
struct RoundRecord {
  std::uint32_t round = 0;
  double loss = 0;
  std::optional<double> grad_norm_sq, accuracy;
  double bits_up = 0, bits_down = 0;              // per client on average, by the wire definition
  double bits_up_paper = 0, bits_down_paper = 0;  // the same as papers count
  std::uint64_t bytes_up = 0, bytes_down = 0;
  double grad_calls = 0;      // per-sample gradients / n
  std::uint32_t replies = 0;  // used in the round that led here
  double seconds = 0;
  std::optional<double> sim_seconds;                                 // the same, where the clock is virtual
  std::optional<double> lyapunov, lyapunov_bound;                    // of a run with run.monitor
  std::uint64_t evaluation_bytes_up = 0, evaluation_bytes_down = 0;  // of evaluations, this one included
};

// kDiverged: so many answers were not finite that no quorum is left. kStalled: RoundLimits::patience is over.
// Journals hold the numbers.
enum class Outcome : std::uint8_t { kFinished, kReachedTarget, kStopped, kDiverged, kStalled };

// A round that the server algorithm has taken in and that no client knows of yet.
template <class Real>
struct RoundCommit {
  const RunProgress& progress;         // as it is after the round
  Replies<Real> replies;               // that the algorithm was given, ascending clients
  bool used = false;                   // what its apply() said
  std::span<const Frame> frames = {};  // of the replies, where the transport has them
};

template <class Real>
class Evaluation;

// What one client answered to an evaluation.
struct ClientEvaluation {
  double loss = 0;
  std::uint64_t correct = 0, tested = 0;  // test samples
  bool answered = false;                  // false: it was not asked, or gave no finite answer
};

// Encoded sizes of an evaluation, for each client that is asked.
struct EvaluationBytes {
  std::uint64_t request = 0, answer = 0;
  std::uint64_t counts = 0;  // more in the answer of a client with test samples
};

template <class Real>
struct LoopHooks {
  std::function<void(const RoundRecord&)> on_record;  // evaluated rounds
  // After on_record: the answers of all clients, shape (n). Empty: they are not kept.
  std::function<void(std::uint32_t round, std::span<const ClientEvaluation>)> on_clients;
  // The algorithm is about to change; from on_commit until here it is only read.
  std::function<void()> before_apply;
  // Makes the round durable: called after the algorithm took it in, before any client is told. Throws when it
  // cannot.
  std::function<void(const RoundCommit<Real>&)> on_commit;
  std::function<void(std::uint32_t round)> on_round;  // after every round
  // No round is left: called before any client is sent home.
  std::function<void(Outcome)> on_over;
  Log on_note;  // who is awaited, who was resynchronised
  // Of the run with its earlier processes, for records: wall or virtual. Empty: no time is written down.
  std::function<double()> seconds;
  // Wall time, of which evaluations take a share. Empty: nobody asks.
  std::function<double()> wall_seconds;
  // Where all data are at hand: adds the finite answers at x of the clients that the evaluation asks(),
  // beside what the clients do. Empty: they are asked.
  std::function<void(View<Real> x, Evaluation<Real>& to)> evaluate;
  // What `evaluate` spares the wire. Empty: nobody counts it.
  std::function<EvaluationBytes(const Downlink<Real>& body, RequestKind kind)> evaluation_bytes;
  const std::atomic<bool>* stop = nullptr;  // set: finish the round, then stop
  // Called between two rounds, and once more (`stopped`) when a run that keeps its clients is stopped: the
  // moment for a snapshot of a run whose clients live in this process. `save_work` returns what the driver
  // knows of work in progress.
  std::function<void(const std::function<std::string()>& save_work, bool stopped)> between_rounds;
  // The result of `save_work` in the process that this run continues. Empty if no work is in progress.
  std::string work;
};

// Runs rounds from progress.round until the limits are reached. Throws std::runtime_error (one line) when a
// round cannot be completed: no quorum after all attempts, or a client lost state that nobody can restore.
template <class Real>
Outcome run_rounds(ServerAlgorithm<Real>& server, const AlgorithmTraits& traits,
                   const RunContext<Real>& run_context, Transport<Real>& transport, RunProgress& progress,
                   const RoundLimits& limits, const LoopHooks<Real>& hooks);

}  // namespace gradwire
