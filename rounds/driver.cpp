#include "rounds/driver.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "algorithms/core/many_replies.h"
#include "algorithms/core/sampling.h"

namespace gradwire {
template <class Real>
void add_bits(std::span<const Payload<Real>> parts, double receivers, double& wire, double& paper) {
  double wire_sum = 0, paper_sum = 0;
  for (const Payload<Real>& part : parts) {
    wire_sum += wire_bits(part);
    paper_sum += paper_bits(part);
  }
  wire += wire_sum * receivers;
  paper += paper_sum * receivers;
}
template void add_bits(std::span<const Payload<float>>, double, double&, double&);
template void add_bits(std::span<const Payload<double>>, double, double&, double&);

std::optional<Outcome> end_at(const RoundRecord& row, const Plateau& plateau, const RoundLimits& limits) {
  const bool has_small_gradient =
      limits.stop_at_grad_norm_sq > 0 && row.grad_norm_sq && *row.grad_norm_sq <= limits.stop_at_grad_norm_sq;
  const bool has_small_loss = limits.stop_at_loss && row.loss <= *limits.stop_at_loss;
  const bool is_accurate =
      limits.stop_at_accuracy > 0 && row.accuracy && *row.accuracy >= limits.stop_at_accuracy;
  if (has_small_gradient || has_small_loss || is_accurate) return Outcome::kReachedTarget;
  if (limits.patience > 0 && plateau.evaluations >= limits.patience) return Outcome::kStalled;
  return std::nullopt;
}

template <class Real>
Driver<Real>::Driver(const RunOf<Real>& run)
    : run_(run),
      totals_(run.progress.totals),
      tracker_(run.server, run.run_context, run.transport, run.progress, run.hooks.on_note, run.limits.norm),
      plateau_(run.limits.plateau) {
  run_.progress.committed.resize(run_.run_context.n, 0);
  if (const double share = run_.limits.evaluated_share; share < 1)
    sample_cohort(run_.run_context.seed, 0, run_.run_context.n, share, evaluated_, RngDomain::kEvaluation);
}

template <class Real>
Outcome Driver<Real>::run() {
  Outcome outcome = Outcome::kFinished;
  try {
    outcome = rounds();
  } catch (const RoundAbandoned&) {
    totals_ = committed_totals_;
    outcome = Outcome::kStopped;
  }
  if (outcome == Outcome::kStopped && run_.limits.keep_clients) {
    pause(/*stopped=*/true);
    return outcome;
  }
  if (run_.hooks.on_over) run_.hooks.on_over(outcome);
  tracker_.shutdown();
  return outcome;
}

template <class Real>
Outcome Driver<Real>::rounds() {
  const RoundLimits& limits = run_.limits;
  for (std::uint32_t k = run_.progress.round;; k = run_.progress.round) {
    committed_totals_ = totals_;
    const bool last = k >= limits.rounds || stopped();
    if (limits.evaluate_every > 0 && (last || k % limits.evaluate_every == 0))
      if (!evaluate(k, last)) return Outcome::kDiverged;
    if (last) {  // do not count its bytes: a resumed run makes this row again
      totals_.evaluation_bytes_up = committed_totals_.evaluation_bytes_up;
      totals_.evaluation_bytes_down = committed_totals_.evaluation_bytes_down;
    }
    if (ended_) return *ended_;
    if (last) return k < limits.rounds ? Outcome::kStopped : Outcome::kFinished;
    if (!step(k)) return Outcome::kDiverged;
    pause(/*stopped=*/false);
  }
}

template <class Real>
void Driver<Real>::pause(bool stopped) {
  if (run_.hooks.between_rounds) run_.hooks.between_rounds([this] { return save_work(); }, stopped);
}

template <class Real>
std::size_t Driver<Real>::quorum_of(std::size_t size) const {
  return std::clamp<std::size_t>(ceil_share(run_.limits.quorum, size), 1, size);
}

template <class Real>
void Driver<Real>::commit(Replies<Real> replies, std::span<const Frame> frames) {
  const auto at_once = std::exchange(at_once_, {});
  ReplyCounts counts = at_once.replies.empty() ? counts_of(replies, run_.traits) : at_once.counts;
  if (!at_once.others.empty())
    for (const UplinkView<Real>& up : replies)
      if (std::ranges::binary_search(at_once.others, up.client))
        counts.add(counts_of(up.parts, up.grad_calls, run_.traits));
  totals_.bits_up += counts.bits_up;
  totals_.bits_up_paper += counts.bits_up_paper;
  totals_.grad_calls += counts.grad_calls;
  run_.transport.settle();
  if (run_.hooks.before_apply) run_.hooks.before_apply();
  const bool used = run_.server.apply(replies);
  if (used) commit_requests(replies);
  totals_.replies = static_cast<std::uint32_t>(replies.size());
  if (run_.hooks.seconds) totals_.seconds = run_.hooks.seconds();
  run_.progress.round += 1;
  if (run_.hooks.on_commit) run_.hooks.on_commit({run_.progress, replies, used, frames});
  if (run_.hooks.on_round) run_.hooks.on_round(run_.progress.round);
}

template <class Real>
void Driver<Real>::commit_requests(Replies<Real> replies) {
  const auto commit_some = [&](Replies<Real> some) {
    for (const auto& up : some) run_.progress.committed[up.client] = up.request_id;
  };
  if (!run_.run_context.items || replies.size() < kManyReplies) return commit_some(replies);
  constexpr std::size_t kTogether = 8192;
  run_.run_context.items(
      (replies.size() + kTogether - 1) / kTogether, [&](std::size_t first, std::size_t end) {
        const std::size_t begin = first * kTogether;
        commit_some(replies.subspan(begin, std::min((end - first) * kTogether, replies.size() - begin)));
      });
}

template <class Real>
Measured Driver<Real>::measured(std::uint32_t k, bool last) const {
  const GradNormRows rows = run_.limits.grad_norm;
  const bool gradient =
      rows == GradNormRows::kEvery || (rows == GradNormRows::kFirstAndLast && (k == 0 || last));
  return {gradient ? RequestKind::kEvaluate : RequestKind::kMeasure, evaluated_,
          run_.hooks.on_clients != nullptr};
}

template <class Real>
bool Driver<Real>::evaluate_now(std::uint32_t k, bool last) {
  const double begun = wall_seconds();
  Evaluation<Real> evaluation(run_.run_context, measured(k, last));
  if (run_.hooks.evaluate) {
    run_.hooks.evaluate(run_.server.model(), evaluation);
  } else if (!ask_for_evaluation(evaluation, k)) {
    return false;
  }
  evaluation.finish();
  if (run_.hooks.evaluate) {
    if (evaluation.answered() < quorum_of(evaluation.asked())) return false;
    if (run_.hooks.evaluation_bytes) {
      Downlink<Real> body;
      body.parts = {Payload<Real>::dense(run_.server.model())};
      const EvaluationBytes each = run_.hooks.evaluation_bytes(body, evaluation.kind());
      totals_.evaluation_bytes_down += each.request * evaluation.asked();
      totals_.evaluation_bytes_up += each.answer * evaluation.answered() + each.counts * evaluation.testers();
    }
  }
  totals_.evaluation_seconds += wall_seconds() - begun;
  return record(k, evaluation, totals_, seconds());
}

// Sends the requests of an evaluation, and adds the answers. Returns false if too few answers are finite.
template <class Real>
bool Driver<Real>::ask_for_evaluation(Evaluation<Real>& evaluation, std::uint32_t k) {
  Downlink<Real> body;
  body.round = k;
  body.parts = {Payload<Real>::dense(run_.server.model())};
  const RunTotals before = totals_;
  for (ClientId next = 0; next < run_.run_context.n;) {
    next = evaluation.next_window(next, asked_);
    if (asked_.empty()) continue;
    if (!collect(evaluation.kind(), body, quorum_of(asked_.size()), k)) return false;
    for (std::size_t i = 0; i < asked_.size(); ++i)
      if (have_[i]) evaluation.add(slots_[i]);
  }
  const std::uint64_t up = totals_.bytes_up - before.bytes_up, down = totals_.bytes_down - before.bytes_down;
  totals_ = before;  // bytes of evaluations are counted apart
  totals_.evaluation_bytes_up += up;
  totals_.evaluation_bytes_down += down;
  return true;
}

template <class Real>
bool Driver<Real>::record(std::uint32_t k, const Evaluation<Real>& evaluation, const RunTotals& totals,
                          double seconds) {
  const RoundRecord row = record_of(k, evaluation, totals, run_.run_context.n, seconds);
  if (run_.hooks.on_record) run_.hooks.on_record(row);
  if (run_.hooks.on_clients) run_.hooks.on_clients(k, evaluation.answers());
  const RoundLimits& limits = run_.limits;
  if (k % limits.evaluate_every == 0) plateau_.see(row.loss);  // not for an extra row after a stop
  ended_ = end_at(row, plateau_, limits);
  if (run_.hooks.is_enough && run_.hooks.is_enough(row) && !ended_) ended_ = Outcome::kReachedTarget;
  if (limits.stop_at_accuracy > 0 && !row.accuracy && !std::exchange(misses_accuracy_, true))
    note(LogLine::warning(
        "run.stop_at_accuracy has no effect: no client has test samples that it classifies"));
  return std::isfinite(row.loss) && std::isfinite(row.grad_norm_sq.value_or(0));
}

template <class Real>
void Driver<Real>::see_delay(ClientId client, std::uint32_t steps) {
  if (!run_.limits.max_delay || steps <= *run_.limits.max_delay || std::exchange(has_long_delay_, true))
    return;
  note(LogLine::warning("a gradient is " + std::to_string(steps) +
                        " steps old; the step size's theorem allows algorithm.max_delay = " +
                        std::to_string(*run_.limits.max_delay) + ", so it does not cover this run")
           .of_client(client));
}

template <class Real>
bool Driver<Real>::collect(RequestKind kind, const Downlink<Real>& body, std::size_t quorum,
                           std::uint32_t k) {
  using Kind = typename RequestTracker<Real>::Kind;
  // `lost` may be too large: a client may send a usable answer after an unusable one.
  std::size_t got = ask_all(kind, body), lost = 0;
  RetryPolicy retry = new_retry_policy();
  StallReports stalls = new_stall_reports();
  while (got < quorum) {
    if (stop_seen_) leave_if_hopeless(quorum - got, missing_clients(), "round " + std::to_string(k));
    const double until = wait_until(std::min(retry.deadline(), stalls.next()));
    const auto arrival = tracker_.next(until);
    switch (arrival.kind) {
      case Kind::kStopped: stop(); break;
      case Kind::kAgain: tracker_.repeat(arrival.event.up.client, body); break;
      case Kind::kDeadline:
        if (stalls.next() <= until) report_stall(k, retry, stalls, quorum - got, missing_clients());
        if (retry.deadline() <= until) ask_missing(body, k, retry, got, quorum);
        break;
      case Kind::kUnusable:
        if (asked_.size() - ++lost < quorum && !can_reach(quorum)) return false;
        break;
      case Kind::kReply: got += keep(arrival.event); break;
    }
  }
  end_stall(k, stalls);
  return true;
}

template <class Real>
double Driver<Real>::wait_until(double deadline) const {
  constexpr double kCheckSeconds = 1;  // a client may leave while the run stops
  const bool checks = stop_seen_ && run_.hooks.is_connected;
  return checks ? std::min(deadline, run_.transport.now() + kCheckSeconds) : deadline;
}

template <class Real>
void Driver<Real>::leave_if_hopeless(std::size_t needed, const std::vector<ClientId>& missing,
                                     const std::string& state) {
  if (!stop_seen_ || !run_.hooks.is_connected) return;
  std::vector<ClientId> away;
  for (const ClientId client : missing)
    if (!run_.hooks.is_connected(client)) away.push_back(client);
  if (missing.size() - away.size() >= needed) return;
  note(state + ": clients " + name_some(away) +
       " are not connected; stopping without them; this round starts again when the run resumes");
  throw RoundAbandoned();
}

template <class Real>
std::vector<ClientId> Driver<Real>::missing_clients() const {
  std::vector<ClientId> missing;
  for (const ClientId c : asked_)
    if (tracker_.owes(c)) missing.push_back(c);
  return missing;
}

template <class Real>
StallReports Driver<Real>::new_stall_reports() const {
  const bool wanted = run_.hooks.on_stall != nullptr;
  return StallReports(run_.limits, wanted ? run_.transport.now() : 0, wanted);
}

template <class Real>
void Driver<Real>::report_stall(std::uint32_t k, const RetryPolicy& retry, StallReports& stalls,
                                std::size_t needed, const std::vector<ClientId>& missing) const {
  if (!run_.hooks.on_stall) return;
  const double now = run_.transport.now();
  StalledRound stall{k, retry.waited(now), std::max(0.0, retry.gives_up_at() - now), needed, missing};
  stall.past_deadline = stall.waited_seconds >= run_.limits.deadline_seconds;
  run_.hooks.on_stall(stall);
  stalls.reported(now);
}

template <class Real>
void Driver<Real>::end_stall(std::uint32_t k, const StallReports& stalls) const {
  if (!stalls.has_reported()) return;
  StalledRound over;
  over.round = k;
  run_.hooks.on_stall(over);
}

// Sends the requests. Returns the number of answers that a batch brought at once.
template <class Real>
std::size_t Driver<Real>::ask_all(RequestKind kind, const Downlink<Real>& body) {
  tracker_.close();
  const std::uint64_t request_id = tracker_.new_request_id();
  at_once_ = {};
  std::optional<typename RequestTracker<Real>::BatchReplies> answers;
  if (kind == RequestKind::kRound) answers = tracker_.ask_at_once(asked_, request_id, body);
  if (answers) {
    at_once_ = *answers;
    if (answers->others.empty()) return asked_.size();
    slots_.assign(answers->replies.begin(), answers->replies.end());
  } else {
    slots_.resize(asked_.size());
  }
  frames_.assign(asked_.size(), {});
  empty_parts_.clear();
  have_.assign(asked_.size(), answers ? 1 : 0);
  const std::span<const ClientId> unanswered = answers ? answers->others : asked_;
  for (const ClientId c : unanswered) have_[place(c)] = 0;
  for (const ClientId c : unanswered) tracker_.ask(c, kind, request_id, body);
  return asked_.size() - unanswered.size();
}

template <class Real>
bool Driver<Real>::can_reach(std::size_t quorum) const {
  const auto lost = std::count_if(asked_.begin(), asked_.end(),
                                  [this](ClientId c) { return tracker_.has_no_usable_answer(c); });
  return asked_.size() - static_cast<std::size_t>(lost) >= quorum;
}

// Stores the answers of the event, and returns their number. A sum becomes the answer of its first client;
// the others get empty parts.
template <class Real>
std::size_t Driver<Real>::keep(const Event<Real>& event) {
  const std::size_t first = place(event.up.client);
  slots_[first] = event.up;
  frames_[first] = event.frame;
  have_[first] = 1;
  if (event.covers.size() > 1) empty_parts_.push_back(nothing_like<Real>(event.up.parts));
  for (const ClientId client : event.covers) {
    if (client == event.up.client) continue;
    UplinkView<Real>& slot = slots_[place(client)];
    slot = {event.up, empty_parts_.back()};
    slot.client = client;
    slot.loss = 0;
    slot.grad_calls = 0;
    frames_[place(client)] = {};
    have_[place(client)] = 1;
  }
  return std::max<std::size_t>(1, event.covers.size());
}

// REQUIRES: `client` is in asked_.
template <class Real>
std::size_t Driver<Real>::place(ClientId client) const {
  if (asked_.size() == run_.run_context.n) return client;
  return static_cast<std::size_t>(std::lower_bound(asked_.begin(), asked_.end(), client) - asked_.begin());
}

template <class Real>
void Driver<Real>::ask_missing(const Downlink<Real>& body, std::uint32_t k, RetryPolicy& retry,
                               std::size_t got, std::size_t quorum) {
  const std::vector<ClientId> missing = missing_clients();
  const std::string state = "round " + std::to_string(k) + ": " + std::to_string(got) + " of " +
                            std::to_string(quorum) + " needed replies; waiting for clients " +
                            name_some(missing);
  if (stop_seen_) {  // not hooks.stop, which is for simulations: their deadlines take no time
    note(state + "; stopping without them; this round starts again when the run resumes");
    throw RoundAbandoned();
  }
  const double now = run_.transport.now();
  if (!retry.next_attempt(now))
    throw std::runtime_error(
        state + " " + retry.so_far(now) + "; " +
        RetryPolicy::advice(now, run_.hooks.is_connected ? "start the missing clients, or lower server.quorum"
                                                         : "lower the shares in [faults], or server.quorum"));
  if (!run_.hooks.on_stall) note(state + "; asking them again");
  for (const ClientId c : missing) tracker_.repeat(c, body);
}

template class Driver<float>;
template class Driver<double>;

}  // namespace gradwire
