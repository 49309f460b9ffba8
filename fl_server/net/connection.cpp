#include "fl_server/net/connection.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "proto/wire/control_frame.h"

namespace gradwire {
namespace {

constexpr std::size_t kBytesPerWake = 1 << 20;  // after that the other connections get their turn
constexpr std::size_t kDiscardedPerWake = 1 << 16;

// Returns true if the bytes begin a TLS handshake record, of any version.
bool begins_tls(std::span<const std::byte> bytes) {
  return bytes[0] == std::byte{22} && bytes[1] == std::byte{3};
}

}  // namespace

Connection::Connection(SocketLayer& sockets, std::unique_ptr<Socket> socket, const WireTimes& times,
                       FrameHandler& handler, ConnectionCounts& counts)
    : sockets_(sockets),
      socket_(std::move(socket)),
      times_(times),
      handler_(handler),
      counts_(counts),
      queue_(counts.server_metrics.sent),
      sent_(sockets.now()) {
  silence_.restart(sent_);
  counts_.open += 1;
}

Connection::~Connection() {
  give_room_back();
  if (!socket_->is_open()) return;
  socket_->close();
  queue_.clear();
  count_borrowing();
  counts_.open -= 1;
}

void Connection::start() { socket_->start(*this); }
const std::string& Connection::peer() const { return socket_->peer(); }

// ---- reading ----

void Connection::on_readable() {
  if (open_) {
    try {
      return read_frames();
    } catch (const std::bad_alloc&) {
      return close("out of memory for its message");
    }
  }
  // Discards what a refused peer still sends, until it disconnects or its time to linger is over.
  for (std::size_t dropped = 0; socket_->is_open() && dropped < kDiscardedPerWake;) {
    const Socket::Moved moved = socket_->read(counts_.arriving);
    if (moved.got == Socket::Got::kNothing) return;
    if (moved.got != Socket::Got::kSome) return shut();
    dropped += moved.bytes;
  }
}

void Connection::read_frames() {
  for (std::size_t read = 0; open_ && !paused_ && !waits_ && read < kBytesPerWake;) {
    const std::span<std::byte> to = room();
    const bool into_payload = stage_ == ReadStage::kPayload;
    const Socket::Moved moved = socket_->read(to);
    if (moved.got == Socket::Got::kNothing) return;
    if (moved.got == Socket::Got::kEnd) return close_for(Ending::kByPeer, "it closed the connection");
    if (moved.got == Socket::Got::kFailed) return close_for(Ending::kByPeer, socket_->failure());
    if (moved.got == Socket::Got::kRefused) return close_for(Ending::kNoTls, socket_->failure());
    silence_.restart(sockets_.now());
    read += moved.bytes;
    if (into_payload) {
      note_payload(moved.bytes);
    } else {
      unused_ = std::span(counts_.arriving).first(kept_.size() + moved.bytes);
    }
    use_what_arrived();
    if (moved.bytes < to.size()) return;  // nothing more to read now
  }
}

// Returns the place of the next bytes: the target of a payload, or the buffer after the bytes that were kept.
std::span<std::byte> Connection::room() {
  if (stage_ == ReadStage::kPayload) return targets_[target_].subspan(target_done_);
  std::copy(kept_.begin(), kept_.end(), counts_.arriving.begin());
  return std::span(counts_.arriving).subspan(kept_.size(), kReadBytes);
}

// Uses as many of the received bytes as it can. Only a connection with an incomplete frame keeps memory of
// its own.
void Connection::use_what_arrived() {
  while (advance()) {
  }
  kept_ = std::vector<std::byte>(unused_.begin(), unused_.end());
  unused_ = {};
}

// Uses some of the received bytes. Returns true if there may be more to use.
bool Connection::advance() {
  if (!open_) return false;
  switch (stage_) {
    case ReadStage::kPrefix: return take_prefix();
    case ReadStage::kHeader: return take_header();
    case ReadStage::kPayload:
    case ReadStage::kSkipped: take_payload(); return frame_is_whole();
  }
  return false;
}

bool Connection::take_prefix() {
  if (unused_.empty()) return false;
  if (frame_bytes_ == 0) arrival_ = silence_;
  frame_bytes_ = std::max<std::uint64_t>(frame_bytes_, kPrefixBytes);
  if (unused_.size() < kPrefixBytes) return false;
  std::copy_n(unused_.begin(), kPrefixBytes, raw_prefix_.begin());
  if (!has_magic(raw_prefix_)) {
    handler_.on_misbehaviour();
    close_for(Ending::kNotGradwire, begins_tls(raw_prefix_)
                                        ? "it speaks TLS, and this end was started without --identity"
                                        : "the peer does not speak gradwire");
    return false;
  }
  const Result<Prefix> prefix = read_prefix(raw_prefix_, max_payload_, channels_);
  if (!prefix) {
    misbehaves(prefix.error().message);
    return false;
  }
  unused_ = unused_.subspan(kPrefixBytes);
  prefix_ = *prefix;
  frame_bytes_ = kPrefixBytes + prefix_.header_len + prefix_.payload_len;
  stage_ = ReadStage::kHeader;
  return true;
}

bool Connection::take_header() {
  if (unused_.size() < prefix_.header_len) return false;
  const auto header = unused_.first(prefix_.header_len);
  Status status = check_header(raw_prefix_, header);
  if (status && !has_room()) return false;
  unused_ = unused_.subspan(prefix_.header_len);
  if (status) {
    const auto targets = handler_.on_header(prefix_, header);
    if (targets) {
      targets_ = *targets;
    } else {
      status = targets.error();
    }
  }
  if (!status) misbehaves(status.error().message);
  if (!open_) return false;
  target_ = target_done_ = 0;
  payload_done_ = arrived_ = 0;
  stage_ = prefix_.payload_len > 0 && targets_.empty() ? ReadStage::kSkipped : ReadStage::kPayload;
  if (stage_ == ReadStage::kSkipped) give_room_back();
  note_payload(0);  // skips empty targets
  return true;
}

void Connection::take_payload() {
  while (payload_done_ < prefix_.payload_len && !unused_.empty()) {
    const std::uint64_t left = prefix_.payload_len - payload_done_;
    std::size_t here = static_cast<std::size_t>(std::min<std::uint64_t>(left, unused_.size()));
    if (stage_ == ReadStage::kPayload) {
      const std::span<std::byte> target = targets_[target_].subspan(target_done_);
      here = std::min(here, target.size());
      std::copy_n(unused_.begin(), here, target.begin());
    }
    unused_ = unused_.subspan(here);
    note_payload(here);
  }
}

void Connection::note_payload(std::size_t bytes) {
  payload_done_ += bytes;
  if (stage_ == ReadStage::kSkipped) return;
  target_done_ += bytes;
  while (target_ < targets_.size() && target_done_ == targets_[target_].size()) {
    target_ += 1;
    target_done_ = 0;
  }
}

bool Connection::frame_is_whole() {
  if (payload_done_ < prefix_.payload_len) return false;
  const bool skipped = stage_ == ReadStage::kSkipped;
  counts_.server_metrics.received.add(prefix_.type, frame_bytes_);
  frame_bytes_ = 0;
  stage_ = ReadStage::kPrefix;
  give_room_back();
  if (skipped) return true;
  if (const Status status = handler_.on_frame(); !status) misbehaves(status.error().message);
  return true;
}

// Refuses a peer that broke the protocol.
void Connection::misbehaves(const std::string& what) {
  if (!open_) return;
  counts_.server_metrics.end(Ending::kBadMessage);
  refuse(what, false, handler_.on_misbehaviour());
}

// ---- room for a payload ----

// Reserves memory for the payload. Returns false if there is no room yet. The connection then reads nothing
// until there is.
bool Connection::has_room() {
  if (staged_ > 0 || prefix_.payload_len == 0) return true;
  if (counts_.receive_budget.reserve(*this, prefix_.payload_len)) {
    staged_ = prefix_.payload_len;
    holding_.restart(sockets_.now());
    return true;
  }
  waits_ = true;
  socket_->pause_reading(true);
  return false;
}

void Connection::on_room() {
  staged_ = prefix_.payload_len;
  waits_ = false;
  silence_.restart(sockets_.now());
  arrival_ = holding_ = silence_;
  socket_->pause_reading(paused_);
  const std::vector<std::byte> arrived = std::exchange(kept_, {});
  unused_ = arrived;
  try {
    use_what_arrived();
  } catch (const std::bad_alloc&) {
    close("out of memory for its message");
  }
}

void Connection::give_room_back() {
  if (std::exchange(waits_, false)) counts_.receive_budget.forget(*this);
  if (staged_ > 0) counts_.receive_budget.release(std::exchange(staged_, 0));
  if (counts_.receive_budget.awaited())
    sockets_.post([&receive_budget = counts_.receive_budget] { receive_budget.serve_waiters(); });
}

void Connection::pause_reading(bool pause) {
  if (std::exchange(paused_, pause) == pause || !socket_->is_open() || waits_) return;
  silence_.restart(sockets_.now());
  arrival_ = silence_;
  socket_->pause_reading(pause);
}

void Connection::skip_payload() {
  if (stage_ != ReadStage::kPayload) return;
  stage_ = ReadStage::kSkipped;
  give_room_back();
}

// ---- writing ----

void Connection::on_writable() {
  waiting_ = false;
  write();
}

void Connection::write() {
  if (waiting_ || !socket_->is_open()) return;
  for (;;) {
    switch (queue_.write_once(*socket_)) {
      case WriteQueue::WriteProgress::kNothing:
        count_borrowing();
        waiting_ = true;
        return socket_->want_write();
      case WriteQueue::WriteProgress::kFailed: return close_for(Ending::kByPeer, socket_->failure());
      case WriteQueue::WriteProgress::kSome: sent_ = sockets_.now(); break;
      case WriteQueue::WriteProgress::kAll:
        sent_ = sockets_.now();
        count_borrowing();
        if (refused_) socket_->end_writing();
        return;
    }
  }
}

void Connection::count_borrowing() {
  if (const bool now = queue_.borrowing(); now != std::exchange(borrowing_, now))
    counts_.borrowing += now ? 1 : -1;
}

void Connection::send(Outgoing message) {
  if (!open_ || ending_) return;
  ending_ = message.last;
  if (!soon_.empty()) message.head.insert(0, std::exchange(soon_, {}));
  if (queue_.empty()) {
    stall_.restart(sockets_.now());
    taken_ = queue_.taken();
  }
  queue_.push(std::move(message));
  write();
  if (open_ && queue_.bytes() > most_waiting_)
    return close_for(Ending::kTooSlow, "more than " + std::to_string(most_waiting_ >> 20) +
                                           " MB wait for it to take them; it may reconnect");
  count_borrowing();
}

void Connection::own_sections() {
  queue_.own();
  count_borrowing();
}

// ---- the end ----

void Connection::shut() {
  if (!socket_->is_open()) return;
  socket_->close();
  queue_.clear();
  count_borrowing();
  counts_.open -= 1;
  sockets_.post([this] { handler_.on_shut(); });
}

void Connection::detach(const std::string& why) {
  if (!std::exchange(open_, false)) return;
  const bool waited = waits_;
  give_room_back();
  if (waited && socket_->is_open()) socket_->pause_reading(false);  // discards what the peer still sends
  sockets_.post([this, why] { handler_.on_closed(why); });
}

void Connection::refuse(const std::string& message, bool fatal, std::uint32_t retry_after_ms) {
  if (!open_) return;
  detach(message);
  queue_.drop_waiting();
  const bool can_tell = queue_.empty();  // else another frame is partly written
  if (can_tell) {
    queue_.push(Outgoing::control(error_frame(message, fatal, retry_after_ms)));
    refused_ = true;
    refused_at_ = sockets_.now();
    write();
  }
  const bool in_payload = stage_ == ReadStage::kPayload || stage_ == ReadStage::kSkipped;
  if (!can_tell || in_payload || waiting_) return shut();
  count_borrowing();
}

// Refuses the peer and counts the reason. Used for decisions of the connection; the owner counts its own.
void Connection::refuse_for(Ending ending, const std::string& message) {
  if (open_) counts_.server_metrics.end(ending);
  refuse(message, false, 0);
}

void Connection::close_for(Ending ending, const std::string& why) {
  if (open_) counts_.server_metrics.end(ending);
  close(why);
}

void Connection::close(const std::string& why) {
  detach(why);
  shut();
}

// Returns the reason if the arriving frame takes too long, or an empty string. Within each period of
// frame_grace, the frame must be complete or progress at the rate min_bytes_per_second. If other connections
// wait for the memory of its payload, progress does not suffice.
std::string Connection::too_slow(SteadyTime now) {
  if (staged_ > 0 && holding_.is_over(now, times_.frame_grace) && counts_.receive_budget.awaited())
    return "other connections wait for the memory of its message; it may reconnect and continue";
  if (!arrival_.is_over(now, times_.frame_grace)) return {};
  const std::uint64_t came = payload_done_ - std::exchange(arrived_, payload_done_);
  const auto grace_ms = static_cast<std::uint64_t>(times_.frame_grace.count());
  arrival_.restart(now);
  if (came * 1000 >= times_.min_bytes_per_second * grace_ms) return {};
  return "a message took too long to arrive: " + std::to_string(came) + " bytes of its payload in " +
         std::to_string(grace_ms) + " ms, of at least " + std::to_string(times_.min_bytes_per_second) +
         " a second (at a server: server.min_bytes_per_second)";
}

void Connection::check_time(SteadyTime now) {
  if (!open_) {
    if (refused_ && now - refused_at_ > times_.linger) shut();
    return;
  }
  if (frame_bytes_ > 0 && !paused_ && !waits_)
    if (const std::string why = too_slow(now); !why.empty()) return refuse_for(Ending::kTooSlow, why);
  if (writing() && stall_.is_over(now, times_.write_stall)) {
    const std::uint64_t taken = queue_.taken() - std::exchange(taken_, queue_.taken());
    if (taken * 1000 < times_.min_bytes_per_second * static_cast<std::uint64_t>(times_.write_stall.count()))
      return close_for(Ending::kTooSlow,
                       "it read " + (taken == 0 ? "nothing" : "only " + std::to_string(taken) + " bytes") +
                           " for " + std::to_string(times_.write_stall.count()) + " ms; it may reconnect");
    stall_.restart(now);
  }
  if (!soon_.empty() && !writing()) send(Outgoing::control(std::exchange(soon_, {})));
  if (!heartbeats_) return;
  const auto silence = times_.heartbeat * times_.missed_heartbeats;
  if (silence_.is_over(now, silence) && !paused_ && !waits_)
    return close_for(Ending::kSilent, "no sign of life for " + std::to_string(silence.count()) +
                                          " ms: it, its machine or the network is down; it may reconnect");
  if (!writing() && now - sent_ >= times_.heartbeat) send(Outgoing::control(heartbeat_frame()));
}

}  // namespace gradwire
