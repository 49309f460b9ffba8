#include "fl_client/client_session.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "fl_client/client.h"
#include "fl_client/client_session_impl.h"
#include "fl_client/exception_type.h"
#include "fl_client/stoppable_oracle.h"
#include "fl_client/upload_chunks.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

// The message to the server about unusable data. It gives no reason, because the reason may quote the data.
constexpr const char* kDataTrouble = "its data cannot be used; its own log says why";
constexpr milliseconds kLongestRetry{10 * 60'000};

}  // namespace

void ClientSession::Impl::end_connection() {
  outbox.clear();
  places_ = {};
  place_ = there_ = 0;
  on_pace_ = nullptr;
  put_answer_away();
}

void ClientSession::Impl::left(std::size_t bytes) {
  const std::optional<Outbox::Then> then = outbox.left(bytes);
  if (!then) return;
  switch (*then) {
    case Outbox::Then::kNothing: break;
    case Outbox::Then::kSaySums:
      log("sent the sums of its features, which " + normalize_key() +
          " needs; waiting for those of the other clients");
      break;
    case Outbox::Then::kSayJoined:
      if (identity_.credentials && identity_.credentials->token && !std::exchange(enrolled_, true))
        log("enrolled as '" + identity_.name + "'; later starts need no --token");
      log("joined as client " + std::to_string(number_) + " of " + std::to_string(experiment_.clients.count) +
          "; the run begins or continues when " + (experiment_.server.start_share < 1 ? "enough" : "all") +
          " clients have joined");
      break;
    case Outbox::Then::kPutAnswerAway:
      worker_->answer_sent();
      answered_ = true;
      put_answer_away();
  }
}

ClientEnding ClientSession::Impl::told_error(std::span<const std::byte> header) const {
  wire::ErrorMessage error;
  if (Status status = parse_control(header, error); !status) return {false, status.error().message};
  const std::string message = "the server says: " + one_line(error.message());
  // A server that only ends its run gives a retry time. Then it may help to start this client again.
  if (error.fatal() && error.retry_after_ms() == 0) throw ClientRefused(message);
  if (error.fatal()) throw ClientError(message);
  return {false, message, std::min(milliseconds(error.retry_after_ms()), kLongestRetry)};
}

std::optional<ClientEnding> ClientSession::Impl::round(const Prefix& prefix,
                                                       std::span<const std::byte> header) {
  const auto places = worker_->receive_head(prefix, header);
  if (!places) return ClientEnding{false, places.error().message};
  places_ = *places;
  place_ = there_ = 0;
  return arrived(0);
}

std::optional<ClientEnding> ClientSession::Impl::arrived(std::size_t bytes) {
  there_ += bytes;
  while (place_ < places_.size() && there_ >= places_[place_].size()) there_ -= places_[place_++].size();
  return place_ < places_.size() ? std::nullopt : took_round();
}

std::optional<ClientEnding> ClientSession::Impl::took_round() {
  const auto received = worker_->receive_payload();
  if (!received) return ClientEnding{false, received.error().message};
  asked_ = *received == Worker::Received::kRequest;
  // Sends the reason to the server and ends the connection, so that both logs have the line.
  if (std::exchange(first_request_, false) && worker_->finds_older_server()) {
    asked_ = false;
    const std::string why = "the server has forgotten rounds that client " + std::to_string(number_) +
                            " took part in: its --state was restored from an older copy, or its disk lost "
                            "them; the run continues from what the server has";
    outbox.put(error_frame(why, false, 0));
    return ClientEnding{false, why};
  }
  if (asked_) return std::nullopt;
  wire::Received heard;
  heard.set_request_id(worker_->request_id());
  heard.set_receipt(wire::RECEIPT_ACCEPTED);
  outbox.put(control_frame(FrameType::kReceived, heard));  // the last message
  if (const Worker::Sent sent = worker_->sent(); sent.in_chunks > 0)
    log(std::to_string(100 * sent.in_chunks / sent.bytes) +
        " % of the bytes of its answers were sent while they were computed");
  return ClientEnding{true, ""};
}

Status ClientSession::Impl::received(std::span<const std::byte> header) {
  wire::Received message;
  if (Status status = parse_control(header, message); !status) return status;
  if (!message.has_request_id() || !message.has_receipt())
    return Error{"Received: request id or receipt is missing"};
  // With a quorum, many answers are late: the log has the 1st, 2nd, 4th, 8th and so on.
  if (message.receipt() == wire::RECEIPT_LATE && std::has_single_bit(++late_))
    log(std::to_string(late_) + (late_ == 1 ? " answer" : " answers") + " came too late and " +
        (late_ == 1 ? "was" : "were") + " not used");
  if (message.receipt() == wire::RECEIPT_REFUSED)
    log(LogLine::warning("the server cannot use an answer of this shape; install the same release on both"));
  return Unit{};
}

std::optional<ClientEnding> ClientSession::Impl::take_head(const Prefix& prefix,
                                                           std::span<const std::byte> header) {
  const FrameType type = prefix.type;
  if (type == FrameType::kError) return told_error(header);
  if (prefix.payload_len == 0 && type == FrameType::kHeartbeat) return std::nullopt;
  if (stage_ == Stage::kHello) {
    if (type == FrameType::kChallenge) return prove(header), std::nullopt;
    if (type != FrameType::kWelcome) return ClientEnding{false, "the server did not answer with a Welcome"};
    return begin(header);
  }
  if (type == FrameType::kWelcome && stage_ == Stage::kScaling) return scaled(header);
  if (type == FrameType::kStart && stage_ == Stage::kJoin) {
    const Status status = start(header);
    if (status) stage_ = Stage::kRounds;
    return ending_of(status);
  }
  if (type == FrameType::kRound && stage_ == Stage::kRounds) return round(prefix, header);
  if (prefix.payload_len == 0 && type == FrameType::kReceived) return ending_of(received(header));
  return ClientEnding{false, "the server sent a message that is out of place"};
}

std::optional<ClientEnding> ClientSession::Impl::begin_answer() {
  asked_ = false;
  return ending_of(worker_->take_up(takes_chunks_));
}

std::optional<ClientEnding> ClientSession::Impl::finish_answer(bool is_connected) {
  has_answer_ = true;
  Status status = Unit{};
  if (UploadChunks* const chunks = worker_->chunks(); chunks != nullptr) {
    chunks->close();
    status = chunks->trouble();
  }
  const Encoded* const answer = status && !asked_ && is_connected ? worker_->answer() : nullptr;
  if (answer != nullptr)
    outbox.put(*answer, Outbox::Then::kPutAnswerAway);
  else
    put_answer_away();
  return ending_of(status);
}

void ClientSession::Impl::put_answer_away() {
  if (std::exchange(has_answer_, false)) worker_->put_away();
}

ClientSession::ClientSession(ClientIdentity identity, ClientJournal* journal)
    : impl_(std::make_unique<Impl>(std::move(identity), journal)) {}
ClientSession::~ClientSession() = default;
void ClientSession::begin_connection(std::function<void(const Pace&)> on_pace) {
  impl_->begin_connection(std::move(on_pace));
}
void ClientSession::end_connection() { impl_->end_connection(); }
std::uint64_t ClientSession::max_payload() const { return impl_->max_payload(); }
template <class F>
std::optional<ClientEnding> ClientSession::telling_errors(F&& f) {
  try {
    return f();
  } catch (const DataError&) {
    impl_->outbox.put(error_frame(kDataTrouble, true, 0));
    throw;
  } catch (const UnfitClient& error) {
    impl_->outbox.put(error_frame(error.what(), true, 0));
    throw;
  } catch (const ClientRefused&) {  // by the server, like the next one
    throw;
  } catch (const ClientError&) {
    throw;
  } catch (const OracleStopped&) {
    throw;
  } catch (...) {
    tell_exception();
    throw;
  }
}
std::optional<ClientEnding> ClientSession::take_head(const Prefix& prefix,
                                                     std::span<const std::byte> header) {
  return telling_errors([&] { return impl_->take_head(prefix, header); });
}
std::span<std::byte> ClientSession::wanted() const { return impl_->wanted(); }
std::optional<ClientEnding> ClientSession::arrived(std::size_t bytes) {
  return telling_errors([&] { return impl_->arrived(bytes); });
}
std::span<const std::span<const std::byte>> ClientSession::outgoing() { return impl_->outbox.outgoing(); }
void ClientSession::left(std::size_t bytes) { impl_->left(bytes); }
void ClientSession::tell_exception() {
  impl_->outbox.put(error_frame(
      "an exception of type " + type_of_exception() + " ended it; its own log says more", true, 0));
}
bool ClientSession::asked() const { return impl_->asked(); }
std::optional<ClientEnding> ClientSession::begin_answer() { return impl_->begin_answer(); }
void ClientSession::compute() { impl_->compute(); }
std::optional<ClientEnding> ClientSession::finish_answer(bool is_connected) {
  return impl_->finish_answer(is_connected);
}
UploadChunks* ClientSession::chunks() { return impl_->chunks(); }
void ClientSession::stop() { impl_->stop(); }
void ClientSession::stop_if_superseded() { impl_->stop_if_superseded(); }
bool ClientSession::welcome() const { return impl_->welcome(); }
bool ClientSession::answered() const { return impl_->answered(); }
std::uint64_t ClientSession::late() const { return impl_->late(); }
std::uint64_t ClientSession::sent() const { return impl_->sent(); }

}  // namespace gradwire
