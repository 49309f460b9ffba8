// Tracks the requests to all clients: the latest request of each client and its id, the missing answers, and
// the fate of each answer. Knows nothing of rounds and sockets; its only clock is the transport's.
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

  // The events that a driver must handle. The tracker itself handles late, repeated and malformed answers,
  // overlapping sums, and clients that come and go.
  enum class Kind : std::uint8_t {
    // event.up is the first answer of its client, or of all clients in event.covers, to this request.
    kReply,
    // event.up.client still owes an answer, and has reconnected or lacks state. Call repeat() or ask().
    kAgain,
    kUnusable,  // event.up.client has no usable answer (not finite or beyond the norm limit); reported once
    kDeadline,
    kStopped,
  };
  struct Arrival {
    Kind kind;
    const Event<Real>& event;  // valid until the following next()
  };

  // Returns a new request id, for one client or for all clients that get the same request.
  std::uint64_t new_request_id() { return ++progress_.request_id; }
  // Sends a request to the client, and counts its bytes. The request supersedes the client's earlier one.
  // `body` must stay unchanged until next() has returned something other than kDeadline.
  void ask(ClientId client, RequestKind kind, std::uint64_t request_id, const Downlink<Real>& body);
  // Sends the request of a round to all of `asked` (ascending) in one batch. Returns nullopt if the transport
  // has no batches. Call ask() for each client in `others` of the result, with the same request id.
  using BatchReplies = typename BatchTransport<Real>::BatchReplies;
  std::optional<BatchReplies> ask_at_once(std::span<const ClientId> asked, std::uint64_t request_id,
                                          const Downlink<Real>& body);
  // Sends the client's request again, with the state that the client lacks. Does not count the bytes.
  // REQUIRES: `body` is the body of the client's request. Throws std::runtime_error if the server cannot
  // restore the state.
  void repeat(ClientId client, const Downlink<Real>& body);
  // Closes all requests so far: answers that arrive from now on are late.
  void close() { first_open_ = progress_.request_id + 1; }
  // Closes the request of this client: an answer that arrives from now on is not used.
  void close(ClientId client) { pending(client).state = PendingRequest::kAnswered; }

  // Return the id, the round and the kind of the client's latest request.
  std::uint64_t request_id(ClientId client) const { return pending(client).request_id; }
  std::uint32_t round(ClientId client) const { return pending(client).round; }
  RequestKind kind_of(ClientId client) const { return pending(client).kind; }
  // Return the state of that request; false if the request is closed.
  bool owes(ClientId client) const {
    return is_open(client) && pending(client).state == PendingRequest::kOwes;
  }
  bool has_no_usable_answer(ClientId client) const {
    return is_open(client) && pending(client).state == PendingRequest::kUnusable;
  }

  // Save and restore the request of each client. load_work() returns false if the bytes are not from
  // save_work() of a run with the same number of clients.
  void save_work(Saver& to) const;
  bool load_work(Loader& from);

  // Waits for the next event that the driver must handle, at the latest until `deadline` on the transport's
  // clock.
  Arrival next(double deadline);
  void shutdown();  // tells all clients to shut down

 private:
  struct PendingRequest {
    enum State : std::uint8_t { kOwes, kUnusable, kAnswered };
    std::uint64_t request_id = 0;
    std::uint32_t round = 0;  // round of the body
    RequestKind kind = RequestKind::kRound;
    State state = kAnswered;
    ReplyStatus lacks = ReplyStatus::kReply;
    // True if the last message carried a resync. If the client then reports the same lack again, the report
    // is ignored.
    bool sent_resync = false;
  };

  // Allocates at the first request to a single client; a batch needs none.
  PendingRequest& pending(ClientId client) {
    if (pending_.empty()) pending_.resize(run_context_.n);
    return pending_[client];
  }
  const PendingRequest& pending(ClientId client) const {
    static const PendingRequest none;
    return pending_.empty() ? none : pending_[client];
  }
  bool is_open(ClientId client) const { return pending(client).request_id >= first_open_; }
  // Returns whether an answer to `request_id` would be the client's first usable one.
  bool awaits(ClientId client, std::uint64_t request_id) const;
  std::uint64_t send(ClientId client, const Downlink<Real>& body);
  const Downlink<Real>* state_for(ClientId client, ReplyStatus lacks);
  // Returns true if the driver must see the event.
  bool take(const Event<Real>& event, Kind& kind);
  bool take_unusable(const Event<Real>& event, const std::string& what);
  // Returns false if the reply is beyond the norm limit and not used.
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
  std::vector<PendingRequest> pending_;  // by client, 16 bytes each; empty if all requests were batches
  std::deque<Downlink<Real>> resyncs_;   // until the following next() has returned
  // Halved copies of replies beyond the limit. Each is kept until its client is asked again. halved_event_
  // views the last one.
  std::unordered_map<ClientId, HalvedParts<Real>> halved_;
  Event<Real> halved_event_;
  const Event<Real>* shown_ = nullptr;  // the event that take() wants the driver to see
};

}  // namespace gradwire
