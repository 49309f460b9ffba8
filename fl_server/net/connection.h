// One accepted socket: frames in, frames out, and every wait has a limit. Knows nothing of clients or rounds.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fl_server/net/frame_link.h"
#include "fl_server/net/idle_timer.h"
#include "fl_server/net/receive_budget.h"
#include "fl_server/net/server_metrics.h"

namespace gradwire {

// Network time limits; tests shorten them.
struct WireTimes {
  std::chrono::milliseconds handshake{5'000};     // from accept to Hello
  std::chrono::milliseconds data{30 * 60'000};    // from Welcome to Join: the client reads its data
  std::chrono::milliseconds heartbeat{15'000};    // sent when nothing else was, by either end
  std::uint32_t missed_heartbeats = 3;            // silence after which a peer is given up
  std::chrono::milliseconds write_stall{60'000};  // over which a peer must take min_bytes_per_second
  // For a frame to arrive, or for so much of it to arrive as min_bytes_per_second says.
  std::chrono::milliseconds frame_grace{30'000};
  std::chrono::milliseconds linger{1'000};  // for a refused peer to read why
  std::uint64_t min_bytes_per_second = 4096;

  // How often to check these limits.
  std::chrono::milliseconds tick() const {
    using std::chrono::milliseconds;
    return std::clamp(std::min({handshake, heartbeat, linger}) / 4, milliseconds(10), milliseconds(1000));
  }
};

inline constexpr std::size_t kReadBytes = 4096;  // of a socket at a time; a small message arrives in one read

// Of all connections of one server.
struct ConnectionCounts {  // outlives what the socket layer still has to do
  ServerMetrics& server_metrics;
  std::size_t open = 0;          // sockets
  std::size_t borrowing = 0;     // connections that still write borrowed sections
  ReceiveBudget receive_budget;  // of arriving payloads
  // Where each in turn reads what is not the payload of a long message: behind what it has kept, which is at
  // most a prefix and a header.
  std::vector<std::byte> arriving = std::vector<std::byte>(kPrefixBytes + kMaxHeaderBytes + kReadBytes);
};

class Connection final : public FrameLink, private SocketHandler, private ReceiveBudgetWaiter {
 public:
  // All but the socket must outlive the connection.
  Connection(SocketLayer& sockets, std::unique_ptr<Socket> socket, const WireTimes& times,
             FrameHandler& handler, ConnectionCounts& counts);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start() override;
  const std::string& peer() const override;
  bool open() const override { return open_; }
  void set_max_payload(std::uint64_t bytes) override { max_payload_ = bytes; }
  void send(Outgoing message) override;
  void send_soon(const std::string& frame) override {
    if (soon_.size() < kMostSoon) soon_ += frame;  // discarded when the peer does not read
  }
  void own_sections() override;
  bool ending() const override { return ending_; }
  std::uint64_t payload_received() const override {
    return stage_ == ReadStage::kPayload ? payload_done_ : 0;
  }
  void skip_payload() override;
  void refuse(const std::string& message, bool fatal, std::uint32_t retry_after_ms) override;
  void close(const std::string& why) override;
  void expect_heartbeats() override { heartbeats_ = true; }
  void check_time(SteadyTime now) override;

  // From now on every frame names its channel.
  void carry_channels() { channels_ = true; }
  bool writing() const { return !queue_.empty(); }  // something waits to be written
  std::uint64_t bytes_waiting() const { return queue_.bytes(); }
  // A peer is disconnected when more than this waits for it.
  void limit_waiting(std::uint64_t bytes) { most_waiting_ = bytes; }
  // While paused, nothing is read, and the peer's silence does not disconnect it.
  void pause_reading(bool pause);

 private:
  enum class ReadStage : std::uint8_t { kPrefix, kHeader, kPayload, kSkipped };

  void on_readable() override;
  void on_writable() override;
  void on_room() override;
  void read_frames();
  std::span<std::byte> room();
  void use_what_arrived();
  bool advance();
  bool take_prefix();
  bool take_header();
  void take_payload();
  void note_payload(std::size_t bytes);
  bool frame_is_whole();
  bool has_room();
  void give_room_back();
  std::string too_slow(SteadyTime now);
  void misbehaves(const std::string& what);
  void write();
  void count_borrowing();
  void detach(const std::string& why);
  void refuse_for(Ending ending, const std::string& message);
  void close_for(Ending ending, const std::string& why);
  void shut();

  SocketLayer& sockets_;
  const std::unique_ptr<Socket> socket_;
  const WireTimes& times_;
  FrameHandler& handler_;
  ConnectionCounts& counts_;
  bool open_ = true;  // neither closed nor refused

  // Of what arrives.
  std::uint64_t max_payload_ = 0;
  bool channels_ = false;
  std::vector<std::byte> kept_;        // the beginning of a frame, until more of it arrives
  std::span<const std::byte> unused_;  // of what has arrived; empty outside the calls that use it
  ReadStage stage_ = ReadStage::kPrefix;
  std::array<std::byte, kPrefixBytes> raw_prefix_{};
  Prefix prefix_;
  std::span<const std::span<std::byte>> targets_;
  std::size_t target_ = 0, target_done_ = 0;  // the first that is not full, and how full it is
  std::uint64_t payload_done_ = 0;
  std::uint64_t frame_bytes_ = 0;  // of the frame that is arriving, as far as known; 0: none is
  IdleTimer silence_, arrival_;    // with the peer; with that frame, or with what of it came since then:
  std::uint64_t arrived_ = 0;      // payload_done_ when arrival_ began
  std::uint64_t staged_ = 0;       // reserved for its payload
  bool waits_ = false;             // for that: nothing is read
  IdleTimer holding_;              // since that is reserved

  // Of what is sent.
  WriteQueue queue_;
  std::string soon_;
  std::uint64_t most_waiting_ = UINT64_MAX;  // bytes
  bool waiting_ = false;                     // until the socket takes more
  bool refused_ = false;                     // the queue holds the refusal, and nothing follows it
  bool ending_ = false;
  bool borrowing_ = false, heartbeats_ = false, paused_ = false;
  IdleTimer stall_;
  std::uint64_t taken_ = 0;  // queue_.taken() when stall_ began
  SteadyTime sent_, refused_at_;
};

}  // namespace gradwire
