// One accepted socket: frames in, frames out, and no wait without an end. Knows nothing of clients or rounds.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "fl_server/write_queue.h"
#include "proto/frame.h"
#include "proto/result.h"

namespace asio {
class io_context;
}

namespace gradwire {

using SteadyTime = std::chrono::steady_clock::time_point;

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
  // The last call, never from inside another call.
  virtual void on_closed(const std::string& why) = 0;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // Takes the socket `fd`; the rest must outlive the connection.
  Connection(asio::io_context& io, int fd, const WireTimes& times, FrameHandler& handler,
             ConnectionCounts& counts);
  ~Connection();
  void start();

  const std::string& peer() const;  // ADDRESS:PORT
  bool open() const;

  void set_max_payload(std::uint64_t bytes);  // 0 until set
  // Writes at once what the socket takes, the rest as soon as it can.
  void send(Outgoing message);
  void own_sections(OwnedSections& copies);
  bool ending() const;   // a message that is the `last` was sent
  bool writing() const;  // something waits to be written

  // Says why and closes. on_closed follows.
  void refuse(const std::string& message, bool fatal, std::uint32_t retry_after_ms);
  void close(const std::string& why);

  // From now on both ends show signs of life.
  void expect_heartbeats();
  // To be called from time to time: closes what is too slow, sends heartbeats.
  void check_time(SteadyTime now);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
