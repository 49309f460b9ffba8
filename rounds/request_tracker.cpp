#include "rounds/request_tracker.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "algorithms/algorithms.h"
#include "base/value.h"
#include "rounds/evaluation.h"

namespace gradwire {
namespace {

LogLine about(ClientId client, const char* what, int line = __builtin_LINE()) {
  return LogLine("client " + std::to_string(client) + what, __FILE__, line).of_client(client);
}

}  // namespace

template <class Real>
RequestTracker<Real>::RequestTracker(const ServerAlgorithm<Real>& server, const RunContext<Real>& run_context,
                                     Transport<Real>& transport, RunProgress& progress, const Log& on_note,
                                     const NormLimit& limit)
    : server_(server),
      run_context_(run_context),
      transport_(transport),
      progress_(progress),
      on_note_(on_note),
      limit_(limit) {
  static_assert(sizeof(PendingRequest) == 16);
  close();
}

template <class Real>
void RequestTracker<Real>::ask(ClientId client, RequestKind kind, std::uint64_t request_id,
                               const Downlink<Real>& body) {
  PendingRequest& pending = this->pending(client);
  halved_.erase(client);
  pending.request_id = request_id;
  pending.round = body.round;
  pending.kind = kind;
  pending.state = PendingRequest::kOwes;
  progress_.totals.bytes_down += send(client, body);
}

template <class Real>
std::optional<typename RequestTracker<Real>::BatchReplies> RequestTracker<Real>::ask_at_once(
    std::span<const ClientId> asked, std::uint64_t request_id, const Downlink<Real>& body) {
  BatchTransport<Real>* const batch_transport = transport_.batch_transport();
  if (batch_transport == nullptr) return std::nullopt;
  Request<Real> request;
  request.request_id = request_id;
  request.body = &body;
  const BatchReplies answers = batch_transport->ask({asked, request, progress_.committed, server_});
  progress_.totals.bytes_down += answers.bytes_down;
  progress_.totals.bytes_up += answers.bytes_up;
  return answers;
}

template <class Real>
void RequestTracker<Real>::repeat(ClientId client, const Downlink<Real>& body) {
  if (body.round != pending(client).round)
    throw std::logic_error("RequestTracker: a request id is repeated with the body of another round");
  send(client, body);
}

template <class Real>
std::uint64_t RequestTracker<Real>::send(ClientId client, const Downlink<Real>& body) {
  PendingRequest& pending = this->pending(client);
  Request<Real> request;
  request.kind = pending.kind;
  request.request_id = pending.request_id;
  request.committed = progress_.committed[client];
  request.body = &body;
  const ReplyStatus lacks = std::exchange(pending.lacks, ReplyStatus::kReply);
  pending.sent_resync = lacks != ReplyStatus::kReply;
  if (pending.sent_resync) request.resync = state_for(client, lacks);
  return transport_.send(client, request);
}

template <class Real>
const Downlink<Real>* RequestTracker<Real>::state_for(ClientId client, ReplyStatus lacks) {
  // Send the whole state if it is known: the resync may reach a newer process of the client than the one that
  // asked.
  auto resync = server_.resync(client, ReplyStatus::kNeedsState);
  if (!resync && lacks != ReplyStatus::kNeedsState) resync = server_.resync(client, lacks);
  if (!resync)
    throw std::runtime_error(
        "client " + std::to_string(client) +
        " lost its state, and the server has no copy of it; bring the client back with its --state. If it "
        "has its --state, the server's folder has lost rounds that the client knows of: if the folder was "
        "restored from an older copy, restore a newer one; otherwise start from round 0 (--fresh) with "
        "server.client_state_replicas = true if the algorithm supports it, otherwise with "
        "server.durability = \"power\"");
  note(about(client, " lost its state; sending it back"));
  resyncs_.push_back(*resync);
  return &resyncs_.back();
}

template <class Real>
typename RequestTracker<Real>::Arrival RequestTracker<Real>::next(double deadline) {
  static const Event<Real> nothing;
  for (;;) {
    // Check here as well: while clients come and go, the transport may always have an event and so never time
    // out.
    if (transport_.now() > deadline) return {Kind::kDeadline, nothing};
    const Event<Real>& event = transport_.next(deadline);
    resyncs_.clear();
    const ClientId client = event.up.client;
    Kind kind = Kind::kReply;
    switch (event.kind) {
      case Event<Real>::Kind::kTimeout: return {Kind::kDeadline, event};
      case Event<Real>::Kind::kStopped: return {Kind::kStopped, event};
      case Event<Real>::Kind::kLeft: note(about(client, " left")); break;
      case Event<Real>::Kind::kJoined:
        note(about(client, " joined"));
        if (client < run_context_.n && awaits(client, pending(client).request_id))
          return {Kind::kAgain, event};
        break;
      case Event<Real>::Kind::kReply:
        shown_ = &event;
        if (take(event, kind)) return {kind, *shown_};
        break;
    }
  }
}

template <class Real>
bool RequestTracker<Real>::awaits(ClientId client, std::uint64_t request_id) const {
  return client < run_context_.n && pending(client).request_id == request_id && is_open(client) &&
         pending(client).state != PendingRequest::kAnswered;
}

template <class Real>
bool RequestTracker<Real>::take(const Event<Real>& event, Kind& kind) {
  const UplinkView<Real>& up = event.up;
  if (up.client >= run_context_.n) return false;
  PendingRequest& pending = this->pending(up.client);
  if (!event.covers.empty()) return take_sum(event);
  if (up.request_id != pending.request_id || !is_open(up.client)) {
    acknowledge(event, Ack::kLate);
    return false;
  }
  const bool is_answered = pending.state == PendingRequest::kAnswered;
  if (event.repeated && !is_answered) return false;  // a duplicate of an ignored answer
  const bool is_round = pending.kind == RequestKind::kRound;
  if (is_answered) {
    if (is_round) acknowledge(event, Ack::kAccepted);  // again, because the client may have missed it
    return false;
  }
  if (up.status == ReplyStatus::kNotFinite) {
    kind = Kind::kUnusable;
    return take_unusable(
        event, "the loss or gradient of client " + std::to_string(up.client) + " is not a finite number");
  }
  if (up.status != ReplyStatus::kReply) {
    if (pending.sent_resync) return false;
    pending.lacks = up.status;
    kind = Kind::kAgain;
    return true;
  }
  if (up.round != pending.round ||
      !(is_round ? server_.accepts(up) : Evaluation<Real>::accepts(up, run_context_, pending.kind))) {
    note(LogLine::warning("client " + std::to_string(up.client) +
                          " sent a message of the wrong shape or for another round; ignoring it")
             .of_client(up.client));
    transport_.discard(event);
    transport_.report_misbehaviour(event);
    if (is_round) acknowledge(event, Ack::kRefused);
    return false;
  }
  if (is_round && limit_.is_set() && !within_limit(event)) {
    transport_.discard(event);
    acknowledge(event, Ack::kRefused);
    kind = Kind::kUnusable;
    return take_unusable(event, too_large(up));
  }
  pending.state = PendingRequest::kAnswered;
  progress_.totals.bytes_up += event.bytes;
  if (is_round) acknowledge(event, Ack::kAccepted);
  return true;
}

// Marks the request as unusable. Warns and returns true only the first time.
template <class Real>
bool RequestTracker<Real>::take_unusable(const Event<Real>& event, const std::string& what) {
  const ClientId client = event.up.client;
  if (std::exchange(pending(client).state, PendingRequest::kUnusable) == PendingRequest::kUnusable)
    return false;
  warn(client, what + "; counting it as missing");
  return true;
}

template <class Real>
std::string RequestTracker<Real>::too_large(const UplinkView<Real>& up) const {
  return "the reply of client " + std::to_string(up.client) + " has the norm " +
         number_text(norm_of(up.parts)) + ", above server.norm_limit = " + number_text(limit_.norm);
}

template <class Real>
bool RequestTracker<Real>::within_limit(const Event<Real>& event) {
  const double norm = norm_of(event.up.parts);
  if (norm <= limit_.norm) return true;
  if (limit_.action == NormAction::kWarn) {
    warn(event.up.client, too_large(event.up) + "; using it unchanged");
    return true;
  }
  if (limit_.action == NormAction::kReject || std::isinf(norm)) return false;  // inf cannot be halved
  const int times = halvings(norm, limit_.norm);
  const ClientId client = event.up.client;
  warn(client, too_large(event.up) + "; halving it " + std::to_string(times) + " times");
  halved_.erase(client);
  halved_event_ = event;
  halved_event_.up.parts = halved_.try_emplace(client, event.up.parts, times).first->second.parts();
  halved_event_.frame = {};  // a journal writes the parts that are used
  shown_ = &halved_event_;
  return true;
}

// Takes a sum only if all of its clients still owe an answer.
template <class Real>
bool RequestTracker<Real>::take_sum(const Event<Real>& event) {
  const PendingRequest& first = pending(event.up.client);
  const auto is_awaited = [&](ClientId c) { return awaits(c, event.up.request_id); };
  if (event.up.request_id != first.request_id &&
      std::none_of(event.covers.begin(), event.covers.end(), is_awaited)) {
    acknowledge(event, Ack::kLate);
    return false;
  }
  // If one of the clients is still awaited, the sum is refused, not late. Then the relay sends the replies
  // one by one.
  const bool good = first.kind == RequestKind::kRound && takes_sums(run_context_) && !limit_.is_set() &&
                    event.up.status == ReplyStatus::kReply && event.up.round == first.round &&
                    server_.accepts(event.up) &&
                    std::all_of(event.covers.begin(), event.covers.end(), is_awaited);
  acknowledge(event, good ? Ack::kAccepted : Ack::kRefused);
  if (!good) {
    note("a sum of replies of " + std::to_string(event.covers.size()) + " clients, first " +
         std::to_string(event.up.client) + ", is refused; the replies are taken one by one");
    transport_.discard(event);
    return false;
  }
  for (const ClientId client : event.covers) pending(client).state = PendingRequest::kAnswered;
  progress_.totals.bytes_up += event.bytes;
  return true;
}

template <class Real>
void RequestTracker<Real>::acknowledge(const Event<Real>& event, Ack ack) {
  if (event.covers.empty()) transport_.acknowledge(event.up.client, event.up.request_id, ack);
  for (const ClientId client : event.covers) transport_.acknowledge(client, event.up.request_id, ack);
}

template <class Real>
void RequestTracker<Real>::shutdown() {
  new_request_id();
  for (ClientId c = 0; c < run_context_.n; ++c) {
    Request<Real> request;
    request.kind = RequestKind::kShutdown;
    request.request_id = progress_.request_id;
    request.committed = progress_.committed[c];
    transport_.send(c, request);
  }
  transport_.next(transport_.now());  // lets the transport send them
}

template <class Real>
void RequestTracker<Real>::save_work(Saver& to) const {
  to(first_open_);
  for (ClientId c = 0; c < run_context_.n; ++c) {
    const PendingRequest& s = pending(c);
    to(s.request_id), to(s.round);
    for (const auto field : {static_cast<std::uint8_t>(s.kind), static_cast<std::uint8_t>(s.state),
                             static_cast<std::uint8_t>(s.lacks), static_cast<std::uint8_t>(s.sent_resync)})
      to(field);
  }
}

template <class Real>
bool RequestTracker<Real>::load_work(Loader& from) {
  from(first_open_);
  for (ClientId c = 0; c < run_context_.n; ++c) {
    PendingRequest& s = pending(c);
    std::uint8_t kind = 0, state = 0, lacks = 0, sent_resync = 0;
    from(s.request_id), from(s.round), from(kind), from(state), from(lacks), from(sent_resync);
    if (kind > static_cast<std::uint8_t>(RequestKind::kMeasure) || state > PendingRequest::kAnswered ||
        lacks > static_cast<std::uint8_t>(ReplyStatus::kNotFinite) || sent_resync > 1)
      return false;
    s.kind = static_cast<RequestKind>(kind);
    s.state = static_cast<typename PendingRequest::State>(state);
    s.lacks = static_cast<ReplyStatus>(lacks);
    s.sent_resync = sent_resync != 0;
  }
  return true;
}

template class RequestTracker<float>;
template class RequestTracker<double>;

}  // namespace gradwire
