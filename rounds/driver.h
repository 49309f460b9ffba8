// What the drivers of a run share: rounds, evaluations, commits. A driver decides whom to ask, and when the
// algorithm takes in the replies; the RequestTracker does the asking.
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

// All that a driver is given.
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

// Returns how the run ends at this row, or nullopt if it continues. `lull` includes the row.
std::optional<Outcome> end_at(const RoundRecord& row, const Lull& lull, const RoundLimits& limits);

// Adds the bits of a message to both counts: by the wire definition, and as papers count.
template <class Real>
void add_bits(std::span<const Payload<Real>> parts, double receivers, double& wire, double& paper);

template <class Real>
class Driver {
 public:
  explicit Driver(const RunOf<Real>& run);
  virtual ~Driver() = default;
  Outcome run();

 protected:
  // From x^k to x^{k+1}; false: too many answers were not finite.
  virtual bool step(std::uint32_t k) = 0;
  // Makes row k of the metrics, now or later; false: the loss or the gradient is not finite, or too many
  // answers are not. `last`: no step follows.
  virtual bool evaluate(std::uint32_t k, bool last) = 0;
  // Returns what must survive of the work in progress between two rounds; LoopHooks::work brings it back.
  virtual std::string save_work() const { return {}; }

  // Row k, now: of the answers of clients at x^k.
  bool evaluate_now(std::uint32_t k, bool last);
  // What row k measures, and of whom.
  Measured measured(std::uint32_t k, bool last) const;
  // Hands out row k; false: it is not finite.
  bool record(std::uint32_t k, const Evaluation<Real>& evaluation, const Totals& totals, double seconds);
  double seconds() const { return run_.hooks.seconds ? run_.hooks.seconds() : totals_.seconds; }
  double wall_seconds() const { return run_.hooks.wall_seconds ? run_.hooks.wall_seconds() : 0; }

  // Asks asked_ (ascending) for `kind` and waits for `quorum` answers, which land in slots_, frames_ and
  // have_ by place in asked_, or, where all answered a round at once, in at_once_ alone. A client whose
  // answer is not finite counts as missing. False: the others are too few.
  bool collect(RequestKind kind, const Downlink<Real>& body, std::size_t quorum, std::uint32_t k);
  // The algorithm takes in the replies (ascending clients), and they are durable before anybody is told.
  void commit(Replies<Real> replies, std::span<const Frame> frames);
  // How long to wait for what is asked now.
  RetryPolicy new_retry_policy() {
    return RetryPolicy(run_.limits, run_.transport.now(), std::exchange(is_first_, false));
  }
  // How many of `size` clients are enough.
  std::size_t quorum_of(std::size_t size) const;

  // Warns of the first gradient that is older than the theorem allows for.
  void see_delay(ClientId client, std::uint32_t steps);

  bool is_stopping() const { return stop_seen_; }
  void stop() { stop_seen_ = true; }
  void note(LogLine line) const {
    if (run_.hooks.on_note) run_.hooks.on_note(std::move(line).in_round(run_.progress.round));
  }

  // The operator asked to stop, and clients that are needed to finish the round do not answer.
  struct RoundAbandoned {};

  const RunOf<Real> run_;
  Totals& totals_;
  RequestTracker<Real> tracker_;
  std::vector<ClientId> asked_;
  std::vector<UplinkView<Real>> slots_;
  std::vector<Frame> frames_;
  std::vector<char> have_;
  typename RequestTracker<Real>::BatchReplies at_once_;  // that are not committed; empty: none came at once

 private:
  Outcome rounds();
  void pause(bool stopped);
  bool stopped() const { return stop_seen_ || (run_.hooks.stop != nullptr && run_.hooks.stop->load()); }
  bool can_reach(std::size_t quorum) const;
  std::size_t keep(const Event<Real>& event);
  std::size_t ask_all(RequestKind kind, const Downlink<Real>& body);
  std::size_t place(ClientId client) const;
  bool ask_for_evaluation(Evaluation<Real>& evaluation, std::uint32_t k);
  void ask_missing(const Downlink<Real>& body, std::uint32_t k, RetryPolicy& retry, std::size_t got,
                   std::size_t quorum);

  std::deque<Parts<Real>> empty_parts_;  // of clients whose vectors are in a sum
  bool stop_seen_ = false;
  bool is_first_ = true;  // the next request is the first of this process
  Lull lull_;
  std::optional<Outcome> ended_;  // by the last row
  bool has_long_delay_ = false;
  bool misses_accuracy_ = false;     // a row that should have it does not
  std::vector<ClientId> evaluated_;  // the sample of clients that evaluations ask; empty: all
  Totals committed_totals_;          // of the rounds before the one in progress
};

// One request id for a whole cohort; the algorithm takes in all replies of a round at once, ascending
// clients.
template <class Real>
Outcome run_synchronous(const RunOf<Real>& run);
// A request id for each client; the algorithm takes in each reply as it comes, and its client is given x at
// once.
template <class Real>
Outcome run_asynchronous(const RunOf<Real>& run);

}  // namespace gradwire
