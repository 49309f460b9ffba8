// The network and the clock as a session manager sees them: the operating system's or a simulation's. All
// code above is a state machine that never waits, so it runs on both.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace gradwire {

using SteadyTime = std::chrono::steady_clock::time_point;

// Callbacks of a socket. Inside these calls the handler may close the socket, but not destroy it.
class SocketHandler {
 public:
  virtual ~SocketHandler() = default;
  // Reports that bytes or the end of the stream may be ready. Called again if something is left unread.
  virtual void on_readable() = 0;
  // Reports that the socket may accept more bytes. Called once for each call of want_write().
  virtual void on_writable() = 0;
};

// The two byte streams of one peer. Destroying the socket closes it.
class Socket {
 public:
  virtual ~Socket() = default;

  // kRefused: a filter rejects what the peer sends, or the peer rejects what the filter sends.
  enum class Got { kSome, kNothing, kEnd, kFailed, kRefused };
  struct Moved {
    Got got = Got::kNothing;
    std::size_t bytes = 0;  // at least 1 with kSome
  };
  // Starts the callbacks, which come from inside SocketLayer::wait().
  virtual void start(SocketHandler& handler) = 0;
  virtual Moved read(std::span<std::byte> to) = 0;
  // Pauses calls of on_readable().
  virtual void pause_reading(bool pause) = 0;
  virtual Moved write(std::span<const std::span<const std::byte>> segments) = 0;
  // Returns the size in bytes from which a segment should be sent by send_zero_copy(). SIZE_MAX means never.
  virtual std::size_t zero_copy_from() const { return SIZE_MAX; }
  // Writes a segment that `owner` keeps alive and that never changes. The socket may read it after the call,
  // and shares ownership until it is done. REQUIRES: the segment has at least zero_copy_from() bytes.
  virtual Moved send_zero_copy(std::span<const std::byte> segment, const std::shared_ptr<const void>& owner) {
    static_cast<void>(owner);
    return write(std::span(&segment, 1));
  }
  virtual void want_write() = 0;
  virtual std::string failure() const = 0;  // the reason of kFailed or kRefused
  virtual void end_writing() = 0;           // the peer reads the end of the stream after the written bytes
  virtual void close() = 0;
  virtual bool is_open() const = 0;
  virtual const std::string& peer() const = 0;  // ADDRESS:PORT
};

class SocketLayerHandler {
 public:
  virtual ~SocketLayerHandler() = default;
  // Returns false to close the connection of this peer (ADDRESS:PORT) before it costs anything.
  virtual bool wants(const std::string& peer) {
    static_cast<void>(peer);
    return true;
  }
  virtual void on_accepted(std::unique_ptr<Socket> socket) = 0;
  // Reports that a peer was disconnected because this process has no free descriptors. Called at most once a
  // tick.
  virtual void on_no_descriptors() = 0;
  virtual void on_tick() = 0;
  virtual void on_stop() = 0;  // the operator asked the process to stop
};

class SocketLayer {
 public:
  virtual ~SocketLayer() = default;
  virtual std::string address() const = 0;  // HOST:PORT that clients connect to
  virtual SteadyTime now() const = 0;
  // Returns the number of sockets that this process can have open at once.
  virtual std::size_t most_sockets() const { return SIZE_MAX; }
  // Returns true if a socket may use send_zero_copy().
  virtual bool zero_copy() const { return false; }
  // Starts to accept connections, and calls the handler from inside wait(). With `signals`, SIGINT and
  // SIGTERM ask to stop; a second one ends the process.
  virtual void start(SocketLayerHandler& handler, std::chrono::milliseconds tick, bool signals) = 0;
  virtual void stop_accepting() = 0;
  // Starts a connection to HOST:PORT. Reads and writes return kNothing until it is established, or kFailed if
  // it fails.
  virtual Result<std::unique_ptr<Socket>> connect(const std::string& address) = 0;
  // Calls `job` soon, from inside wait(), after the current callback. With sockets of the operating system,
  // any thread may call this.
  virtual void post(std::function<void()> job) = 0;
  // Runs callbacks until done() returns true or the deadline passes. If the deadline has not passed yet,
  // checks done() first.
  virtual void wait(SteadyTime deadline, const std::function<bool()>& done) = 0;
};

}  // namespace gradwire
