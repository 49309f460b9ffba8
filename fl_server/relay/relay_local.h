// The connection of one client to its relay.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "fl_server/net/connection.h"
#include "fl_server/net/forwarded_frame.h"

namespace gradwire {

class Local;

// Callbacks of a client's connection to its relay.
class LocalOwner {
 public:
  virtual ~LocalOwner() = default;
  virtual void sent_hello(std::uint32_t channel) = 0;
  virtual void from_local(std::uint32_t channel, ForwardedFrame& forwarded) = 0;
  virtual void local_left(Local& local, const std::string& why) = 0;
  virtual void erase(std::uint32_t channel) = 0;
};

class Local final : public FrameHandler {
 public:
  Local(LocalOwner& relay, std::uint32_t channel, SocketLayer& sockets, std::unique_ptr<Socket> socket,
        const WireTimes& times, ConnectionCounts& counts)
      : relay_(relay),
        channel_(channel),
        times_(times),
        connection_(sockets, std::move(socket), times, *this, counts) {
    idle_timer_.restart(sockets.now());
  }

  Connection& connection() { return connection_; }
  std::uint32_t channel() const { return channel_; }
  bool sent_hello() const { return sent_hello_; }
  bool received_shutdown = false, server_closed = false;

  void check_time(SteadyTime now) {
    if (!sent_hello_ && idle_timer_.is_over(now, times_.handshake))
      connection_.refuse("no Hello within " + std::to_string(times_.handshake.count()) + " ms", false, 0);
    connection_.check_time(now);
  }

  Result<std::span<const std::span<std::byte>>> on_header(const Prefix& prefix,
                                                          std::span<const std::byte> header) override {
    if (!sent_hello_ && prefix.type != FrameType::kHello) return Error{"the first message must be a Hello"};
    if (prefix.payload_len > 0 && prefix.type != FrameType::kReply && prefix.type != FrameType::kChunk)
      return Error{"only a Reply, or a chunk of one, may have a payload"};
    if (!std::exchange(sent_hello_, true)) {
      connection_.expect_heartbeats();
      relay_.sent_hello(channel_);
    }
    return forwarded_.begin(prefix, header);
  }
  Status on_frame() override {
    if (forwarded_.prefix.type != FrameType::kHeartbeat) relay_.from_local(channel_, forwarded_);
    forwarded_.payload.reset();
    return Unit{};
  }
  void on_closed(const std::string& why) override { relay_.local_left(*this, why); }
  void on_shut() override { relay_.erase(channel_); }

 private:
  LocalOwner& relay_;
  const std::uint32_t channel_;
  const WireTimes& times_;
  IdleTimer idle_timer_;  // starts when the client connects
  bool sent_hello_ = false;
  ForwardedFrame forwarded_;
  Connection connection_;
};

}  // namespace gradwire
