#include "fl_server/sessions/mux_channel.h"

#include <utility>

#include "proto/wire/control_frame.h"

namespace gradwire {
namespace {

constexpr std::uint64_t kMostBytesBeforeResync = 32 << 20;  // bytes that may wait for the relay

}  // namespace

MuxChannel::MuxChannel(SocketLayer& sockets, Connection& multiplexer, std::uint32_t channel,
                       FrameHandler& handler)
    : sockets_(sockets),
      multiplexer_(&multiplexer),
      channel_(channel),
      handler_(handler),
      peer_("relay " + multiplexer.peer() + " channel " + std::to_string(channel)) {}

void MuxChannel::detach(const std::string& why) {
  if (!std::exchange(open_, false)) return;
  sockets_.post([this, why] {
    handler_.on_closed(why);
    handler_.on_shut();
  });
}

void MuxChannel::multiplexer_lost(const std::string& why) {
  received_ = payload_received();
  multiplexer_ = nullptr;
  detach(why);
}

void MuxChannel::send(Outgoing message) {
  if (!open_ || ending_) return;
  // Discarded: the server asks the client again later, when there may be room.
  if (!message.sections.empty() && multiplexer_->bytes_waiting() > kMostBytesBeforeResync) return;
  ending_ = std::exchange(message.last, false);
  const std::string soon = std::exchange(soon_, {});
  message.head = on_channel(soon + message.head, channel_);
  if (!message.short_head.empty()) message.short_head = on_channel(soon + message.short_head, channel_);
  message.channel = channel_;
  multiplexer_->send(std::move(message));
}

std::uint64_t MuxChannel::payload_received() const {
  if (multiplexer_ == nullptr) return received_;
  return arriving_ ? multiplexer_->payload_received() : 0;
}

void MuxChannel::skip_payload() {
  if (multiplexer_ != nullptr && arriving_) multiplexer_->skip_payload();
}

void MuxChannel::refuse(const std::string& message, bool fatal, std::uint32_t retry_after_ms) {
  if (!open_) return;
  skip_payload();
  const bool was_ending = std::exchange(ending_, false);
  send(Outgoing::control(error_frame(message, fatal, retry_after_ms)));
  ending_ = was_ending;
  detach(message);
}

void MuxChannel::check_time(SteadyTime) {
  if (open_ && !soon_.empty() && !multiplexer_->writing()) send(Outgoing::control(std::exchange(soon_, {})));
}

}  // namespace gradwire
