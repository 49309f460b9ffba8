// One accepted socket: frames in, frames out, and no wait without an end. Knows nothing of clients or rounds.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fl_server/socket_layer.h"
#include "fl_server/write_queue.h"
#include "proto/frame.h"
#include "proto/result.h"

namespace gradwire {

// Network time limits; tests shorten them.
struct WireTimes {
  std::chrono::milliseconds handshake{5'000};     // from accept to Hello
  std::chrono::milliseconds data{30 * 60'000};    // from Welcome to Join: the client reads its data
  std::chrono::milliseconds heartbeat{15'000};    // sent when nothing else was, by either end
  std::uint32_t missed_heartbeats = 3;            // silence after which a peer is given up
  std::chrono::milliseconds write_stall{60'000};  // without a byte taken by the peer
  std::chrono::milliseconds frame_grace{
      30'000};                              // for a frame to arrive, plus its bytes at kMinBytesPerSecond
  std::chrono::milliseconds linger{1'000};  // for a refused peer to read why
  static constexpr std::uint64_t kMinBytesPerSecond = 4096;
};

// Of all connections of one server.
struct ConnectionCounts {
  std::size_t open = 0;       // sockets
  std::size_t borrowing = 0;  // connections that still write borrowed sections
};

// What the owner of a connection is told. An error returned closes the connection with an ErrorMessage.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  // A header, checked against its checksum: says where the payload goes.
  virtual Result<std::span<const std::span<std::byte>>> on_header(const Prefix& prefix,
                                                                  std::span<const std::byte> header) = 0;
  // The payload is where on_header said.
  virtual Status on_frame() = 0;
  // Never from inside another call; only on_shut() follows.
  virtual void on_closed(const std::string& why) = 0;
  // The socket is closed: the connection may be destroyed, from inside this call too.
  virtual void on_shut() = 0;
};

class Connection final : private SocketHandler {
 public:
  // All but the socket must outlive the connection.
  Connection(SocketLayer& sockets, std::unique_ptr<Socket> socket, const WireTimes& times,
             FrameHandler& handler, ConnectionCounts& counts);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  void start();

  const std::string& peer() const;  // ADDRESS:PORT
  bool open() const { return open_; }

  void set_max_payload(std::uint64_t bytes) { max_payload_ = bytes; }  // 0 until set
  // Writes at once what the socket takes, the rest as soon as it can.
  void send(Outgoing message);
  // Writes a control frame together with the next message, at the latest when the time is next checked.
  void send_soon(const std::string& frame) { soon_ += frame; }
  void own_sections(OwnedSections& copies);
  bool ending() const { return ending_; }           // a message that is the `last` was sent
  bool writing() const { return !queue_.empty(); }  // something waits to be written

  // Bytes of the payload that is arriving that are where on_header said; 0: none is.
  std::uint64_t payload_received() const { return stage_ == Stage::kPayload ? payload_done_ : 0; }
  // The rest of a payload that is arriving is dropped: where it was to go is no longer there.
  void skip_payload();

  // Says why and closes. on_closed follows.
  void refuse(const std::string& message, bool fatal, std::uint32_t retry_after_ms);
  void close(const std::string& why);

  // From now on both ends show signs of life.
  void expect_heartbeats() { heartbeats_ = true; }
  // To be called from time to time: closes what is too slow, sends heartbeats.
  void check_time(SteadyTime now);

 private:
  enum class Stage : std::uint8_t { kPrefix, kHeader, kPayload, kSkipped };

  void on_readable() override;
  void on_writable() override;
  void read_frames();
  std::span<std::byte> room();
  void note_frame();
  bool advance();
  bool take_prefix();
  bool take_header();
  void take_payload();
  void note_payload(std::size_t bytes);
  bool frame_is_whole();
  void write();
  void count_borrowing();
  void detach(const std::string& why);
  void shut();

  SocketLayer& sockets_;
  const std::unique_ptr<Socket> socket_;
  const WireTimes& times_;
  FrameHandler& handler_;
  ConnectionCounts& counts_;
  bool open_ = true;  // neither closed nor refused

  // Of what arrives.
  std::uint64_t max_payload_ = 0;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what was read and not used
  Stage stage_ = Stage::kPrefix;
  std::array<std::byte, kPrefixBytes> raw_prefix_{};
  Prefix prefix_;
  std::span<const std::span<std::byte>> targets_;
  std::size_t target_ = 0, target_done_ = 0;  // the first that is not full, and how full it is
  std::uint64_t payload_done_ = 0;
  std::uint64_t frame_bytes_ = 0;  // of the frame that is arriving, as far as known; 0: none is
  SteadyTime frame_started_, heard_;

  // Of what is sent.
  WriteQueue queue_;
  std::string soon_;
  bool waiting_ = false;  // until the socket takes more
  bool refused_ = false;  // what is in the queue says so, and nothing follows
  bool ending_ = false;
  bool borrowing_ = false, heartbeats_ = false;
  SteadyTime progress_, sent_, refused_at_;
};

}  // namespace gradwire
