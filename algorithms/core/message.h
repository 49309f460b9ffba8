// Messages between the client and server part of an algorithm.
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

// The clients numbered `first` to `end` − 1.
struct ClientRange {
  ClientId first = 0, end = 0;
  bool has(ClientId client) const { return client >= first && client < end; }
  std::uint32_t size() const { return end - first; }
};

// Returns the number that keys the random draws of one request, the same at both ends. A synchronous
// algorithm draws once per round. An asynchronous one may ask a client twice at the same x, so its draws
// depend on the request id.
inline std::uint32_t draw_number(bool asynchronous, std::uint32_t round, std::uint64_t request_id) {
  if (!asynchronous) return round;
  constexpr std::uint32_t kSpread =
      0x9E3779B1;  // request ids of a restarted server differ in their upper half
  return static_cast<std::uint32_t>(request_id) + kSpread * static_cast<std::uint32_t>(request_id >> 32);
}

inline constexpr std::size_t kMaxParts = 4;

// The payloads of one message, in the order that the algorithm's header gives. They are stored inline, so a
// message needs no allocation.
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

// Returns as many parts as `parts` has, of the same lengths, without values.
template <class Real>
Parts<Real> nothing_like(std::span<const Payload<Real>> parts) {
  Parts<Real> nothing;
  for (const Payload<Real>& part : parts) nothing.push_back(Payload<Real>::nothing(part.dim));
  return nothing;
}

// A message from the server to all clients, encoded once. Its parts view memory of the server algorithm,
// valid until its next apply().
template <class Real>
struct Downlink {
  std::uint32_t round = 0;  // the algorithm's version of x
  std::uint32_t flags = 0;  // meaning defined by the algorithm
  Parts<Real> parts;
};

// The status of a reply: complete, or the client lacks its state or the broadcast, or the loss or gradient at
// x is not finite.
enum class ReplyStatus : std::uint8_t { kReply = 0, kNeedsState = 1, kNeedsBroadcast = 2, kNotFinite = 3 };

// A reply of a client, without its vectors.
struct UplinkHeader {
  std::uint64_t request_id = 0;  // the request that this replies to
  std::uint32_t round = 0;       // round of the x at which it was computed
  ClientId client = 0;
  ReplyStatus status = ReplyStatus::kReply;
  double loss = 0;
  std::uint64_t grad_calls = 0;  // per-sample gradients computed for this reply
  std::uint64_t correct = 0;     // evaluations only: correctly classified test samples
  std::uint64_t tested = 0;      // evaluations only: test samples
};

// A reply as the client makes it. Its parts view memory of the client algorithm, valid until that client gets
// a newer request id.
template <class Real>
struct Uplink : UplinkHeader {
  Parts<Real> parts;
};

// A reply as the server sees it: a view of an Uplink or of a stored one.
template <class Real>
struct UplinkView : UplinkHeader {
  std::span<const Payload<Real>> parts;

  UplinkView() = default;
  UplinkView(const UplinkHeader& head, std::span<const Payload<Real>> parts)
      : UplinkHeader(head), parts(parts) {}
  UplinkView(const Uplink<Real>& up) : UplinkHeader(up), parts(up.parts) {}
  UplinkView(Uplink<Real>&&) = delete;  // its parts would dangle
};
template <class Real>
using Replies = std::span<const UplinkView<Real>>;

// kEvaluate asks for f_i, ∇f_i and the counts of test samples at x, which is part 0 of the body. ∇f_i is part
// 0 of the reply, dense. kMeasure asks for the same without ∇f_i. The algorithm takes no part in either.
// kShutdown makes the client commit and stop; it has no reply.
enum class RequestKind : std::uint8_t { kRound = 0, kEvaluate = 1, kShutdown = 2, kMeasure = 3 };
inline bool is_evaluation(RequestKind kind) {
  return kind == RequestKind::kEvaluate || kind == RequestKind::kMeasure;
}

// A request to one client: numbers of its own, and the body that all clients share.
template <class Real>
struct Request {
  RequestKind kind = RequestKind::kRound;
  std::uint64_t request_id = 0;            // id of this request; never repeats, even across server restarts
  std::uint64_t committed = 0;             // id of the last request whose reply was used, or 0
  const Downlink<Real>* body = nullptr;    // null only for kShutdown
  const Downlink<Real>* resync = nullptr;  // adopted before the body, unless null
};

}  // namespace gradwire
