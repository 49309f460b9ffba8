#include "fl_server/sessions/tcp_transport.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "proto/wire/codec_body.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/reply_tail.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kFarAway = 1e9;  // seconds; larger waits could overflow the clock

std::string head_of(const Encoded& message) {
  std::string head;
  head.reserve(kPrefixBytes + message.header.size());
  head.assign(reinterpret_cast<const char*>(message.prefix.data()), kPrefixBytes);
  return head += message.header;
}

template <class Real>
Event<Real> event_of(typename Event<Real>::Kind kind, ClientId client) {
  Event<Real> event;
  event.kind = kind;
  event.up.client = client;
  return event;
}

}  // namespace

template <class Real>
TcpTransport<Real>::TcpTransport(SessionManager& session_manager, const CodecContext& context,
                                 std::string start, bool takes_sums)
    : session_manager_(session_manager),
      codec_(context),
      inboxes_(context.clients),
      takes_sums_(takes_sums),
      sums_(context) {
  session_manager_.begin(std::move(start), max_payload_bytes(context, sizeof(Real)), *this, takes_sums);
}

template <class Real>
TcpTransport<Real>::~TcpTransport() {
  TcpTransport::settle();
  session_manager_.end();
}

template <class Real>
double TcpTransport<Real>::now() const {
  return Seconds(session_manager_.now().time_since_epoch()).count();
}

template <class Real>
void TcpTransport<Real>::encode_once(std::uint64_t request_id, const Downlink<Real>* body) {
  // All requests with one id share a body. In an asynchronous run, where each request has its own id, all
  // requests until next() returns share it.
  const bool is_shared =
      body_request_id_ == request_id || (codec_.context().asynchronous && !returned_since_);
  if (body_source_ == body && is_shared) {
    if (body_ == nullptr) body_ = unfinished_body_.lock();
    if (shared_ == nullptr) shared_ = unfinished_.lock();
    if (shared_ != nullptr) {
      body_request_id_ = request_id;
      return;
    }
  }
  returned_since_ = false;
  own_body();
  body_ = codec_.encode_body(*body);
  body_request_id_ = request_id;
  body_source_ = body;
  shared_ = std::make_shared<SharedBody>(SharedBody{body_->sections, body_, body_->borrows});
  if (session_manager_.zero_copy()) shared_->own();  // else no socket can send it without a copy
  unfinished_body_ = body_;
  unfinished_ = shared_;
}

// Copies the body once for all clients whose writes are unfinished.
template <class Real>
void TcpTransport<Real>::own_body() {
  if (const auto body = unfinished_.lock(); body.use_count() > (shared_ ? 2 : 1)) body->own();
}

// Keeps the memory of a long compressed body only until the body is written. For a client that reconnects,
// the body is encoded again.
template <class Real>
void TcpTransport<Real>::keep_body_while_written() {
  if (body_ == nullptr || body_->borrows || body_->payload_len <= ByteBuffer::kKeptBytes) return;
  body_.reset();
  shared_.reset();
}

template <class Real>
void TcpTransport<Real>::settle() {
  own_body();
  session_manager_.own_pending();
}

template <class Real>
std::uint64_t TcpTransport<Real>::send(ClientId client, const Request<Real>& request) {
  using SharedEncodedBody = std::shared_ptr<const EncodedBody<Real>>;
  Inbox& inbox = inboxes_[client];
  if (request.request_id > inbox.asked) {
    inbox.asked = request.request_id;
    // Do not release the other slot: a reply to an older request id may be arriving there.
    if (inbox.viewed >= 0 && inbox.viewed != kInSum) inbox.slots[inbox.viewed]->release();
    inbox.viewed = -1;
    inbox.have = 0;
  }
  if (request.body != nullptr) encode_once(request.request_id, request.body);
  const EncodedBody<Real>* const body = request.body == nullptr ? nullptr : body_.get();
  const SharedEncodedBody resync = request.resync == nullptr ? nullptr : codec_.encode_body(*request.resync);
  const Encoded encoded = codec_.encode(request, body, resync.get(), inbox.have);
  Outgoing message;
  message.head = head_of(encoded);
  if (body != nullptr) message.body = shared_;
  if (resync) {
    message.sections = resync->sections;
    message.borrowed = resync->borrows;
    message.keep = resync;
  } else if (body != nullptr && session_manager_.remembers_bodies(client)) {
    message.short_head = head_of(codec_.encode(request, nullptr, nullptr, inbox.have, true));
  }
  message.request = request.request_id;
  message.alone = codec_.context().asynchronous;
  message.last = request.kind == RequestKind::kShutdown;
  session_manager_.send(client, std::move(message));
  newest_ = request.request_id;
  asking_ = request.kind == RequestKind::kRound;
  return encoded.bytes;  // size for the client, even if its relay received the short head
}

template <class Real>
const Event<Real>& TcpTransport<Real>::next(double deadline) {
  if (std::exchange(handed_, false)) events_.pop_front();
  keep_body_while_written();
  const double left = std::min(deadline - now(), kFarAway);
  const auto until =
      session_manager_.now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(Seconds(left));
  if (std::exchange(asking_, false) && takes_sums_) session_manager_.announce_request(newest_);
  if (events_.empty()) sums_.release(newest_);  // else a sum for the previous request may wait there
  if (events_.empty()) session_manager_.wait(until, [this] { return !events_.empty(); });
  returned_since_ = true;
  if (events_.empty()) return nothing_;
  handed_ = true;
  return events_.front();
}

template <class Real>
Result<std::span<const std::span<std::byte>>> TcpTransport<Real>::on_reply_header(
    ClientId client, const Prefix& prefix, std::span<const std::byte> header) {
  Inbox& inbox = inboxes_[client];
  const std::uint64_t have = std::exchange(inbox.have, 0);
  inbox.whole_bytes = 0;
  if (have > 0 && tail_start(header, std::as_bytes(std::span(inbox.header))) == have) {
    inbox.rest = rest_of(inbox.places, have);
    std::uint64_t room = 0;
    for (const auto place : inbox.rest) room += place.size();
    if (room != prefix.payload_len) return Error{"the rest of the reply has the wrong length"};
    inbox.from = have;
    inbox.whole_bytes = kPrefixBytes + inbox.header.size() + have + room;
    return std::span<const std::span<std::byte>>(inbox.rest);
  }
  // The client was asked twice, and has sent the rest twice or from another offset.
  inbox.have = have;
  if (tail_start(header, std::as_bytes(std::span(inbox.header))))
    return std::span<const std::span<std::byte>>();
  inbox.from = inbox.have = 0;
  inbox.header.clear();
  if (const auto chunked = chunked_header(header)) return complete(inbox, prefix, *chunked);
  inbox.assembly.clear();
  const auto places = slot_for(inbox).prepare(prefix, header);
  if (places && prefix.payload_len > kChunkBytes) {
    inbox.header.assign(reinterpret_cast<const char*>(header.data()), header.size());
    inbox.places = *places;
  }
  return places;
}

template <class Real>
UplinkSlot<Real>& TcpTransport<Real>::slot_for(Inbox& inbox) {
  inbox.arriving = inbox.viewed == 0 ? 1 : 0;
  auto& slot = inbox.slots[inbox.arriving];
  if (!slot) slot = std::make_unique<UplinkSlot<Real>>(codec_.context(), true);
  return *slot;
}

template <class Real>
Result<std::span<const std::span<std::byte>>> TcpTransport<Real>::complete(Inbox& inbox, const Prefix& prefix,
                                                                           const ChunkedHeader& header) {
  Assembly& assembly = inbox.assembly;
  if (header.in_chunks == 0 || header.in_chunks != assembly.came() ||
      prefix.payload_len != assembly.total() - assembly.came())
    return Error{"a chunked reply has " + std::to_string(assembly.came()) + " bytes here, not " +
                 std::to_string(header.in_chunks) + ", or its rest has the wrong length"};
  Prefix whole = prefix;
  whole.header_len = static_cast<std::uint32_t>(header.header.size());
  whole.payload_len = assembly.total();
  UplinkSlot<Real>& slot = slot_for(inbox);
  const auto places = slot.prepare(whole, header.header);
  if (!places) return places;
  if (slot.request_id() != assembly.request_id()) return Error{"a reply whose chunks belong to another one"};
  inbox.rest = assembly.spread(*places);
  inbox.whole_bytes = kPrefixBytes + whole.header_len + whole.payload_len;
  bytes_in_chunks_ += assembly.came();
  assembly.clear();
  return std::span<const std::span<std::byte>>(inbox.rest);
}

template <class Real>
Result<std::span<const std::span<std::byte>>> TcpTransport<Real>::on_chunk_header(
    ClientId client, const Prefix& prefix, std::span<const std::byte> header) {
  const Result<ChunkHeader> head = read_chunk(header);
  if (!head) return head.error();
  Inbox& inbox = inboxes_[client];
  if (head->request_id > inbox.asked) return Error{"a chunk of a reply that the server did not request"};
  return inbox.assembly.prepare(*head, prefix, max_payload_bytes(codec_.context(), sizeof(Real)));
}

template <class Real>
Status TcpTransport<Real>::on_chunk(ClientId client) {
  return inboxes_[client].assembly.finish();
}

template <class Real>
void TcpTransport<Real>::on_broken_reply(ClientId client, std::uint64_t payload_bytes) {
  Inbox& inbox = inboxes_[client];
  if (inbox.header.empty() || inbox.slots[inbox.arriving]->request_id() != inbox.asked) return;
  inbox.have = (inbox.from + payload_bytes) / kChunkBytes * kChunkBytes;
}

template <class Real>
void TcpTransport<Real>::discard(const Event<Real>& event) {
  if (event.covers.empty() && event.up.request_id == inboxes_[event.up.client].asked)
    inboxes_[event.up.client].viewed = -1;
  for (const ClientId client : event.covers)
    if (inboxes_[client].viewed == kInSum) inboxes_[client].viewed = -1;
}

template <class Real>
void TcpTransport<Real>::report_misbehaviour(const Event<Real>& event) {
  if (event.covers.empty()) session_manager_.note_violation(event.up.client);
}

template <class Real>
void TcpTransport<Real>::acknowledge(ClientId client, std::uint64_t request_id, Ack ack) {
  wire::Received message;
  message.set_request_id(request_id);
  message.set_receipt(static_cast<wire::Ack>(ack));
  session_manager_.send_soon(client, control_frame(FrameType::kReceived, message));
}

template <class Real>
Status TcpTransport<Real>::on_reply(ClientId client, std::uint64_t bytes) {
  Inbox& inbox = inboxes_[client];
  Result<UplinkView<Real>> uplink = inbox.slots[inbox.arriving]->finish(client, &draws_);
  if (!uplink) return uplink.error();
  Event<Real> event;
  event.kind = Event<Real>::Kind::kReply;
  event.bytes = inbox.whole_bytes > 0 ? inbox.whole_bytes : bytes;  // counts repeated bytes once
  event.up = *uplink;
  const bool is_awaited = uplink->request_id == inbox.asked && uplink->status == ReplyStatus::kReply;
  event.repeated = is_awaited && inbox.viewed >= 0;
  if (is_awaited && !event.repeated) {
    inbox.viewed = inbox.arriving;
    event.frame = inbox.slots[inbox.arriving]->frame();
  } else {
    event.up.parts = {};  // late, repeated or empty: its content is not used
    inbox.slots[inbox.arriving]->release();
  }
  events_.push_back(event);
  return Unit{};
}

template <class Real>
Result<std::span<const std::span<std::byte>>> TcpTransport<Real>::on_sum_header(
    std::uint64_t relay, const Prefix& prefix, std::span<const std::byte> header,
    const std::function<bool(ClientId)>& is_client_of) {
  if (!takes_sums_) return Error{"this run accepts no sums of replies"};
  const auto places = sums_.prepare(relay, prefix, header);
  if (!places) return places;
  const std::span<const ClientId> covers = sums_.covers(relay);
  // A client may have replied directly meanwhile, or reconnected elsewhere. Then each reply is needed
  // separately.
  if (is_awaited(relay) && std::all_of(covers.begin(), covers.end(), is_client_of)) return places;
  refuse_sum(relay);
  return std::span<const std::span<std::byte>>();
}

template <class Real>
bool TcpTransport<Real>::is_awaited(std::uint64_t relay) const {
  const std::span<const ClientId> covers = sums_.covers(relay);
  return std::all_of(covers.begin(), covers.end(), [&](ClientId client) {
    return inboxes_[client].viewed < 0 && inboxes_[client].asked == sums_.request_id(relay);
  });
}

template <class Real>
void TcpTransport<Real>::refuse_sum(std::uint64_t relay) {
  const std::uint64_t request_id = sums_.request_id(relay);
  for (const ClientId client : sums_.covers(relay))
    acknowledge(client, request_id, request_id < inboxes_[client].asked ? Ack::kLate : Ack::kRefused);
  sums_.forget(relay);
}

template <class Real>
Status TcpTransport<Real>::on_sum(std::uint64_t relay, std::uint64_t bytes) {
  if (!sums_.is_arriving(relay)) return Unit{};
  if (!is_awaited(relay)) {
    refuse_sum(relay);
    return Unit{};
  }
  const auto sum = sums_.finish(relay, newest_);
  if (!sum) return sum.error();
  Event<Real> event;
  event.kind = Event<Real>::Kind::kReply;
  event.bytes = bytes;
  event.up = sum->up;
  event.covers = sum->covers;
  for (const ClientId client : event.covers) inboxes_[client].viewed = kInSum;
  events_.push_back(event);
  return Unit{};
}

template <class Real>
void TcpTransport<Real>::on_joined(ClientId client) {
  inboxes_[client].assembly.clear();  // a new connection starts without chunks
  events_.push_back(event_of<Real>(Event<Real>::Kind::kJoined, client));
}

template <class Real>
void TcpTransport<Real>::on_left(ClientId client) {
  inboxes_[client].assembly.clear();
  events_.push_back(event_of<Real>(Event<Real>::Kind::kLeft, client));
}

template <class Real>
void TcpTransport<Real>::on_stop() {
  events_.push_back(event_of<Real>(Event<Real>::Kind::kStopped, 0));
}

template class TcpTransport<float>;
template class TcpTransport<double>;

}  // namespace gradwire
