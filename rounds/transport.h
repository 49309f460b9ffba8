// The only thing in which a simulation, TCP and a cluster differ. An open set: in-process, TCP, ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "algorithms/core/client_server.h"
#include "algorithms/core/message.h"
#include "rounds/reply_counts.h"

namespace gradwire {

// ACCEPTED and the opposites; the request's `committed` says COMMITTED.
enum class Ack : std::uint8_t { kAccepted = 0, kLate = 1, kRefused = 2 };

// A message as it came: its bytes in order, in pieces.
using Frame = std::span<const std::span<const std::byte>>;

template <class Real>
struct Event {
  enum class Kind : std::uint8_t {
    kReply,    // `up`: an answer; its views live until that client is sent a newer request id
    kTimeout,  // the deadline passed and nothing came
    kJoined,   // `up.client` is (again) reachable; whatever it was asked before may be lost
    kLeft,     // `up.client` is gone for now
    kStopped,  // the operator asked to stop
  };
  Kind kind = Kind::kTimeout;
  std::uint64_t bytes = 0;  // kReply: encoded size, prefix + header + payload
  UplinkView<Real> up;
  // kReply: `up` is the sum of the answers of these clients, ascending, the first of them up.client. Empty:
  // it is that client's own. The view lives as long as those of `up`.
  std::span<const ClientId> covers;
  // kReply: the bytes that brought `up`, for a journal. Empty: the transport has none, or `up` is a sum. They
  // live as long as the views of `up`.
  Frame frame;
  // kReply: a duplicate without parts: this client's reply to the same request id was handed up before.
  bool repeated = false;
};

// All clients of a transport whose clients answer when they are asked: nothing is late or lost.
template <class Real>
class BatchTransport {
 public:
  struct BatchRequest {
    std::span<const ClientId> asked;           // ascending
    const Request<Real>& request;              // of a round; each is given its own `committed`
    std::span<const std::uint64_t> committed;  // by client
    const ServerAlgorithm<Real>& server;       // that takes in the answers; is only read
  };
  struct BatchReplies {
    // By place in `asked`; they live until the next ask(). Where the algorithm takes sums, replies of a leaf
    // may be added to the first of them; then those that were added have empty parts.
    Replies<Real> replies;
    std::span<const ClientId> others;  // ascending: their answer is none, or one that the server refuses
    // Of all but the others: what the replies counted for before they were added up, and the encoded sizes of
    // requests and answers.
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
  // Sends without waiting; a newer request id supersedes the older, sending a request id again is harmless.
  // The request's body and resync may change once the following next() has returned; what they view (vectors
  // of the server algorithm, or of the driver), only after settle(). Returns the encoded size in bytes,
  // counted even if lost. Whoever passes calls on to another transport passes on settle(), too.
  virtual std::uint64_t send(ClientId client, const Request<Real>& request) = 0;
  // Tells the client what became of its reply to `request_id`, perhaps only together with its next message.
  virtual void acknowledge(ClientId client, std::uint64_t request_id, Ack ack) {
    (void)client, (void)request_id, (void)ack;
  }
  // This answer is not used: another one of the same clients may take its place.
  virtual void discard(const Event<Real>& event) { (void)event; }
  // This answer is one that no client of ours sends.
  virtual void report_misbehaviour(const Event<Real>& event) { (void)event; }
  // The next event, at the latest at `deadline` (in seconds, on now()'s clock). It stays until the following
  // next().
  virtual const Event<Real>& next(double deadline) = 0;
  // From here on the caller may change what the bodies and resyncs that it sent view: a transport that is
  // still writing them makes its own copy now (one per body, not one per client).
  virtual void settle() {}
  virtual double now() const = 0;  // seconds, wall or virtual; only loops ask
  // Null: clients can only be asked one by one.
  virtual BatchTransport<Real>* batch_transport() { return nullptr; }
};

}  // namespace gradwire
