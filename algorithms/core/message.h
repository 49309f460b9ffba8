// What passes between the client and server part of an algorithm.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>

#include "compressors/payload.h"

namespace gradwire {

using ClientId = std::uint32_t;  // 0 .. n-1

// The clients first, ..., end - 1.
struct ClientRange {
  ClientId first = 0, end = 0;
  bool has(ClientId client) const { return client >= first && client < end; }
  std::uint32_t size() const { return end - first; }
};

// Keys the random draws of one request, the same at both ends. A synchronous algorithm draws once per round;
// an asynchronous one may ask a client twice at the same x, so its draws follow the request id.
inline std::uint32_t draw_number(bool asynchronous, std::uint32_t round, std::uint64_t request_id) {
  if (!asynchronous) return round;
  constexpr std::uint32_t kSpread =
      0x9E3779B1;  // request ids of a restarted server differ in their upper half
  return static_cast<std::uint32_t>(request_id) + kSpread * static_cast<std::uint32_t>(request_id >> 32);
}

inline constexpr std::size_t kMaxParts = 4;

// The payloads of one message, in the order that the algorithm's header gives; inline, so no message
// allocates.
template <class Real>
class Parts {
 public:
  Parts() = default;
  Parts(std::initializer_list<Payload<Real>> list) {
    for (const auto& p : list) push_back(p);
  }
  explicit Parts(std::span<const Payload<Real>> parts) {
    for (const auto& p : parts) push_back(p);
  }
  void push_back(const Payload<Real>& p) {
    if (count_ == kMaxParts) throw std::logic_error("a message has more parts than kMaxParts");
    items_[count_++] = p;
  }
  std::size_t size() const { return count_; }
  const Payload<Real>& operator[](std::size_t k) const { return items_[k]; }
  const Payload<Real>* begin() const { return items_.data(); }
  const Payload<Real>* end() const { return items_.data() + count_; }

 private:
  std::array<Payload<Real>, kMaxParts> items_;
  std::size_t count_ = 0;
};

// As long as `parts`, without values.
template <class Real>
Parts<Real> nothing_like(std::span<const Payload<Real>> parts) {
  Parts<Real> nothing;
  for (const Payload<Real>& part : parts) nothing.push_back(Payload<Real>::nothing(part.dim));
  return nothing;
}

// Server -> clients, the same for all, encoded once. Its parts view memory of the server algorithm, valid
// until that algorithm's next apply.
template <class Real>
struct Downlink {
  std::uint32_t round = 0;  // the algorithm's own version of x
  std::uint32_t flags = 0;  // the algorithm's own
  Parts<Real> parts;
};

// What a client answers: a reply, what it lacks to compute one, or that the loss or gradient at x is not a
// finite number.
enum class ReplyStatus : std::uint8_t { kReply = 0, kNeedsState = 1, kNeedsBroadcast = 2, kNotFinite = 3 };

// Client -> server, without the vectors.
struct UplinkHeader {
  std::uint64_t request_id = 0;  // the request that this answers
  std::uint32_t round = 0;       // of the x it was computed at
  ClientId client = 0;
  ReplyStatus status = ReplyStatus::kReply;
  double loss = 0;
  std::uint64_t grad_calls = 0;  // per-sample gradients computed for this reply
  std::uint64_t correct = 0;     // of an evaluation: test samples classified correctly ...
  std::uint64_t tested = 0;      // ... of how many
};

// As the client makes it. Its parts view memory of the client algorithm, valid until that client gets a newer
// request id.
template <class Real>
struct Uplink : UplinkHeader {
  Parts<Real> parts;
};

// As the server sees it: a view of an Uplink, or of what was kept of one.
template <class Real>
struct UplinkView : UplinkHeader {
  std::span<const Payload<Real>> parts;

  UplinkView() = default;
  UplinkView(const UplinkHeader& head, std::span<const Payload<Real>> parts)
      : UplinkHeader(head), parts(parts) {}
  UplinkView(const Uplink<Real>& up) : UplinkHeader(up), parts(up.parts) {}
  UplinkView(Uplink<Real>&&) = delete;  // its parts would be gone
};
template <class Real>
using Replies = std::span<const UplinkView<Real>>;

// kEvaluate asks for f_i, grad f_i (part 0 of the answer, dense) and counts at part 0 of the body, outside
// the algorithm; kMeasure for the same without the gradient; kShutdown commits and ends, without an answer.
enum class RequestKind : std::uint8_t { kRound = 0, kEvaluate = 1, kShutdown = 2, kMeasure = 3 };
inline bool is_evaluation(RequestKind kind) {
  return kind == RequestKind::kEvaluate || kind == RequestKind::kMeasure;
}

// What the server sends to one client: a few numbers of its own, and the body that all clients share.
template <class Real>
struct Request {
  RequestKind kind = RequestKind::kRound;
  std::uint64_t request_id = 0;  // names this request; never repeats, also across server restarts
  std::uint64_t committed = 0;   // the request id of this client's last reply that was used; 0: none was
  const Downlink<Real>* body = nullptr;    // null only for kShutdown
  const Downlink<Real>* resync = nullptr;  // to be adopted before the body; null: none
};

}  // namespace gradwire
