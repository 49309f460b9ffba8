#include "rounds/round_loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <stdexcept>
#include <utility>

#include "algorithms/support/sampling.h"
#include "rounds/evaluation.h"
#include "rounds/waiting.h"

namespace gradwire {
namespace {

using Clock = std::chrono::steady_clock;

// Adds the bits of a message to both counts: by the wire definition, and as papers count.
template <class Real>
void add_bits(const Parts<Real>& parts, double receivers, double& wire, double& paper) {
  double wire_sum = 0, paper_sum = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    wire_sum += wire_bits(parts[part]);
    paper_sum += paper_bits(parts[part]);
  }
  wire += wire_sum * receivers;
  paper += paper_sum * receivers;
}

// The operator asked to stop, and clients that are needed to finish the round do not answer.
struct RoundAbandoned {};

template <class Real>
class Loop {
 public:
  Loop(ServerHalf<Real>& server, const Facts& facts, const Setup<Real>& setup, Transport<Real>& transport,
       Ledger& ledger, const RoundLimits& limits, const LoopHooks<Real>& hooks)
      : server_(server),
        facts_(facts),
        setup_(setup),
        transport_(transport),
        ledger_(ledger),
        limits_(limits),
        hooks_(hooks),
        started_(Clock::now()),
        seconds_before_(ledger.totals.seconds) {
    ledger_.committed.resize(setup.n, 0);
  }

  Outcome run() {
    Outcome outcome = Outcome::kFinished;
    try {
      outcome = rounds();
    } catch (const RoundAbandoned&) {
      totals_ = committed_totals_;
      outcome = Outcome::kStopped;
    }
    if (outcome == Outcome::kStopped && limits_.keep_clients) return outcome;
    if (hooks_.on_over) hooks_.on_over(outcome);
    say_goodbye();
    return outcome;
  }

 private:
  Outcome rounds() {
    for (std::uint32_t k = ledger_.round;; k = ledger_.round) {
      committed_totals_ = totals_;
      const bool last = k >= limits_.rounds || stopped();
      if (limits_.evaluate_every > 0 && (last || k % limits_.evaluate_every == 0)) {
        if (!evaluate(k)) return Outcome::kDiverged;
        if (record_.grad_norm_sq <= limits_.stop_at_grad_norm_sq && limits_.stop_at_grad_norm_sq > 0)
          return Outcome::kReachedTarget;
      }
      if (last) return k < limits_.rounds ? Outcome::kStopped : Outcome::kFinished;
      if (!round(k)) return Outcome::kDiverged;
    }
  }

  bool stopped() const { return stop_seen_ || (hooks_.stop != nullptr && hooks_.stop->load()); }
  double seconds() const {
    return seconds_before_ + std::chrono::duration<double>(Clock::now() - started_).count();
  }
  // How many of `size` clients end a round.
  std::size_t quorum_of(std::size_t size) const {
    return std::clamp<std::size_t>(ceil_share(limits_.quorum, size), 1, size);
  }
  void note(LogLine line) const {
    if (hooks_.on_note) hooks_.on_note(std::move(line).in_round(ledger_.round));
  }
  LogLine about(ClientId client, const char* what, int line = __builtin_LINE()) const {
    return LogLine("client " + std::to_string(client) + what, __FILE__, line).of_client(client);
  }

  // One round from x^k to x^{k+1}; false: too many answers were not finite.
  bool round(std::uint32_t k) {
    server_.cohort(cohort_);
    replies_.clear();
    const Downlink<Real> body = server_.broadcast();
    if (!cohort_.empty()) {
      const std::size_t needed = facts_.needs_all_replies ? cohort_.size() : quorum_of(cohort_.size());
      if (!facts_.needs_all_replies)
        add_spare_clients(setup_.seed, k, setup_.n, limits_.over_selection, cohort_);
      add_bits(body.parts, static_cast<double>(cohort_.size()), totals_.bits_down, totals_.bits_down_paper);
      if (!collect(Request::kRound, body, needed, k)) return false;
      gather_replies();
    }
    if (hooks_.before_apply) hooks_.before_apply();
    const bool used = server_.apply(replies_);
    if (used)
      for (const auto& up : replies_) ledger_.committed[up.client] = up.ticket;
    totals_.replies = static_cast<std::uint32_t>(replies_.size());
    totals_.seconds = seconds();
    ledger_.round = k + 1;
    if (hooks_.on_commit) hooks_.on_commit({ledger_, replies_, used});
    if (hooks_.on_round) hooks_.on_round(k + 1);
    return true;
  }

  void gather_replies() {
    for (std::size_t i = 0; i < cohort_.size(); ++i) {
      if (!have_[i]) continue;
      replies_.push_back(slots_[i]);
      totals_.bits_up += facts_.flag_bits_up;
      totals_.bits_up_paper += facts_.flag_bits_up;
      add_bits(slots_[i].parts, 1, totals_.bits_up, totals_.bits_up_paper);
      totals_.grad_calls += slots_[i].grad_calls;
    }
  }

  // Row k of the metrics; false: the loss or the gradient is not finite, or too many answers are not.
  bool evaluate(std::uint32_t k) {
    Downlink<Real> body;
    body.round = k;
    body.parts = {Payload<Real>::dense(server_.model())};
    Evaluation<Real> evaluation(setup_);
    const Totals before = totals_;  // evaluation is not counted
    for (ClientId next = 0; next < setup_.n;) {
      next = evaluation.next_window(next, cohort_);
      if (!collect(Request::kEvaluate, body, quorum_of(cohort_.size()), k)) return false;
      for (std::size_t i = 0; i < cohort_.size(); ++i)
        if (have_[i]) evaluation.add(slots_[i]);
    }
    totals_ = before;
    record_ = record_of(k, evaluation, totals_, setup_.n, seconds());
    if (hooks_.on_record) hooks_.on_record(record_);
    return std::isfinite(record_.loss) && std::isfinite(record_.grad_norm_sq);
  }

  std::uint64_t send(ClientId client, Request request, const Downlink<Real>& body,
                     const Downlink<Real>* resync) {
    Envelope<Real> envelope;
    envelope.request = request;
    envelope.ticket = ledger_.ticket;
    envelope.committed = ledger_.committed[client];
    envelope.body = &body;
    envelope.resync = resync;
    return transport_.send(client, envelope);
  }

  // Asks cohort_ for `request` and waits for `quorum` answers, which land in slots_/have_ by place in
  // cohort_. A client whose answer is not finite counts as missing. False: the others are too few for the
  // quorum.
  bool collect(Request request, const Downlink<Real>& body, std::size_t quorum, std::uint32_t k) {
    ++ledger_.ticket;
    slots_.resize(cohort_.size());
    have_.assign(cohort_.size(), 0);
    helped_.assign(cohort_.size(), 0);
    not_finite_.assign(cohort_.size(), 0);
    resyncs_.clear();
    for (const ClientId c : cohort_) totals_.bytes_down += send(c, request, body, nullptr);
    std::size_t got = 0;
    Waiting waiting(limits_, transport_.now(), std::exchange(is_first_, false));
    while (got < quorum) {
      // Checked here too, because events may never cease when clients come and go.
      const bool late = transport_.now() > waiting.deadline();
      const Event<Real> event = late ? Event<Real>{} : transport_.next(waiting.deadline());
      switch (event.kind) {
        case Event<Real>::Kind::kStopped: stop_seen_ = true; break;
        case Event<Real>::Kind::kLeft: note(about(event.up.client, " left")); break;
        case Event<Real>::Kind::kJoined: ask_again(event.up.client, request, body); break;
        case Event<Real>::Kind::kTimeout: ask_missing(request, body, k, waiting, got, quorum); break;
        case Event<Real>::Kind::kReply:
          if (event.up.ticket != ledger_.ticket) {
            tell(event, Receipt::kLate);
            break;
          }
          got += event.covers.empty() ? take(event, request, body) : take_sum(event, request, body);
          if (event.up.answer == Answer::kNotFinite && !can_reach(quorum)) return false;
          break;
      }
    }
    return true;
  }

  bool can_reach(std::size_t quorum) const {
    const auto lost = static_cast<std::size_t>(std::count(not_finite_.begin(), not_finite_.end(), 1));
    return cohort_.size() - lost >= quorum;
  }

  // Place of `client` in cohort_, or cohort_.size().
  std::size_t place(ClientId client) const {
    if (cohort_.size() == setup_.n) return std::min<std::size_t>(client, setup_.n);
    const auto it = std::lower_bound(cohort_.begin(), cohort_.end(), client);
    return it != cohort_.end() && *it == client ? static_cast<std::size_t>(it - cohort_.begin())
                                                : cohort_.size();
  }

  bool is_awaited(ClientId client) const {
    const std::size_t i = place(client);
    return i < cohort_.size() && !have_[i];
  }

  // True when the event is a new answer.
  bool take(const Event<Real>& event, Request request, const Downlink<Real>& body) {
    const std::size_t i = place(event.up.client);
    // Not asked; or a duplicate of an answer that was ignored.
    if (i == cohort_.size() || (event.repeated && !have_[i])) return false;
    if (have_[i]) {
      tell(event, request, Receipt::kAccepted);  // again: the client may not have heard
      return false;
    }
    if (event.up.answer == Answer::kNotFinite) {
      if (!std::exchange(not_finite_[i], 1)) note_not_finite(event.up.client);
      return false;
    }
    if (event.up.answer != Answer::kReply) {
      help(i, event.up.answer, request, body);
      return false;
    }
    if (event.up.round != body.round ||
        !(request == Request::kRound ? server_.accepts(event.up)
                                     : Evaluation<Real>::accepts(event.up, setup_))) {
      note(about(event.up.client, " sent a message of the wrong shape or for another round; it is ignored"));
      transport_.ignore(event);
      tell(event, request, Receipt::kRefused);
      return false;
    }
    slots_[i] = event.up;
    have_[i] = 1;
    not_finite_[i] = 0;
    totals_.bytes_up += event.bytes;
    tell(event, request, Receipt::kAccepted);
    return true;
  }

  void note_not_finite(ClientId client) {
    note(LogLine::warning("round " + std::to_string(ledger_.round) + ": the loss or gradient of client " +
                          std::to_string(client) + " is not a finite number; it is counted as missing")
             .of_client(client));
  }

  // How many answers a sum has brought: all that it covers, or none. The sum becomes the answer of its first
  // client; the answers of the others get empty parts.
  std::size_t take_sum(const Event<Real>& event, Request request, const Downlink<Real>& body) {
    const bool good =
        request == Request::kRound && takes_sums(setup_) && event.up.answer == Answer::kReply &&
        event.up.round == body.round && server_.accepts(event.up) &&
        std::all_of(event.covers.begin(), event.covers.end(), [this](ClientId c) { return is_awaited(c); });
    tell(event, good ? Receipt::kAccepted : Receipt::kRefused);
    if (!good) {
      note("a sum of replies of " + std::to_string(event.covers.size()) + " clients, first " +
           std::to_string(event.up.client) + ", is refused: they are taken one by one");
      transport_.ignore(event);
      return 0;
    }
    for (const ClientId client : event.covers) {
      Uplink<Real>& slot = slots_[place(client)];
      slot = event.up;
      if (client != event.up.client) empty(slot, client);
      have_[place(client)] = 1;
      not_finite_[place(client)] = 0;
    }
    totals_.bytes_up += event.bytes;
    return event.covers.size();
  }
  // Turns a copy of the sum into the answer of a client whose vectors are in the first client's answer.
  static void empty(Uplink<Real>& slot, ClientId client) {
    const Parts<Real> sum = slot.parts;
    slot.client = client;
    slot.loss = 0;
    slot.grad_calls = 0;
    slot.parts = {};
    for (std::size_t k = 0; k < sum.size(); ++k) slot.parts.push_back(Payload<Real>::nothing(sum[k].dim));
  }

  void tell(const Event<Real>& event, Request request, Receipt receipt) {
    if (request == Request::kRound) tell(event, receipt);
  }
  void tell(const Event<Real>& event, Receipt receipt) {
    if (event.covers.empty()) transport_.tell(event.up.client, event.up.ticket, receipt);
    for (const ClientId client : event.covers) transport_.tell(client, event.up.ticket, receipt);
  }

  // Gives a client back what it lacks; once per request, so that a client that repeats itself gets it once.
  void help(std::size_t i, Answer lacks, Request request, const Downlink<Real>& body) {
    if (helped_[i]) return;
    helped_[i] = 1;
    const ClientId client = cohort_[i];
    // All of the state where it is known: another process of the client may get it than the one that asked.
    auto resync = server_.resync(client, Answer::kNeedsState);
    if (!resync && lacks != Answer::kNeedsState) resync = server_.resync(client, lacks);
    if (!resync)
      throw std::runtime_error(
          "client " + std::to_string(client) +
          " lost its state, and the server has no copy of it; bring the client back "
          "with its --state. If it has it, the server's journal has lost rounds that the "
          "client knows of: begin anew (--no-resume), with server.mirrors = true where the "
          "method can have mirrors, else with server.durability = \"power\"");
    note(about(client, " lost its state and is given it back"));
    resyncs_.push_back(*resync);
    send(client, request, body, &resyncs_.back());
  }

  void ask_again(ClientId client, Request request, const Downlink<Real>& body) {
    note(about(client, " joined"));
    const std::size_t i = client < setup_.n ? place(client) : cohort_.size();
    if (i == cohort_.size() || have_[i]) return;
    helped_[i] = 0;
    send(client, request, body, nullptr);
  }

  void ask_missing(Request request, const Downlink<Real>& body, std::uint32_t k, Waiting& waiting,
                   std::size_t got, std::size_t quorum) {
    std::vector<ClientId> missing;
    for (std::size_t i = 0; i < cohort_.size(); ++i)
      if (!have_[i] && !not_finite_[i]) missing.push_back(cohort_[i]);
    const std::string state = "round " + std::to_string(k) + ": " + std::to_string(got) + " of " +
                              std::to_string(quorum) + " needed replies; waiting for clients " +
                              name_some(missing);
    if (stop_seen_) {  // hooks_.stop is for simulations, whose deadlines take no time
      note(state + "; stopping without them: this round is begun again when the run goes on");
      throw RoundAbandoned();
    }
    if (!waiting.goes_on(transport_.now()))
      throw std::runtime_error(state + " " + waiting.so_far(transport_.now()) +
                               "; start the missing clients, or lower server.quorum");
    note(state + "; asking them again");
    helped_.assign(cohort_.size(), 0);
    for (const ClientId c : missing) send(c, request, body, nullptr);
  }

  void say_goodbye() {
    ++ledger_.ticket;
    for (ClientId c = 0; c < setup_.n; ++c) {
      Envelope<Real> envelope;
      envelope.request = Request::kGoodbye;
      envelope.ticket = ledger_.ticket;
      envelope.committed = ledger_.committed[c];
      transport_.send(c, envelope);
    }
    transport_.next(transport_.now());  // lets the transport take them up
  }

  ServerHalf<Real>& server_;
  const Facts& facts_;
  const Setup<Real>& setup_;
  Transport<Real>& transport_;
  Ledger& ledger_;
  const RoundLimits& limits_;
  const LoopHooks<Real>& hooks_;
  const Clock::time_point started_;

  const double seconds_before_;  // of earlier processes

  bool stop_seen_ = false;
  bool is_first_ = true;  // the next request is the first of this process
  RoundRecord record_;
  Totals committed_totals_;  // of the rounds before the one in progress
  Totals& totals_ = ledger_.totals;

  // Of the request in progress.
  std::vector<ClientId> cohort_;  // with the spare clients
  std::vector<Uplink<Real>> slots_, replies_;
  std::vector<char> have_, helped_, not_finite_;
  std::deque<Downlink<Real>> resyncs_;
};

}  // namespace

template <class Real>
Outcome run_rounds(ServerHalf<Real>& server, const Facts& facts, const Setup<Real>& setup,
                   Transport<Real>& transport, Ledger& ledger, const RoundLimits& limits,
                   const LoopHooks<Real>& hooks) {
  return Loop<Real>(server, facts, setup, transport, ledger, limits, hooks).run();
}

template Outcome run_rounds(ServerHalf<float>&, const Facts&, const Setup<float>&, Transport<float>&, Ledger&,
                            const RoundLimits&, const LoopHooks<float>&);
template Outcome run_rounds(ServerHalf<double>&, const Facts&, const Setup<double>&, Transport<double>&,
                            Ledger&, const RoundLimits&, const LoopHooks<double>&);

}  // namespace gradwire
