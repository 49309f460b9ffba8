#include "fl_server/channel_link.h"

#include <utility>

#include "proto/control_frame.h"

namespace gradwire {

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
  ending_ = std::exchange(message.last, false);
  message.head = on_channel(std::exchange(soon_, {}) + message.head, channel_);
  message.request = 0;  // the other clients' messages do not supersede it
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
  if (open_ && !soon_.empty()) send(Outgoing::control(std::exchange(soon_, {})));
}

}  // namespace gradwire
