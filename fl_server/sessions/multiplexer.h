// The multiplexer of a relay's connection. It passes arriving frames to the sessions of its channels.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fl_server/sessions/mux_channel.h"

namespace gradwire {

// A session and its link.
struct Channel {
  FrameHandler* handler = nullptr;
  MuxChannel* link = nullptr;  // null if the channel does not exist
};

class Multiplexer {
 public:
  // Opens a channel for a new client of the relay. Returns a channel without a link if there are too many.
  using Opener = std::function<Channel(std::uint32_t channel)>;
  explicit Multiplexer(Opener opener) : opener_(std::move(opener)) {}

  // Implement FrameHandler for the frames of channels. An error refuses only its channel; the multiplexer
  // continues.
  std::span<const std::span<std::byte>> on_header(const Prefix& prefix, std::span<const std::byte> header);
  void on_frame();
  // Removes a channel whose session has ended.
  void forget(std::uint32_t channel);
  void lost(const std::string& why);
  bool empty() const { return channels_.empty(); }

 private:
  const Opener opener_;
  std::map<std::uint32_t, Channel> channels_;
  Channel arriving_;
};

}  // namespace gradwire
