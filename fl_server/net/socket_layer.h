// Where a session manager's connections come from, and its clock: the operating system's sockets, or a
// simulation of them. Everything above is a state machine that never waits, so it runs on either.
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

// What the user of a socket is told. Inside these calls it may close the socket, not destroy it.
class SocketHandler {
 public:
  virtual ~SocketHandler() = default;
  // There may be bytes to read, or the end; called again if something is left unread.
  virtual void on_readable() = 0;
  // Called once for each call of want_write().
  virtual void on_writable() = 0;
};

// One peer's two streams of bytes. Destroying it closes it.
class Socket {
 public:
  virtual ~Socket() = default;

  // kRefused: a filter on the way does not take what the peer sends, or the peer not what the filter does.
  enum class Got { kSome, kNothing, kEnd, kFailed, kRefused };
  struct Moved {
    Got got = Got::kNothing;
    std::size_t bytes = 0;  // kSome: at least one
  };
  // From now on the handler is called, from inside SocketLayer::wait().
  virtual void start(SocketHandler& handler) = 0;
  virtual Moved read(std::span<std::byte> to) = 0;
  // While paused, on_readable() is not called.
  virtual void pause_reading(bool pause) = 0;
  virtual Moved write(std::span<const std::span<const std::byte>> pieces) = 0;
  // From how many bytes on send_zero_copy() copies less than write(); SIZE_MAX: never.
  virtual std::size_t zero_copy_from() const { return SIZE_MAX; }
  // Writes a piece that lies in memory of `owner` and never changes. The socket may go on reading it after
  // the call; as long as it does, it holds the owner. REQUIRES: zero_copy_from() is no more than its size.
  virtual Moved send_zero_copy(std::span<const std::byte> piece, const std::shared_ptr<const void>& owner) {
    static_cast<void>(owner);
    return write(std::span(&piece, 1));
  }
  virtual void want_write() = 0;
  virtual std::string failure() const = 0;  // why kFailed or kRefused, in words
  virtual void end_writing() = 0;           // the peer sees the end of the stream after what was written
  virtual void close() = 0;
  virtual bool is_open() const = 0;
  virtual const std::string& peer() const = 0;  // ADDRESS:PORT
};

class SocketLayerHandler {
 public:
  virtual ~SocketLayerHandler() = default;
  // Returns false if the connection of this peer, ADDRESS:PORT, is to be closed before it costs anything.
  virtual bool wants(const std::string& peer) {
    static_cast<void>(peer);
    return true;
  }
  virtual void on_accepted(std::unique_ptr<Socket> socket) = 0;
  // A peer was disconnected because this process can have no more sockets; called once a tick at most.
  virtual void on_turned_away() = 0;
  virtual void on_tick() = 0;
  virtual void on_stop() = 0;  // the operator asked to stop
};

class SocketLayer {
 public:
  virtual ~SocketLayer() = default;
  virtual std::string address() const = 0;  // HOST:PORT that clients connect to
  virtual SteadyTime now() const = 0;
  // How many sockets this process can have at the same time.
  virtual std::size_t most_sockets() const { return SIZE_MAX; }
  // Whether a socket may have a use for send_zero_copy().
  virtual bool zero_copy() const { return false; }
  // Accepts from now on, and calls the handler from inside wait(). `signals`: SIGINT and SIGTERM ask to stop,
  // a second one ends the process.
  virtual void start(SocketLayerHandler& handler, std::chrono::milliseconds tick, bool signals) = 0;
  virtual void stop_accepting() = 0;
  // Begins a connection to HOST:PORT. Reads and writes give kNothing until it is established, and kFailed
  // when it cannot be.
  virtual Result<std::unique_ptr<Socket>> connect(const std::string& address) = 0;
  // Calls `job` soon, from inside wait(), after the call that is running now. Any thread may call it on the
  // sockets of the operating system.
  virtual void post(std::function<void()> job) = 0;
  // Works until done() or the deadline. Before the deadline, done() is asked first.
  virtual void wait(SteadyTime deadline, const std::function<bool()>& done) = 0;
};

}  // namespace gradwire
