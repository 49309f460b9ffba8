// The asynchronous driver: every client works under its own request id, and the algorithm gets each reply as
// it arrives. One reply counts as a round. A computation that is cut also counts as a round, with an empty
// reply.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/serialize.h"
#include "rounds/client_queue.h"
#include "rounds/client_times.h"
#include "rounds/driver.h"

namespace gradwire {
namespace {

template <class Real>
class AsyncDriver final : public Driver<Real> {
 public:
  using Driver<Real>::Driver;
  ~AsyncDriver() override {
    if (row_) end_row();
  }

 private:
  using Kind = typename RequestTracker<Real>::Kind;
  static constexpr double kNever = ClientTimes::kNever;
  using Driver<Real>::run_, Driver<Real>::totals_, Driver<Real>::tracker_;

  // Takes one reply, and gives new work to the clients that need it.
  bool step(std::uint32_t k) override {
    if (!begun_) begin();
    RetryPolicy retry = this->new_retry_policy();
    StallReports stalls = this->new_stall_reports();
    const bool usable = take_reply(k, retry, stalls);
    this->end_stall(k, stalls);
    return usable;
  }

  bool take_reply(std::uint32_t k, RetryPolicy& retry, StallReports& stalls) {
    for (;;) {
      if (this->is_stopping() && next_cut() == kNever)
        this->leave_if_hopeless(1, missing_workers(), "step " + std::to_string(k));
      const double until = this->wait_until(std::min({retry.deadline(), next_cut(), stalls.next()}));
      const auto arrival = tracker_.next(until);
      const ClientId client = arrival.event.up.client;
      if (arrival.kind != Kind::kDeadline)
        older_used_ = 0;  // the transport is done with the bodies, but not with the vectors they view
      switch (arrival.kind) {
        case Kind::kStopped: this->stop(); break;
        case Kind::kAgain: ask_again(client); break;
        case Kind::kDeadline:
          if (const double at = next_cut(); at <= until && at != kNever) {
            cut(cuts_.top().client);
            return true;
          }
          if (stalls.next() <= until) this->report_stall(k, retry, stalls, 1, missing_workers());
          if (retry.deadline() <= until) after_silence(k, retry);
          break;
        case Kind::kUnusable:
          if (!unusable(client)) return false;
          break;
        case Kind::kReply:
          misses_[client] = 0;
          if (is_evaluation(tracker_.kind_of(client))) {
            if (!row_answered(arrival.event)) return false;
            give_task_or_rest(client);
            break;
          }
          failures_[client] = 0;
          take_in(arrival.event.up, std::span(&arrival.event.frame, 1));
          return true;
      }
    }
  }

  void take_in(const UplinkView<Real>& up, std::span<const Frame> frames) {
    const ClientId client = up.client;
    working_.remove(client);
    cut_at_[client] = kNever;
    this->see_delay(client, body_.round - up.round);
    this->commit(std::span(&up, 1), frames);
    if (run_.progress.round == run_.limits.rounds) return;
    const std::uint32_t before = std::exchange(body_, run_.server.broadcast()).round;
    woken_.assign(1, client);
    if (body_.round != before) {
      woken_.insert(woken_.end(), resting_.begin(), resting_.end());
      resting_.clear();
      std::sort(woken_.begin(), woken_.end());
    }
    for (const ClientId c : woken_) give_task_or_rest(c);
    stop_superseded();
    see_to_late();
  }

  void begin() {
    begun_ = true;
    body_ = run_.server.broadcast();
    failures_.assign(run_.run_context.n, 0);
    misses_.assign(run_.run_context.n, 0);
    due_.reset(run_.run_context.n);
    cuts_.reset(run_.run_context.n);
    given_.assign(run_.run_context.n, 0);
    cut_at_.assign(run_.run_context.n, kNever);
    working_.reset(run_.run_context.n);
    nothing_ = Payload<Real>::nothing(run_.run_context.d);
    run_.server.cohort(workers_);
    if (!run_.hooks.work.empty()) {
      if (!load_work(run_.hooks.work)) throw std::runtime_error("the saved work does not fit the run");
      return;
    }
    for (const ClientId client : workers_) {
      if (run_.server.rests(client)) {
        resting_.push_back(client);
      } else {
        give_work(client);
      }
    }
  }

  // ---- work in progress, between two rounds ----

  std::string save_work() const override {
    if (!begun_) return run_.hooks.work;
    if (row_) throw std::logic_error("the answers to an evaluation in progress cannot be saved");
    Saver saver;
    tracker_.save_work(saver);
    saver(failures_), saver(misses_), saver(given_), saver(cut_at_);
    saver(resting_), saver(working_.clients()), saver(due_.times()), saver(cuts_.times());
    return saver.take();
  }
  bool load_work(std::string_view bytes) {
    Loader loader(bytes);
    std::vector<ClientId> working;
    std::vector<double> due, cuts;
    if (!tracker_.load_work(loader)) return false;
    loader(failures_), loader(misses_), loader(given_), loader(cut_at_);
    loader(resting_), loader(working), loader(due), loader(cuts);
    const std::uint32_t n = run_.run_context.n;
    const auto is_client = [n](ClientId c) { return c < n; };
    if (!loader.done() || failures_.size() != n || misses_.size() != n || given_.size() != n ||
        cut_at_.size() != n || due.size() != n || cuts.size() != n ||
        !std::ranges::all_of(resting_, is_client) || !std::ranges::all_of(working, is_client))
      return false;
    for (const ClientId c : working) working_.to_back(c);
    due_.set_times(due);
    cuts_.set_times(cuts);
    return true;
  }

  // ---- work ----

  // Returns the work of a client. The body stays unchanged until tracker_.next() returns.
  const Downlink<Real>& work_of(ClientId client) {
    const Downlink<Real> work = run_.server.work(client);
    if (work.round == body_.round) return body_;
    if (older_used_ == older_.size()) older_.push_back(std::make_unique<Downlink<Real>>());
    Downlink<Real>& older = *older_[older_used_++];
    older = work;
    return older;
  }

  void give_work(ClientId client) {
    const Downlink<Real>& work = work_of(client);
    add_bits<Real>(work.parts, 1, totals_.bits_down, totals_.bits_down_paper);
    const std::uint64_t request_id = tracker_.new_request_id();
    tracker_.ask(client, RequestKind::kRound, request_id, work);
    remember(client);
    allot(client);
  }
  void give_task_or_rest(ClientId client) {
    if (run_.server.rests(client)) {
      resting_.push_back(client);
    } else {
      give_task(client);
    }
  }
  void remember(ClientId client) {
    if (tracker_.kind_of(client) == RequestKind::kRound) {
      working_.to_back(client);
    } else {
      working_.remove(client);
    }
    given_[client] = run_.transport.now();
    watch(client);
  }

  // ---- computations that are cut ----

  // Sets the time at which the client's work is cut. The queue has each client once, at this time or earlier.
  void allot(ClientId client) {
    const double seconds = run_.server.allotted_seconds(client);
    cut_at_[client] = seconds == kNever ? kNever : run_.transport.now() + seconds;
    if (cut_at_[client] != kNever && !cuts_.has(client)) cuts_.push(cut_at_[client], client);
  }
  // Returns the time of the next cut, or kNever if there is none. The client is then on top of cuts_.
  double next_cut() {
    while (!cuts_.empty()) {
      const auto top = cuts_.top();
      if (top.at == cut_at_[top.client]) return top.at;
      cuts_.pop();
      if (cut_at_[top.client] != kNever) cuts_.push(cut_at_[top.client], top.client);
    }
    return kNever;
  }
  // Ends the work of a client that has used up its time. It counts as an empty reply, and a reply that still
  // arrives is late.
  void cut(ClientId client) {
    UplinkView<Real> up;
    up.request_id = tracker_.request_id(client);
    up.round = tracker_.round(client);
    up.client = client;
    up.parts = std::span(&nothing_, 1);
    tracker_.close(client);
    take_in(up, {});
  }

  // Asks a client again after it has reconnected or reported that it lacks state. If x has changed, the
  // request gets a new id, because a request id never goes with two bodies.
  void ask_again(ClientId client) {
    const bool evaluates = is_evaluation(tracker_.kind_of(client));
    if (evaluates && row_ && tracker_.round(client) == row_->k) {
      tracker_.repeat(client, row_->body);
      remember(client);
    } else if (evaluates || !repeat_work(client)) {
      give_task(client);
    } else {
      remember(client);
    }
  }
  // Returns false if the client has other work now.
  bool repeat_work(ClientId client) {
    const Downlink<Real>& work = work_of(client);
    if (tracker_.round(client) != work.round) return false;
    tracker_.repeat(client, work);
    return true;
  }

  // Stops superseded work. Checks the oldest work first, and stops at the first that is not superseded. So it
  // takes O(1) for each reply.
  void stop_superseded() {
    while (!working_.empty()) {
      const ClientId oldest = working_.front();
      if (!tracker_.owes(oldest)) {
        working_.remove(oldest);
        continue;
      }
      const std::uint32_t round = tracker_.round(oldest);
      if (round == body_.round || !run_.server.superseded(round)) return;
      give_task(oldest);
    }
  }

  // Returns the time after which a client that has not answered is asked again while others answer. It
  // doubles each time, so that even a slow client can answer.
  double patience_seconds(ClientId client) const {
    constexpr std::uint32_t kDoublings = 16;
    return run_.limits.deadline_seconds * std::clamp<std::uint32_t>(run_.limits.attempts / 2, 1, 5) *
           std::ldexp(1.0, static_cast<int>(std::min(misses_[client], kDoublings)));
  }
  void see_to_late() {
    const double now = run_.transport.now();
    while (!due_.empty() && due_.top().at <= now) {
      const ClientId client = due_.top().client;
      due_.pop();
      if (!tracker_.owes(client)) continue;
      if (given_[client] + patience_seconds(client) > now) {
        watch(client);
        continue;
      }
      misses_[client] += 1;
      this->note(LogLine::warning("client " + std::to_string(client) +
                                  " has not answered for a long time; asking it again")
                     .of_client(client));
      ask_again(client);
    }
  }
  // Queues a client for see_to_late(), unless it is in the queue.
  void watch(ClientId client) {
    const double at = given_[client] + patience_seconds(client);
    if (!due_.has(client) && !std::isinf(at)) due_.push(at, client);
  }

  std::vector<ClientId> missing_workers() const {
    std::vector<ClientId> missing;
    for (const ClientId c : workers_)
      if (tracker_.owes(c)) missing.push_back(c);
    return missing;
  }

  // Handles a whole deadline without any answer.
  void after_silence(std::uint32_t k, RetryPolicy& retry) {
    const std::vector<ClientId> missing = missing_workers();
    const std::string state =
        "step " + std::to_string(k) + ": no reply; waiting for clients " + name_some(missing);
    if (this->is_stopping()) {
      this->note(state + "; stopping without them");
      throw typename Driver<Real>::RoundAbandoned();
    }
    const double now = run_.transport.now();
    if (!retry.next_attempt(now))
      throw std::runtime_error(state + " " + retry.so_far(now) + "; " +
                               RetryPolicy::advice(now, "start the missing clients"));
    if (!run_.hooks.on_stall) this->note(state + "; asking them again");
    for (const ClientId c : missing) {
      const bool evaluates = is_evaluation(tracker_.kind_of(c));
      if (!evaluates) repeat_work(c);
      if (evaluates && row_ && tracker_.round(c) == row_->k) tracker_.repeat(c, row_->body);
    }
    stop_superseded();
    see_to_late();
  }

  // Handles an answer that is not usable. The client gets new work once x has changed, but only a few times.
  // Returns false if too few clients have usable answers.
  bool unusable(ClientId client) {
    constexpr std::uint32_t kMaxFailures = 3;
    if (is_evaluation(tracker_.kind_of(client))) {
      give_work(client);
      if (!row_) return true;
      const std::size_t asked = row_->evaluation.asked();
      return asked - ++row_->failed >= this->quorum_of(asked);
    }
    if (++failures_[client] < kMaxFailures && cut_at_[client] == kNever) resting_.push_back(client);
    const auto lost =
        std::count_if(failures_.begin(), failures_.end(), [](std::uint32_t f) { return f > 0; });
    return workers_.size() - static_cast<std::size_t>(lost) >= this->quorum_of(workers_.size());
  }

  // ---- evaluation ----

  // Row k of the metrics. Each client evaluates x^k after its present work, before it gets new work, so no
  // client waits and no work is stopped. Only one row is in progress at a time; it is lost if the server
  // dies.
  struct MetricsRow {
    std::uint32_t k;
    Vec<Real> x;
    Downlink<Real> body;
    Evaluation<Real> evaluation;
    RunTotals totals;
    double seconds;
    std::vector<char> asked;  // by client; also true for clients that the evaluation does not ask
    std::size_t left;         // answers still needed
    std::size_t failed = 0;   // answers that were not finite
  };

  bool evaluate(std::uint32_t k, bool last) override {
    if (!begun_ || last || run_.hooks.evaluate) return this->evaluate_now(k, last);
    if (row_) return true;
    const View<Real> x = run_.server.model();
    const Measured measured = this->measured(k, last);
    row_.emplace(MetricsRow{k,
                            Vec<Real>(x.begin(), x.end()),
                            {},
                            Evaluation<Real>(run_.run_context, measured),
                            totals_,
                            this->seconds(),
                            std::vector<char>(run_.run_context.n, 0),
                            0});
    for (ClientId client = 0; client < run_.run_context.n; ++client)
      row_->asked[client] = !row_->evaluation.asks(client);
    row_->left = this->quorum_of(row_->evaluation.asked());
    row_->body.round = k;
    row_->body.parts = {Payload<Real>::dense(row_->x)};
    return true;
  }
  void give_task(ClientId client) {
    if (!row_ || row_->asked[client]) return give_work(client);
    row_->asked[client] = 1;
    const std::uint64_t bytes_down = totals_.bytes_down;  // bytes of evaluations are counted apart
    cut_at_[client] = kNever;
    tracker_.ask(client, row_->evaluation.kind(), tracker_.new_request_id(), row_->body);
    totals_.evaluation_bytes_down += totals_.bytes_down - bytes_down;
    totals_.bytes_down = bytes_down;
    remember(client);
  }
  bool row_answered(const Event<Real>& event) {
    totals_.bytes_up -= event.bytes;
    totals_.evaluation_bytes_up += event.bytes;
    // The other clients work meanwhile, so count only this client's share of the time.
    totals_.evaluation_seconds += (run_.transport.now() - given_[event.up.client]) / run_.run_context.n;
    if (!row_ || event.up.round != row_->k) return true;  // a row that reached its quorum without this client
    row_->evaluation.add(event.up);
    if (--row_->left > 0) return true;
    row_->evaluation.finish();
    row_->totals.evaluation_bytes_up = totals_.evaluation_bytes_up;
    row_->totals.evaluation_bytes_down = totals_.evaluation_bytes_down;
    const bool is_finite = this->record(row_->k, row_->evaluation, row_->totals, row_->seconds);
    end_row();
    return is_finite;
  }
  // Ends the row. settle() comes first, because requests that slow clients have not received yet view the
  // row's x.
  void end_row() {
    run_.transport.settle();
    row_.reset();
  }

  bool begun_ = false;
  Downlink<Real> body_;                                 // the current x
  std::vector<std::unique_ptr<Downlink<Real>>> older_;  // bodies of other rounds in use ...
  std::size_t older_used_ = 0;                          // ... by this number; the rest are free
  std::vector<ClientId> workers_;
  ClientQueue working_;         // ascending rounds
  ClientTimes due_, cuts_;      // seconds, on the transport's clock
  std::vector<double> given_;   // by client: time of its last request
  std::vector<double> cut_at_;  // by client: time at which its work is cut, or kNever
  Payload<Real> nothing_;       // the empty reply of work that is cut
  // Clients that wait for a new x, because their answers were not usable or the algorithm has no work for
  // them.
  std::vector<ClientId> resting_, woken_;
  std::vector<std::uint32_t> failures_;  // by client: unusable answers in a row
  std::vector<std::uint32_t> misses_;    // by client: consecutive times it was late
  std::optional<MetricsRow> row_;        // in progress
};

}  // namespace

template <class Real>
Outcome run_asynchronous(const RunOf<Real>& run) {
  return AsyncDriver<Real>(run).run();
}
template Outcome run_asynchronous(const RunOf<float>&);
template Outcome run_asynchronous(const RunOf<double>&);

}  // namespace gradwire
