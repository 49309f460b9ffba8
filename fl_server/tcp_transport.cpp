#include "fl_server/tcp_transport.h"

#include <array>
#include <chrono>
#include <utility>

namespace gradwire {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kFarAway = 1e9;  // seconds; what the clock can add without overflow

template <class Real>
Event<Real> event_of(typename Event<Real>::Kind kind, ClientId client) {
  Event<Real> event;
  event.kind = kind;
  event.up.client = client;
  return event;
}

}  // namespace

template <class Real>
TcpTransport<Real>::TcpTransport(Hub& hub, const CodecContext& context, std::string start)
    : hub_(hub), codec_(context), inboxes_(context.clients) {
  hub_.begin(std::move(start), max_payload_bytes(context, sizeof(Real)), *this);
}

template <class Real>
TcpTransport<Real>::~TcpTransport() {
  hub_.end();
}

template <class Real>
double TcpTransport<Real>::now() const {
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Real>
std::shared_ptr<const EncodedBody<Real>> TcpTransport<Real>::encode_once(std::uint64_t ticket,
                                                                         const Downlink<Real>* body) {
  if (!body_ || body_ticket_ != ticket || body_source_ != body) {
    body_ = codec_.encode_body(*body);
    body_ticket_ = ticket;
    body_source_ = body;
  }
  return body_;
}

template <class Real>
std::uint64_t TcpTransport<Real>::send(ClientId client, const Envelope<Real>& envelope) {
  using Body = std::shared_ptr<const EncodedBody<Real>>;
  Inbox& inbox = inboxes_[client];
  if (envelope.ticket > inbox.asked) {
    inbox.asked = envelope.ticket;
    inbox.viewed = -1;
  }
  const Body body = envelope.body == nullptr ? nullptr : encode_once(envelope.ticket, envelope.body);
  const Body resync = envelope.resync == nullptr ? nullptr : codec_.encode_body(*envelope.resync);
  Encoded encoded = codec_.encode(envelope, body.get(), resync.get());
  Outgoing message;
  message.head.reserve(kPrefixBytes + encoded.header.size());
  message.head.assign(reinterpret_cast<const char*>(encoded.prefix.data()), kPrefixBytes);
  message.head += encoded.header;
  message.sections = std::move(encoded.sections);
  message.borrowed = !message.sections.empty();
  message.request = envelope.ticket;
  message.last = envelope.request == Request::kGoodbye;
  if (resync) {
    message.keep = std::make_shared<const std::array<Body, 2>>(std::array<Body, 2>{body, resync});
  } else {
    message.keep = body;
  }
  hub_.send(client, std::move(message));
  return encoded.bytes;
}

template <class Real>
Event<Real> TcpTransport<Real>::next(double deadline) {
  const double left = std::min(deadline - now(), kFarAway);
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::steady_clock::duration>(Seconds(left));
  if (events_.empty()) hub_.wait(until, [this] { return !events_.empty(); });
  hub_.own_pending();  // from here on the caller may change what it sent
  if (events_.empty()) return {};
  Event<Real> event = events_.front();
  events_.pop_front();
  return event;
}

template <class Real>
Result<std::span<const std::span<std::byte>>> TcpTransport<Real>::on_reply_header(
    ClientId client, const Prefix& prefix, std::span<const std::byte> header) {
  Inbox& inbox = inboxes_[client];
  inbox.arriving = inbox.viewed == 0 ? 1 : 0;
  auto& slot = inbox.slots[inbox.arriving];
  if (!slot) slot = std::make_unique<UplinkSlot<Real>>(codec_.context());
  return slot->prepare(prefix, header);
}

template <class Real>
Status TcpTransport<Real>::on_reply(ClientId client, std::uint64_t bytes) {
  Inbox& inbox = inboxes_[client];
  Result<Uplink<Real>> uplink = inbox.slots[inbox.arriving]->finish(client, &draws_);
  if (!uplink) return uplink.error();
  Event<Real> event;
  event.kind = Event<Real>::Kind::kReply;
  event.bytes = bytes;
  event.up = *uplink;
  if (inbox.viewed < 0 && uplink->ticket == inbox.asked && uplink->answer == Answer::kReply) {
    inbox.viewed = inbox.arriving;
  } else {
    event.up.parts = {};  // late, repeated, or without content: nobody looks at it
  }
  events_.push_back(event);
  return Unit{};
}

template <class Real>
void TcpTransport<Real>::on_joined(ClientId client) {
  events_.push_back(event_of<Real>(Event<Real>::Kind::kJoined, client));
}

template <class Real>
void TcpTransport<Real>::on_left(ClientId client) {
  events_.push_back(event_of<Real>(Event<Real>::Kind::kLeft, client));
}

template <class Real>
void TcpTransport<Real>::on_stop() {
  events_.push_back(event_of<Real>(Event<Real>::Kind::kStopped, 0));
}

template class TcpTransport<float>;
template class TcpTransport<double>;

}  // namespace gradwire
