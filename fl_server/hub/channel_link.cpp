#include "fl_server/hub/channel_link.h"

#include <utility>

#include "proto/wire/control_frame.h"

namespace gradwire {
namespace {

constexpr std::uint64_t kMostBytesBeforeResync = 32 << 20;  // that wait for the relay to take them

}  // namespace

ChannelLink::ChannelLink(SocketLayer& sockets, Connection& trunk, std::uint32_t channel,
                         FrameHandler& handler)
    : sockets_(sockets),
      trunk_(&trunk),
      channel_(channel),
      handler_(handler),
      peer_("relay " + trunk.peer() + " channel " + std::to_string(channel)) {}

void ChannelLink::detach(const std::string& why) {
  if (!std::exchange(open_, false)) return;
  sockets_.post([this, why] {
    handler_.on_closed(why);
    handler_.on_shut();
  });
}

void ChannelLink::trunk_lost(const std::string& why) {
  received_ = payload_received();
  trunk_ = nullptr;
  detach(why);
}

void ChannelLink::send(Outgoing message) {
  if (!open_ || ending_) return;
  // Discarded: the server asks the client again, and then there may be room.
  if (!message.sections.empty() && trunk_->bytes_waiting() > kMostBytesBeforeResync) return;
  ending_ = std::exchange(message.last, false);
  const std::string soon = std::exchange(soon_, {});
  message.head = on_channel(soon + message.head, channel_);
  if (!message.short_head.empty()) message.short_head = on_channel(soon + message.short_head, channel_);
  message.channel = channel_;
  trunk_->send(std::move(message));
}

std::uint64_t ChannelLink::payload_received() const {
  if (trunk_ == nullptr) return received_;
  return arriving_ ? trunk_->payload_received() : 0;
}

void ChannelLink::skip_payload() {
  if (trunk_ != nullptr && arriving_) trunk_->skip_payload();
}

void ChannelLink::refuse(const std::string& message, bool fatal, std::uint32_t retry_after_ms) {
  if (!open_) return;
  skip_payload();
  const bool was_ending = std::exchange(ending_, false);
  send(Outgoing::control(error_frame(message, fatal, retry_after_ms)));
  ending_ = was_ending;
  detach(message);
}

void ChannelLink::check_time(SteadyTime) {
  if (open_ && !soon_.empty() && !trunk_->writing()) send(Outgoing::control(std::exchange(soon_, {})));
}

}  // namespace gradwire
