// The server's conversation with its clients: who was asked what under which request id, who owes an answer,
// and what becomes of each answer. It knows no rounds and no sockets, and no clock but the transport's.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "algorithms/core/client_server.h"
#include "base/log.h"
#include "base/serialize.h"
#include "rounds/norm_limit.h"
#include "rounds/run_progress.h"
#include "rounds/transport.h"

namespace gradwire {

template <class Real>
class RequestTracker {
 public:
  RequestTracker(const ServerAlgorithm<Real>& server, const RunContext<Real>& run_context,
                 Transport<Real>& transport, RunProgress& progress, const Log& on_note,
                 const NormLimit& limit = {});

  // What a driver must see to. All else is dealt with here: answers that are late, repeated or misshapen,
  // sums that overlap, who came and went.
  enum class Kind : std::uint8_t {
    kReply,     // event.up answers what its client was asked, for the first time; so do all in event.covers
    kAgain,     // event.up.client owes an answer and is back, or lacks state: repeat() or ask() it
    kUnusable,  // event.up.client has no usable answer: not finite, or beyond the norm limit; said once
    kDeadline,
    kStopped,
  };
  struct Arrival {
    Kind kind;
    const Event<Real>& event;  // until the following next()
  };

  // Names a new request: to one client, or to all that are asked the same.
  std::uint64_t new_request_id() { return ++progress_.request_id; }
  // Asks the client, counts the bytes; what it was asked before is superseded. `body` must stay as it is
  // until next() has returned something other than kDeadline.
  void ask(ClientId client, RequestKind kind, std::uint64_t request_id, const Downlink<Real>& body);
  // Asks all of `asked` (ascending) for a round at once; null where the transport cannot. The others of the
  // answers are to be asked one by one, under the same request id.
  using BatchReplies = typename BatchTransport<Real>::BatchReplies;
  std::optional<BatchReplies> ask_at_once(std::span<const ClientId> asked, std::uint64_t request_id,
                                          const Downlink<Real>& body);
  // Asks the same once more, with the state that the client said it lacks. Not counted. REQUIRES: the body
  // that the client was asked with. Throws std::runtime_error when nobody can restore the state.
  void repeat(ClientId client, const Downlink<Real>& body);
  // Whatever was asked until now is over: answers to it are late.
  void close() { first_open_ = progress_.request_id + 1; }
  // What this client was asked is over: an answer to it is of no use.
  void close(ClientId client) { pending(client).state = PendingRequest::kAnswered; }

  // What the client was asked last.
  std::uint64_t request_id(ClientId client) const { return pending(client).request_id; }
  std::uint32_t round(ClientId client) const { return pending(client).round; }
  RequestKind kind_of(ClientId client) const { return pending(client).kind; }
  // The state of that, unless it is over.
  bool owes(ClientId client) const {
    return is_open(client) && pending(client).state == PendingRequest::kOwes;
  }
  bool has_no_usable_answer(ClientId client) const {
    return is_open(client) && pending(client).state == PendingRequest::kUnusable;
  }

  // Saves and restores which client was asked what. load_work() returns false if save_work() of a run with as
  // many clients did not write the bytes.
  void save_work(Saver& to) const;
  bool load_work(Loader& from);

  // Waits for something to see to, at the latest until `deadline` on the transport's clock.
  Arrival next(double deadline);
  void shutdown();  // tells all clients to shut down

 private:
  struct PendingRequest {
    enum State : std::uint8_t { kOwes, kUnusable, kAnswered };
    std::uint64_t request_id = 0;
    std::uint32_t round = 0;  // of the body
    RequestKind kind = RequestKind::kRound;
    State state = kAnswered;
    ReplyStatus lacks = ReplyStatus::kReply;
    bool helped = false;  // by the last sending: a client that repeats what it lacks is given it once
  };

  // Made when the first client is asked by itself: a batch needs none.
  PendingRequest& pending(ClientId client) {
    if (pending_.empty()) pending_.resize(run_context_.n);
    return pending_[client];
  }
  const PendingRequest& pending(ClientId client) const {
    static const PendingRequest unasked;
    return pending_.empty() ? unasked : pending_[client];
  }
  bool is_open(ClientId client) const { return pending(client).request_id >= first_open_; }
  // Whether an answer to `request_id` would be the client's first good one.
  bool awaits(ClientId client, std::uint64_t request_id) const;
  std::uint64_t send(ClientId client, const Downlink<Real>& body);
  const Downlink<Real>* state_for(ClientId client, ReplyStatus lacks);
  // True: the driver must see the event.
  bool take(const Event<Real>& event, Kind& kind);
  bool take_unusable(const Event<Real>& event, const std::string& what);
  // False: the reply is beyond the norm limit and not used.
  bool within_limit(const Event<Real>& event);
  std::string too_large(const UplinkView<Real>& up) const;
  bool take_sum(const Event<Real>& event);
  void acknowledge(const Event<Real>& event, Ack ack);
  void note(LogLine line) const {
    if (on_note_) on_note_(std::move(line).in_round(progress_.round));
  }

  void warn(ClientId client, const std::string& what) const {
    note(LogLine::warning("round " + std::to_string(progress_.round) + ": " + what).of_client(client));
  }

  const ServerAlgorithm<Real>& server_;
  const RunContext<Real>& run_context_;
  Transport<Real>& transport_;
  RunProgress& progress_;
  const Log& on_note_;
  const NormLimit limit_;
  std::uint64_t first_open_ = 1;         // request id
  std::vector<PendingRequest> pending_;  // by client, 16 bytes each; empty: nobody was asked by himself
  std::deque<Downlink<Real>> resyncs_;   // until the following next() has returned
  // Replies that were too large, until their clients are asked again, and the event that shows the last one.
  std::unordered_map<ClientId, HalvedParts<Real>> halved_;
  Event<Real> halved_event_;
  const Event<Real>* shown_ = nullptr;  // what take() wants the driver to see
};

}  // namespace gradwire
