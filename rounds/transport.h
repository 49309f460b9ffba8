// The interface to the clients. A simulation, TCP, MPI and your own class implement it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "algorithms/core/client_server.h"
#include "algorithms/core/message.h"
#include "rounds/reply_counts.h"

namespace gradwire {

// The fate of a reply. Acceptance is not durability: see Request::committed.
enum class Ack : std::uint8_t { kAccepted = 0, kLate = 1, kRefused = 2 };

// A message as received: its bytes in order, in segments.
using Frame = std::span<const std::span<const std::byte>>;

template <class Real>
struct Event {
  enum class Kind : std::uint8_t {
    kReply,    // `up` is an answer; its views are valid until that client gets a newer request id
    kTimeout,  // the deadline passed without an event
    kJoined,   // `up.client` is reachable (again); its earlier requests may be lost
    kLeft,     // `up.client` is disconnected
    kStopped,  // the operator asked to stop; a second one gives up the round in progress
  };
  Kind kind = Kind::kTimeout;
  std::uint64_t bytes = 0;  // kReply: encoded size of prefix, header and payload
  UplinkView<Real> up;
  // kReply: if `up` is a sum of answers, the clients that it covers, ascending, starting with up.client.
  // Empty if `up` is the answer of a single client. Valid as long as the views of `up`.
  std::span<const ClientId> covers;
  // kReply: the received bytes of `up`, for a journal. Empty if the transport has none, or if `up` is a sum.
  // Valid as long as the views of `up`.
  Frame frame;
  // kReply: a duplicate without parts. This client's reply to the same request id was delivered before.
  bool repeated = false;
};

// Sends one request to many clients and returns their answers, in one call. For transports without late or
// lost answers.
template <class Real>
class BatchTransport {
 public:
  struct BatchRequest {
    std::span<const ClientId> asked;           // ascending
    const Request<Real>& request;              // request of a round; each client gets its own `committed`
    std::span<const std::uint64_t> committed;  // by client
    const ServerAlgorithm<Real>& server;       // the algorithm that will get the answers; only read here
  };
  struct BatchReplies {
    // The replies by position in `asked`, valid until the next ask(). If the algorithm takes sums, the first
    // reply of a leaf of the tree may be the sum of the leaf; the others then have empty parts.
    Replies<Real> replies;
    std::span<const ClientId> others;  // ascending; clients without an answer that the server accepts
    // The counts of all clients except `others`: of their replies before these were added up, and the encoded
    // sizes of their requests and answers.
    ReplyCounts counts;
    std::uint64_t bytes_down = 0, bytes_up = 0;
  };
  virtual ~BatchTransport() = default;
  virtual BatchReplies ask(const BatchRequest& batch) = 0;
};

template <class Real>
class Transport {
 public:
  virtual ~Transport() = default;
  // Sends a request without waiting. A newer request id supersedes the older one; sending the same request id
  // again is harmless. The body and the resync may change once the following next() has returned. The vectors
  // that they view (of the server algorithm or the driver) may change only after settle(). Returns the
  // encoded size in bytes, even if the message is lost. Decorators must forward settle().
  virtual std::uint64_t send(ClientId client, const Request<Real>& request) = 0;
  // Tells the client what became of its reply to `request_id`, perhaps only with its next message.
  virtual void acknowledge(ClientId client, std::uint64_t request_id, Ack ack) {
    (void)client, (void)request_id, (void)ack;
  }
  // Drops this answer. Another answer of the same clients may then arrive in its place.
  virtual void discard(const Event<Real>& event) { (void)event; }
  // Reports a reply that a correct client would never send.
  virtual void report_misbehaviour(const Event<Real>& event) { (void)event; }
  // Returns the next event, at the latest at `deadline` (in seconds, on now()'s clock). It stays valid until
  // the following next().
  virtual const Event<Real>& next(double deadline) = 0;
  // Prepares for a change of the vectors that sent bodies and resyncs view. A transport that still writes a
  // body copies it now, once for all clients.
  virtual void settle() {}
  virtual double now() const = 0;  // in seconds, wall or virtual; only loops call it
  // Returns null if clients can only be asked one by one.
  virtual BatchTransport<Real>* batch_transport() { return nullptr; }
};

}  // namespace gradwire
