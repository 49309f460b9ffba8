// The common part of both drivers of a run: rounds, evaluations, commits. A driver decides which clients to
// ask, and when the algorithm gets their replies. The RequestTracker sends the requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rounds/evaluation.h"
#include "rounds/request_tracker.h"
#include "rounds/retry_policy.h"
#include "rounds/round_loop.h"

namespace gradwire {

// The inputs of a driver.
template <class Real>
struct RunOf {
  ServerAlgorithm<Real>& server;
  const AlgorithmTraits& traits;
  const RunContext<Real>& run_context;
  Transport<Real>& transport;
  RunProgress& progress;
  const RoundLimits& limits;
  const LoopHooks<Real>& hooks;
};

// Returns the outcome if the run ends at this row of the metrics, or nullopt if it continues. `plateau`
// includes the row.
std::optional<Outcome> end_at(const RoundRecord& row, const Plateau& plateau, const RoundLimits& limits);

// Adds the bits of a message to `receivers` clients: to `wire` by the wire definition, to `paper` as papers
// count them.
template <class Real>
void add_bits(std::span<const Payload<Real>> parts, double receivers, double& wire, double& paper);

template <class Real>
class Driver {
 public:
  explicit Driver(const RunOf<Real>& run);
  virtual ~Driver() = default;
  Outcome run();

 protected:
  // Makes the step from x^k to x^{k+1}. Returns false if too many answers were not finite.
  virtual bool step(std::uint32_t k) = 0;
  // Makes row k of the metrics, now or later. Returns false if the loss or the gradient is not finite, or if
  // too many answers are not finite. `last` means that no step follows.
  virtual bool evaluate(std::uint32_t k, bool last) = 0;
  // Returns the work in progress between two rounds, for a snapshot. A resumed run gets it back in
  // LoopHooks::work.
  virtual std::string save_work() const { return {}; }

  // Makes row k now, from the clients' answers at x^k.
  bool evaluate_now(std::uint32_t k, bool last);
  // Returns the content of row k: what it measures, and on which clients.
  Measured measured(std::uint32_t k, bool last) const;
  // Passes row k to the hooks, and checks whether the run ends there. Returns false if the row is not finite.
  bool record(std::uint32_t k, const Evaluation<Real>& evaluation, const RunTotals& totals, double seconds);
  double seconds() const { return run_.hooks.seconds ? run_.hooks.seconds() : totals_.seconds; }
  double wall_seconds() const { return run_.hooks.wall_seconds ? run_.hooks.wall_seconds() : 0; }

  // Sends a request of this kind to the clients asked_ (ascending), and waits for `quorum` answers. Stores
  // the answers in slots_, frames_ and have_, by position in asked_. If a batch brings all answers, they are
  // only in at_once_. A client without a usable answer counts as missing. Returns false if the other clients
  // are too few for a quorum.
  bool collect(RequestKind kind, const Downlink<Real>& body, std::size_t quorum, std::uint32_t k);
  // Gives the replies (ascending clients) to the algorithm, and makes the round durable.
  void commit(Replies<Real> replies, std::span<const Frame> frames);
  // Returns the retry policy of the requests that are sent now.
  RetryPolicy new_retry_policy() {
    return RetryPolicy(run_.limits, run_.transport.now(), std::exchange(is_first_, false));
  }
  // Report a wait for clients to LoopHooks::on_stall, and its end. REQUIRES: stalls.next() has come.
  StallReports new_stall_reports() const;
  void report_stall(std::uint32_t k, const RetryPolicy& retry, StallReports& stalls, std::size_t needed,
                    const std::vector<ClientId>& missing) const;
  void end_stall(std::uint32_t k, const StallReports& stalls) const;
  // Returns how many of `size` clients are enough.
  std::size_t quorum_of(std::size_t size) const;

  // Warns once, of the first gradient that is older than the theorem allows.
  void see_delay(ClientId client, std::uint32_t steps);

  // Thrown if the operator asked to stop, and clients that are needed to finish the round do not answer; or
  // if the operator asked twice.
  struct RoundAbandoned {};

  // Returns the time until which a wait may last: `deadline`, but shorter if the connections must be checked.
  double wait_until(double deadline) const;
  // Gives the round up if the run is stopping and the connected ones of the `missing` clients are fewer than
  // `needed`. `state` begins the note.
  void leave_if_hopeless(std::size_t needed, const std::vector<ClientId>& missing, const std::string& state);

  bool is_stopping() const { return stop_seen_; }
  // Stops the run after this round, or gives the round up if the operator has asked to stop before.
  void stop() {
    if (std::exchange(stop_seen_, true)) throw RoundAbandoned();
  }
  void note(LogLine line) const {
    if (run_.hooks.on_note) run_.hooks.on_note(std::move(line).in_round(run_.progress.round));
  }

  const RunOf<Real> run_;
  RunTotals& totals_;
  RequestTracker<Real> tracker_;
  std::vector<ClientId> asked_;
  std::vector<UplinkView<Real>> slots_;
  std::vector<Frame> frames_;
  std::vector<char> have_;
  // The replies of a batch that are not committed yet. Empty without a batch.
  typename RequestTracker<Real>::BatchReplies at_once_;

 private:
  Outcome rounds();
  void pause(bool stopped);
  void commit_requests(Replies<Real> replies);
  bool stopped() const { return stop_seen_ || (run_.hooks.stop != nullptr && run_.hooks.stop->load()); }
  bool can_reach(std::size_t quorum) const;
  std::size_t keep(const Event<Real>& event);
  std::size_t ask_all(RequestKind kind, const Downlink<Real>& body);
  std::size_t place(ClientId client) const;
  std::vector<ClientId> missing_clients() const;  // of asked_
  bool ask_for_evaluation(Evaluation<Real>& evaluation, std::uint32_t k);
  void ask_missing(const Downlink<Real>& body, std::uint32_t k, RetryPolicy& retry, std::size_t got,
                   std::size_t quorum);

  std::deque<Parts<Real>> empty_parts_;  // empty parts, for clients whose replies are in a sum
  bool stop_seen_ = false;
  bool is_first_ = true;  // the next request is the first of this process
  Plateau plateau_;
  std::optional<Outcome> ended_;  // set by the last row
  bool has_long_delay_ = false;
  bool misses_accuracy_ = false;     // a row that should have the accuracy lacks it
  std::vector<ClientId> evaluated_;  // the clients that evaluations ask; empty means all
  RunTotals committed_totals_;       // totals before the round in progress
};

// Runs a synchronous algorithm. All clients of a round get the same request id. The algorithm gets all
// replies of a round at once, in ascending order of clients.
template <class Real>
Outcome run_synchronous(const RunOf<Real>& run);
// Runs an asynchronous algorithm. Each client has its own request id. The algorithm gets each reply as it
// arrives, and the client then gets the new x.
template <class Real>
Outcome run_asynchronous(const RunOf<Real>& run);

}  // namespace gradwire
