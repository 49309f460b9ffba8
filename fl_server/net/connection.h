// Frames in and out over one accepted socket. Every wait has a time limit. This file knows no clients and no
// rounds.
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
  std::chrono::milliseconds handshake{5'000};   // from accept to Hello
  std::chrono::milliseconds data{30 * 60'000};  // from Welcome to Join, while the client reads its data
  std::chrono::milliseconds heartbeat{15'000};  // sent by either end if it sent nothing else for so long
  std::uint32_t missed_heartbeats = 3;          // a silent peer is disconnected after so many
  // Period in which a peer must read at the rate min_bytes_per_second.
  std::chrono::milliseconds write_stall{60'000};
  // Period in which a frame must arrive, or at least make progress at the rate min_bytes_per_second.
  std::chrono::milliseconds frame_grace{30'000};
  std::chrono::milliseconds linger{1'000};  // gives a refused peer the time to read the reason
  std::uint64_t min_bytes_per_second = 4096;

  // Returns the period of the checks of these limits.
  std::chrono::milliseconds tick() const {
    using std::chrono::milliseconds;
    return std::clamp(std::min({handshake, heartbeat, linger}) / 4, milliseconds(10), milliseconds(1000));
  }
};

// Bytes of one read from a socket; a small message arrives in one read.
inline constexpr std::size_t kReadBytes = 4096;

// The shared state of all connections of one server. It must outlive the pending jobs of the socket layer.
struct ConnectionCounts {
  ServerMetrics& server_metrics;
  std::size_t open = 0;          // sockets
  std::size_t borrowing = 0;     // connections that still write borrowed sections
  ReceiveBudget receive_budget;  // for arriving payloads
  // Shared read buffer for all bytes except the payloads of long messages. A connection first copies the
  // bytes that it kept into the buffer, at most a prefix and a header.
  std::vector<std::byte> arriving = std::vector<std::byte>(kPrefixBytes + kMaxHeaderBytes + kReadBytes);
};

class Connection final : public FrameLink, private SocketHandler, private ReceiveBudgetWaiter {
 public:
  // All arguments except the socket must outlive the connection.
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
    if (soon_.size() < kMostSoon) soon_ += frame;  // discarded if the peer does not read
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

  // Requires a channel number in each frame from now on.
  void carry_channels() { channels_ = true; }
  bool writing() const { return !queue_.empty(); }  // true if something waits to be written
  std::uint64_t bytes_waiting() const { return queue_.bytes(); }
  // Disconnects the peer as soon as more bytes than this wait for it.
  void limit_waiting(std::uint64_t bytes) { most_waiting_ = bytes; }
  // Pauses reading. A silent peer is not disconnected while reading is paused.
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

  // Receiving.
  std::uint64_t max_payload_ = 0;
  bool channels_ = false;
  std::vector<std::byte> kept_;        // beginning of a frame whose rest is still to come
  std::span<const std::byte> unused_;  // received bytes not yet used; empty outside the calls that use it
  ReadStage stage_ = ReadStage::kPrefix;
  std::array<std::byte, kPrefixBytes> raw_prefix_{};
  Prefix prefix_;
  std::span<const std::span<std::byte>> targets_;
  // Index of the first target that is not full, and the bytes in it.
  std::size_t target_ = 0, target_done_ = 0;
  std::uint64_t payload_done_ = 0;
  std::uint64_t frame_bytes_ = 0;  // size of the arriving frame, as far as known; 0 if there is none
  // silence_: time without bytes; arrival_: time of the frame, or since its last progress check.
  IdleTimer silence_, arrival_;
  std::uint64_t arrived_ = 0;  // payload_done_ when arrival_ began
  std::uint64_t staged_ = 0;   // bytes reserved for the payload
  bool waits_ = false;         // true while it waits for that reservation; then nothing is read
  IdleTimer holding_;          // time since the reservation

  // Sending.
  WriteQueue queue_;
  std::string soon_;
  std::uint64_t most_waiting_ = UINT64_MAX;  // limit of bytes_waiting()
  bool waiting_ = false;                     // true until the socket accepts more
  bool refused_ = false;                     // the queue holds the refusal; nothing follows it
  bool ending_ = false;
  bool borrowing_ = false, heartbeats_ = false, paused_ = false;
  IdleTimer stall_;
  std::uint64_t taken_ = 0;  // queue_.taken() when stall_ began
  SteadyTime sent_, refused_at_;
};

}  // namespace gradwire
