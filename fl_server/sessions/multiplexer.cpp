#include "fl_server/sessions/multiplexer.h"

namespace gradwire {

std::span<const std::span<std::byte>> Multiplexer::on_header(const Prefix& prefix,
                                                             std::span<const std::byte> header) {
  if (arriving_.link != nullptr) arriving_.link->set_arriving(false);
  arriving_ = {};
  auto found = channels_.find(prefix.channel);
  if (found == channels_.end()) {
    if (prefix.type != FrameType::kHello) return {};  // from a client that was refused meanwhile
    const Channel opened = opener_(prefix.channel);
    if (opened.link == nullptr) return {};
    found = channels_.emplace(prefix.channel, opened).first;
  }
  const Channel channel = found->second;
  if (!channel.link->open()) return {};
  const auto targets = channel.handler->on_header(prefix, header);
  if (!targets) {
    channel.link->refuse(targets.error().message, false, channel.handler->on_misbehaviour());
    return {};
  }
  if (!channel.link->open()) return {};
  arriving_ = channel;
  arriving_.link->set_arriving(true);
  return *targets;
}

void Multiplexer::on_frame() {
  if (arriving_.link == nullptr) return;
  const Channel channel = std::exchange(arriving_, {});
  channel.link->set_arriving(false);
  if (!channel.link->open()) return;
  if (const Status status = channel.handler->on_frame(); !status)
    channel.link->refuse(status.error().message, false, channel.handler->on_misbehaviour());
}

void Multiplexer::forget(std::uint32_t channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  if (arriving_.link == found->second.link) arriving_ = {};
  channels_.erase(found);
}

void Multiplexer::lost(const std::string& why) {
  for (const auto& [number, channel] : channels_) channel.link->multiplexer_lost(why);
  channels_.clear();
  arriving_ = {};
}

}  // namespace gradwire
