// A relay's connection: hands what arrives to the sessions of its channels.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fl_server/hub/mux_channel.h"

namespace gradwire {

// A session and its link, as the multiplexer knows them.
struct Channel {
  FrameHandler* handler = nullptr;
  MuxChannel* link = nullptr;  // null: there is no such channel
};

class Multiplexer {
 public:
  // A new client of the relay; a channel without a link when there are too many.
  using Opener = std::function<Channel(std::uint32_t channel)>;
  explicit Multiplexer(Opener opener) : opener_(std::move(opener)) {}

  // As FrameHandler's, for frames of channels. An error refuses only the channel, and the multiplexer goes
  // on.
  std::span<const std::span<std::byte>> on_header(const Prefix& prefix, std::span<const std::byte> header);
  void on_frame();
  // The channel's session ends.
  void forget(std::uint32_t channel);
  void lost(const std::string& why);
  bool empty() const { return channels_.empty(); }

 private:
  const Opener opener_;
  std::map<std::uint32_t, Channel> channels_;
  Channel arriving_;
};

}  // namespace gradwire
