// Many peers of one server in one process, in one thread, on as many sockets: clients that answer each
// request with vectors that depend on the client and the round alone, and others that mean no good. They
// speak the protocol themselves: ten thousand clients of the library would be ten thousand threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gradwire::bench {

struct LoadOptions {
  std::string server{};               // 127.0.0.1:PORT
  std::uint32_t honest = 0, bad = 0;  // clients 0, 1, ..., honest - 1, and the next ones
  enum class Bad : std::uint8_t { kSilent, kNan } kind = Bad::kSilent;
  std::uint32_t slow = 0, garbage = 0;  // connections of strangers at a time
  std::uint32_t dim = 0;                // of the vectors
  enum class ReplyKind : std::uint8_t { kDoubles, kFloats, kNothing } reply = ReplyKind::kDoubles;
  // False: a server without a handshake, which speaks first; its clients are numbered as they connect.
  bool greets = true;
  std::string ca_pin{};  // they speak TLS to a server of this authority; empty: no TLS
  // At most so many clients have begun a connection and have no Welcome yet.
  std::uint32_t most_opening = UINT32_MAX;
  // The longest back-off of clients that have lost their connection (proto/wire/back_off.h); nothing: with
  // that of an honest client all end.
  std::optional<std::chrono::milliseconds> back_off_cap{};
  std::uint32_t clients() const { return honest + bad; }
};

// How many sockets this process may have, now that its limit is raised as far as the system allows.
std::uint32_t most_load_sockets();

// All of them in a process of its own, in one thread, until all honest clients have heard the shutdown; for
// ever, if there are none. REQUIRES: this process has one thread.
class LoadProcess {
 public:
  explicit LoadProcess(const LoadOptions& options);
  LoadProcess(const LoadProcess&) = delete;
  LoadProcess& operator=(const LoadProcess&) = delete;
  ~LoadProcess();

  void end();
  // Also when a client that does not come back has lost its connection. Does not wait.
  bool ended();
  // Clients that were sent the Start on the connection that they have; without a handshake, that are
  // connected.
  std::uint32_t in_run() const;

 private:
  struct LoadProgress;
  LoadProgress* progress_;  // shared by both
  pid_t pid_;
};

}  // namespace gradwire::bench
