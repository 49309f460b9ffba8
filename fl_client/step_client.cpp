#include "fl_client/step_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "fl_client/client_session.h"
#include "fl_client/client_texts.h"
#include "fl_client/stoppable_oracle.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/frame.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kMissedHeartbeats = 3;
// The time allowed for a frame to arrive, besides that of its bytes at the expected rate.
constexpr std::chrono::seconds kFrameGrace{30};
constexpr std::uint64_t kLongestSeconds = 366 * 86'400;  // for the bytes of a frame
constexpr StepClient::Time kNever = StepClient::Time::max();

}  // namespace

StepClient::StepClient(ClientSettings settings, Connect connect, Clock clock)
    : settings_(std::move(settings)),
      connect_(std::move(connect)),
      clock_(clock ? std::move(clock) : Clock(&std::chrono::steady_clock::now)),
      membership_(settings_, /*sends_chunks=*/false, clock_()),
      due_(clock_()),
      beat_(heartbeat_frame()) {}

StepClient::~StepClient() { close(); }

bool StepClient::step(Wait& next) {
  next = {};
  try {
    switch (phase_) {
      case Phase::kIdle:
        if (clock_() < due_)
          wait_until(due_, next);
        else
          begin();
        break;
      case Phase::kOpening: wait_for_socket(next); break;
      case Phase::kAgreeing: agree(next); break;
      case Phase::kServing: serve(next); break;
      case Phase::kOver: break;
    }
  } catch (...) {
    send_last_words();
    close();
    phase_ = Phase::kOver;
    throw;
  }
  return phase_ != Phase::kOver;
}

StepClient::Progress StepClient::progress() const {
  const ClientSession& session = membership_.session();
  Progress progress;
  progress.stage = phase_ == Phase::kOver      ? Stage::kOver
                   : phase_ != Phase::kServing ? Stage::kConnecting
                   : session.sent() == 0       ? Stage::kJoining
                                               : Stage::kTraining;
  progress.answered = session.sent();
  progress.late = session.late();
  progress.bytes_up = earlier_up_ + (stream_ ? stream_->bytes_up() : 0);
  progress.bytes_down = earlier_down_ + (stream_ ? stream_->bytes_down() : 0);
  return progress;
}

void StepClient::wait_until(Time due, Wait& next) const {
  // Rounds up, because a wait that is too short would be repeated.
  const Time now = clock_();
  if (due == kNever)
    next.at_most = std::chrono::hours(24);
  else if (due > now)
    next.at_most = std::chrono::ceil<milliseconds>(due - now);
}

// ---- connecting ----

void StepClient::begin() {
  phase_ = Phase::kOpening;
  where_ = nullptr;
  found_.reset();
  if (connect_) {
    trouble_ = "the program gave no connection";
    opening_ = connect_(settings_.server);
    if (opening_ >= 0) ::fcntl(opening_, F_SETFL, ::fcntl(opening_, F_GETFL) | O_NONBLOCK);
    due_ = clock_() + settings_.connect_timeout;
    if (opening_ < 0) end({false, "cannot connect to " + settings_.server + ": " + trouble_}, false);
    return;
  }
  const auto parsed = parse_address(settings_.server, AddressUse::kToConnect);
  auto found = parsed ? look_up(*parsed, AddressUse::kToConnect) : Result<AddressList>(parsed.error());
  if (!found)
    return end({false, "cannot connect to " + settings_.server + ": " + found.error().message}, false);
  found_ = std::move(*found);
  where_ = found_.get();
  open_next();
}

// Opens a socket to the next address; without one, the attempt has failed.
void StepClient::open_next() {
  for (; where_ != nullptr; where_ = where_->ai_next) {
    opening_ = ::socket(where_->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    due_ = clock_() + settings_.connect_timeout;
    if (opening_ >= 0 &&
        (::connect(opening_, where_->ai_addr, where_->ai_addrlen) == 0 || errno == EINPROGRESS)) {
      where_ = where_->ai_next;
      return;
    }
    trouble_ = std::strerror(errno);
    if (opening_ >= 0) ::close(std::exchange(opening_, -1));
  }
  end({false, "cannot connect to " + settings_.server + ": " + trouble_}, false);
}

void StepClient::wait_for_socket(Wait& next) {
  pollfd ready{opening_, POLLOUT, 0};
  int error = 0;
  if (::poll(&ready, 1, 0) > 0) {
    socklen_t size = sizeof error;
    if (::getsockopt(opening_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  } else if (clock_() < due_) {
    next.fd = opening_;
    next.writes = true;
    return wait_until(due_, next);
  } else {
    error = ETIMEDOUT;
  }
  const int fd = std::exchange(opening_, -1);
  if (error != 0) {
    ::close(fd);
    trouble_ = std::strerror(error);
    return open_next();
  }
  std::unique_ptr<StreamFilter> filter;
  if (membership_.uses_tls()) {
    const auto parsed = parse_address(settings_.server, AddressUse::kToConnect);
    filter = membership_.tls_to(parsed ? parsed->host : settings_.server);
  }
  stream_ = std::make_unique<StepStream>(fd, std::move(filter));
  phase_ = Phase::kAgreeing;
  due_ = clock_() + settings_.io_timeout;
}

void StepClient::agree(Wait& next) {
  const Result<bool> agreed = stream_->agree();
  if (!agreed)
    return end({false, "cannot connect to " + settings_.server + ": " + agreed.error().message}, false,
               agreed.error().kind);
  if (!*agreed) {
    if (clock_() >= due_)
      return end({false, "cannot connect to " + settings_.server + ": no answer to the handshake of TLS"},
                 false);
    next = {stream_->fd(), true, stream_->is_full()};
    return wait_until(due_, next);
  }
  phase_ = Phase::kServing;
  heartbeat_ = milliseconds(0);
  silence_ = settings_.io_timeout;
  bytes_per_second_ = 0;
  begin_head();
  beat_left_ = 0;
  sent_at_ = heard_at_ = clock_();
  stalled_at_ = kNever;
  membership_.session().begin_connection([this](const Pace& pace) {
    const std::lock_guard lock(busy_);
    heartbeat_ = pace.heartbeat;
    silence_ = pace.heartbeat * kMissedHeartbeats;
    bytes_per_second_ = pace.bytes_per_second;
  });
}

// ---- serving ----

void StepClient::serve(Wait& next) {
  ClientSession& session = membership_.session();
  const Time now = clock_();
  if (heartbeat_.count() > 0 && now >= sent_at_ + heartbeat_ && beat_left_ == 0 && session.outgoing().empty())
    beat_left_ = beat_.size();
  if (const Status sent = send_some(); !sent) return end({false, sent.error().message}, true);
  if (read_some() || phase_ != Phase::kServing) return;
  if (session.asked()) return answer();
  if (now >= frame_due_)
    return end({false, connection_lost("a message took too long to arrive").message}, true);
  if (now >= heard_at_ + silence_)
    return end(
        {false, connection_lost("it was silent for " + std::to_string(silence_.count()) + " ms").message},
        true);
  if (stalled_at_ != kNever && now >= stalled_at_ + settings_.io_timeout)
    return end({false, connection_lost("it reads nothing; it may be overloaded").message}, true);
  next = {stream_->fd(), true, stream_->is_full()};
  Time due = std::min(frame_due_, heard_at_ + silence_);
  if (heartbeat_.count() > 0 && session.outgoing().empty()) due = std::min(due, sent_at_ + heartbeat_);
  if (stalled_at_ != kNever) due = std::min(due, stalled_at_ + settings_.io_timeout);
  wait_until(due, next);
}

// Sends what waits, as long as the socket takes it.
Status StepClient::send_some() {
  ClientSession& session = membership_.session();
  if (Status status = stream_->flush(); !status) return status;
  if (const auto sent = send_beat(); !sent || !*sent) return sent ? Status(Unit{}) : sent.error();
  for (auto segments = session.outgoing(); !segments.empty(); segments = session.outgoing()) {
    const auto sent = stream_->write(segments);
    if (!sent) return sent.error();
    if (*sent == 0) {
      if (stalled_at_ == kNever) stalled_at_ = clock_();
      return Unit{};
    }
    sent_at_ = clock_();
    stalled_at_ = kNever;
    session.left(*sent);
  }
  return Unit{};
}

// Sends the rest of a heartbeat. Returns whether all of it was sent.
Result<bool> StepClient::send_beat() {
  while (beat_left_ > 0) {
    const auto beat = std::as_bytes(std::span(beat_)).last(beat_left_);
    const auto sent = stream_->write(std::span(&beat, 1));
    if (!sent) return sent.error();
    if (*sent == 0) return false;
    beat_left_ -= *sent;
    sent_at_ = clock_();
  }
  return true;
}

// Tells the server why the client ends, if the socket takes it.
void StepClient::send_last_words() noexcept {
  try {
    if (phase_ == Phase::kServing && stream_) (void)send_some();
  } catch (...) {
  }
}

bool StepClient::read_some() {
  ClientSession& session = membership_.session();
  const std::span<std::byte> place = session.wanted();
  const bool in_head = place.empty();
  const auto got =
      stream_->read(in_head ? std::span(head_).subspan(head_there_, head_size_ - head_there_) : place);
  if (!got) {
    end({false, got.error().message}, true);
    return false;
  }
  if (*got == 0) return false;
  heard_at_ = clock_();
  if (!in_head) {
    take([&] { return session.arrived(*got); });
    return true;
  }
  if (head_there_ == 0) frame_due_ = heard_at_ + kFrameGrace;
  head_there_ += *got;
  if (head_there_ == head_size_) take_head();
  return true;
}

void StepClient::begin_head() {
  head_there_ = 0;
  head_size_ = kPrefixBytes;
  if (head_.empty()) head_.resize(kPrefixBytes);
  frame_due_ = kNever;
}

// Takes the prefix, and then the header of the arriving frame.
void StepClient::take_head() {
  std::array<std::byte, kPrefixBytes> raw;
  std::copy_n(head_.begin(), kPrefixBytes, raw.begin());
  ClientSession& session = membership_.session();
  const Result<Prefix> prefix = read_prefix(raw, session.max_payload());
  if (!prefix) return end({false, prefix.error().message}, true);
  if (head_there_ == kPrefixBytes) {
    const std::uint64_t seconds =
        bytes_per_second_ > 0 ? (prefix->header_len + prefix->payload_len) / bytes_per_second_ : 0;
    frame_due_ += std::chrono::seconds(std::min(seconds, kLongestSeconds));
    head_size_ += prefix->header_len;
    if (head_.size() < head_size_) head_.resize(head_size_);
    if (prefix->header_len > 0) return;
  }
  const auto header = std::span<const std::byte>(head_).subspan(kPrefixBytes, prefix->header_len);
  if (const Status good = check_header(raw, header); !good) return end({false, good.error().message}, true);
  take([&] { return session.take_head(*prefix, header); });
}

// Passes bytes to the session, which may read its data or make the oracle.
template <class Take>
void StepClient::take(const Take& bytes) {
  ClientSession& session = membership_.session();
  set_busy(session.outgoing().empty() && beat_left_ == 0);
  std::optional<ClientEnding> ending;
  try {
    ending = bytes();
  } catch (...) {
    set_busy(false);
    throw;
  }
  set_busy(false);
  heard_at_ = clock_();  // bytes that arrived meanwhile are still unread
  if (session.wanted().empty()) begin_head();
  if (!ending) return;
  (void)send_some();
  end(*ending, true);
}

void StepClient::set_busy(bool value) {
  const std::lock_guard lock(busy_);
  is_busy_ = value;
}

void StepClient::answer() {
  ClientSession& session = membership_.session();
  if (const auto ending = session.begin_answer()) return end(*ending, true);
  set_busy(true);
  try {
    session.compute();
  } catch (const OracleStopped&) {
    set_busy(false);
    close();
    phase_ = Phase::kOver;
    return;
  } catch (...) {
    set_busy(false);
    session.tell_exception();
    throw;
  }
  set_busy(false);
  heard_at_ = clock_();  // bytes that arrived meanwhile are still unread
  if (const auto ending = session.finish_answer(/*is_connected=*/true)) return end(*ending, true);
  if (const Status sent = send_some(); !sent) end({false, sent.error().message}, true);
}

void StepClient::keep_alive() {
  const std::lock_guard lock(busy_);
  if (!is_busy_ || heartbeat_.count() == 0) return;
  if (beat_left_ == 0 && clock_() < sent_at_ + heartbeat_) return;
  if (beat_left_ == 0) beat_left_ = beat_.size();
  (void)send_beat();  // step() notices if the connection is lost
}

void StepClient::end(const ClientEnding& ending, bool was_connected, ErrorKind kind) {
  close();
  const auto delay = membership_.ended(ending, was_connected, kind, clock_());
  phase_ = delay ? Phase::kIdle : Phase::kOver;
  if (delay) due_ = clock_() + *delay;
}

void StepClient::close() {
  if (opening_ >= 0) ::close(std::exchange(opening_, -1));
  if (!stream_) return;
  earlier_up_ += stream_->bytes_up();
  earlier_down_ += stream_->bytes_down();
  stream_.reset();
}

}  // namespace gradwire
