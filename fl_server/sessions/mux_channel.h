// The link of a relayed client: a channel of the relay's connection.
#pragma once

#include <memory>
#include <string>

#include "fl_server/net/connection.h"

namespace gradwire {

class MuxChannel final : public FrameLink {
 public:
  // The sockets and the handler must outlive the link. The multiplexer must live until multiplexer_lost().
  MuxChannel(SocketLayer& sockets, Connection& multiplexer, std::uint32_t channel, FrameHandler& handler);

  std::uint32_t channel() const { return channel_; }
  // Reports that the relay's connection is lost.
  void multiplexer_lost(const std::string& why);
  bool is_lost() const { return multiplexer_ == nullptr; }
  // Notes whether the frame arriving on the multiplexer is for this channel.
  void set_arriving(bool arriving) { arriving_ = arriving; }

  void start() override {}
  const std::string& peer() const override { return peer_; }
  bool open() const override { return open_; }
  void set_max_payload(std::uint64_t) override {}  // the multiplexer has the limit
  void send(Outgoing message) override;
  void send_soon(const std::string& frame) override {
    if (soon_.size() < kMostSoon) soon_ += frame;
  }
  void own_sections() override {}  // the multiplexer has the queue
  bool ending() const override { return ending_; }
  std::uint64_t payload_received() const override;
  void skip_payload() override;
  void refuse(const std::string& message, bool fatal, std::uint32_t retry_after_ms) override;
  void close(const std::string& why) override { refuse(why, false, 0); }
  // Does nothing: the heartbeats of the multiplexer cover the relay, which reports clients that leave.
  void expect_heartbeats() override {}
  void check_time(SteadyTime now) override;

 private:
  void detach(const std::string& why);

  SocketLayer& sockets_;
  Connection* multiplexer_;  // null once lost
  const std::uint32_t channel_;
  FrameHandler& handler_;
  const std::string peer_;
  std::string soon_;
  bool open_ = true, ending_ = false, arriving_ = false;
  std::uint64_t received_ = 0;  // payload bytes received when the multiplexer was lost
};

}  // namespace gradwire
