// Runs a federation from the first round to the last. Simulations, TCP servers and MPI runs differ only in
// the Transport.
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

// The rows of the metrics that contain ||grad f||^2.
enum class GradNormRows : std::uint8_t { kEvery, kFirstAndLast, kNone };

// The number of evaluations since the loss had its last new minimum.
struct Plateau {
  double best = std::numeric_limits<double>::infinity();  // loss
  std::uint32_t evaluations = 0;                          // since `best` was reached

  void see(double loss) {
    evaluations = loss < best ? 0 : evaluations + 1;
    best = std::min(best, loss);
  }
};

struct RoundLimits {
  std::uint32_t rounds = 0;
  double quorum = 1;                 // share of the cohort whose replies end a round
  double over_selection = 0;         // extra clients asked, as a share of the cohort
  double deadline_seconds = 60;      // after this time, missing clients are asked again
  std::uint32_t attempts = 10;       // number of deadlines without a quorum after which the run gives up
  double first_wait_seconds = 0;     // least time to wait for replies to this process's first request
  std::uint32_t evaluate_every = 1;  // 0 means never
  GradNormRows grad_norm = GradNormRows::kEvery;
  double evaluated_share = 1;       // share of clients that evaluations ask; the same clients in every row
  double stop_at_grad_norm_sq = 0;  // 0 means never
  std::optional<double> stop_at_loss;
  double stop_at_accuracy = 0;  // 0 means never
  // Evaluations without a new minimum of the loss before the run stops; 0 means no limit.
  std::uint32_t patience = 0;
  Plateau plateau;  // after the rows before this process's first round
  // The largest age of a gradient, in steps, that the theorem of the step size allows. The run warns of the
  // first older gradient. Empty means no bound.
  std::optional<std::uint32_t> max_delay;
  NormLimit norm;             // limit on replies
  bool keep_clients = false;  // a stopped run will be resumed, so do not shut the clients down
};

// Row k of the metrics, at x^k. Values are cumulative unless the name says "per round"
// (docs/reference/results.md).
struct RoundRecord {
  std::uint32_t round = 0;
  double loss = 0;
  std::optional<double> grad_norm_sq, accuracy;
  double bits_up = 0, bits_down = 0;              // average per client, by the wire definition
  double bits_up_paper = 0, bits_down_paper = 0;  // the same as papers count
  std::uint64_t bytes_up = 0, bytes_down = 0;
  double grad_calls = 0;      // per-sample gradients / n
  std::uint32_t replies = 0;  // used in the round that led to x^k
  double seconds = 0;
  // Time on the virtual clock, equal to `seconds`. Empty on a wall clock.
  std::optional<double> sim_seconds;
  std::optional<double> lyapunov, lyapunov_bound;                    // set in a run with run.monitor
  std::uint64_t evaluation_bytes_up = 0, evaluation_bytes_down = 0;  // in all evaluations, including this one
};

// The way in which a run ended. kDiverged: a quorum of finite answers was no longer possible, or the loss or
// gradient was not finite. kStalled: RoundLimits::patience has run out. Journals store these numbers.
enum class Outcome : std::uint8_t { kFinished, kReachedTarget, kStopped, kDiverged, kStalled };

// A round that the server algorithm has applied, but of which no client has been told yet.
template <class Real>
struct RoundCommit {
  const RunProgress& progress;         // after the round
  Replies<Real> replies;               // that the algorithm got, ascending clients
  bool used = false;                   // returned by apply()
  std::span<const Frame> frames = {};  // frames of the replies, if the transport has them
};

template <class Real>
class Evaluation;

// The answer of one client to an evaluation.
struct ClientEvaluation {
  double loss = 0;
  std::uint64_t correct = 0, tested = 0;  // test samples
  bool answered = false;                  // false if it was not asked, or gave no finite answer
};

// Encoded sizes of an evaluation, for each client that is asked.
struct EvaluationBytes {
  std::uint64_t request = 0, answer = 0;
  std::uint64_t counts = 0;  // extra bytes in the answer of a client with test samples
};

// A round that waits for replies.
struct StalledRound {
  std::uint32_t round = 0;
  double waited_seconds = 0, left_seconds = 0;  // since its requests; until the run gives up
  std::size_t needed = 0;                       // replies that it still needs; 0 once the wait is over
  std::span<const ClientId> missing = {};       // the clients that have not replied, ascending
  bool past_deadline = false;                   // they have been asked again
};

template <class Real>
struct LoopHooks {
  std::function<void(const RoundRecord&)> on_record;  // evaluated rounds
  // Called after on_record. The run ends at this row, with kReachedTarget, if it returns true.
  std::function<bool(const RoundRecord&)> is_enough;
  // Gets the answers of all clients, shape (n), after on_record. If empty, answers are not kept.
  std::function<void(std::uint32_t round, std::span<const ClientEvaluation>)> on_clients;
  // Called before each change of the algorithm. Between on_commit and the next call, the algorithm is only
  // read.
  std::function<void()> before_apply;
  // Makes the round durable. Called after the algorithm applied the round and before any client is told.
  // Throws if this fails.
  std::function<void(const RoundCommit<Real>&)> on_commit;
  std::function<void(std::uint32_t round)> on_round;  // after every round
  // Called after the last round, before any client is told to shut down.
  std::function<void(Outcome)> on_over;
  // Called at growing intervals while a round waits, and once more after the wait. If it is empty, as in
  // simulations, the log gets a line after each deadline.
  std::function<void(const StalledRound&)> on_stall;
  // Returns whether a client is connected. A stopping run does not wait for those that are not. If it is
  // empty, as in simulations, all are.
  std::function<bool(ClientId)> is_connected;
  Log on_note;  // gets log lines, such as clients that are missing or were resynchronized
  // Returns the time of the run for the records, wall or virtual, including the time of earlier processes. If
  // empty, no time is recorded.
  std::function<double()> seconds;
  // Returns the wall time, which measures evaluations. If empty, evaluations are not measured.
  std::function<double()> wall_seconds;
  // Evaluates in this process, if it has all data: adds the finite answers at x of the clients that the
  // evaluation asks(). Runs while the clients work. If empty, requests are sent to the clients.
  std::function<void(View<Real> x, Evaluation<Real>& to)> evaluate;
  // Returns the bytes that the messages of an evaluation would take if `evaluate` were empty. If this is
  // empty, they are not counted.
  std::function<EvaluationBytes(const Downlink<Real>& body, RequestKind kind)> evaluation_bytes;
  const std::atomic<bool>* stop = nullptr;  // if not null and true, the run finishes the round and stops
  // Called between two rounds, so that a run whose clients live in this process can take a snapshot. If a run
  // that keeps its clients is stopped, it is called once more, with `stopped`. `save_work` returns the
  // driver's work in progress.
  std::function<void(const std::function<std::string()>& save_work, bool stopped)> between_rounds;
  // The result of `save_work` in the process that this run resumes. Empty if no work is in progress.
  std::string work;
};

// Runs rounds from progress.round until a limit is reached. Throws std::runtime_error (one line) if a round
// cannot be completed: all attempts ended without a quorum, or a client lost state that the server cannot
// restore.
template <class Real>
Outcome run_rounds(ServerAlgorithm<Real>& server, const AlgorithmTraits& traits,
                   const RunContext<Real>& run_context, Transport<Real>& transport, RunProgress& progress,
                   const RoundLimits& limits, const LoopHooks<Real>& hooks);

}  // namespace gradwire
