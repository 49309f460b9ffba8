// Many peers of one server in one process and one thread, each with its own socket. Clients answer each
// request with vectors that depend only on the client and the round; other peers attack the server. This file
// implements the protocol itself, because ten thousand clients of the library would need ten thousand
// threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gradwire::bench {

struct LoadOptions {
  std::string server{};             // 127.0.0.1:PORT
  std::uint32_t good = 0, bad = 0;  // numbers of well-behaved and of other clients
  enum class Bad : std::uint8_t { kSilent, kNan } kind = Bad::kSilent;
  std::uint32_t slow = 0, garbage = 0;  // numbers of peers that send an endless Hello, or garbage
  std::uint32_t dim = 0;                // length of the vectors
  enum class ReplyKind : std::uint8_t { kDoubles, kFloats, kNothing } reply = ReplyKind::kDoubles;
  // False if the server has no handshake and sends the first message. Such a server numbers the clients in
  // the order in which they connect.
  bool greets = true;
  std::string ca_pin{};  // fingerprint of the CA that certified the server; empty for no TLS
  // Largest number of clients that have begun a connection and have no Welcome yet.
  std::uint32_t most_opening = UINT32_MAX;
  // Longest back-off of clients that lost their connection (proto/wire/back_off.h). Without it, all clients
  // end once a well-behaved one loses its connection.
  std::optional<std::chrono::milliseconds> back_off_cap{};
  std::uint32_t clients() const { return good + bad; }
};

// Raises this process's limit of open files as far as the system allows. Returns how many sockets then fit.
std::uint32_t most_load_sockets();

// A child process that runs all peers in one thread. It ends once all well-behaved clients have received the
// shutdown. It does not end if there are no such clients. REQUIRES: this process has one thread.
class LoadProcess {
 public:
  explicit LoadProcess(const LoadOptions& options);
  LoadProcess(const LoadProcess&) = delete;
  LoadProcess& operator=(const LoadProcess&) = delete;
  ~LoadProcess();

  void end();
  // Returns whether the process has ended. It also ends if a well-behaved client loses its connection and
  // does not retry. Does not wait.
  bool ended();
  // Returns the number of clients that have received the Start on their current connection. Counts all
  // connected clients if there is no handshake.
  std::uint32_t in_run() const;

 private:
  struct LoadProgress;
  LoadProgress* progress_;  // shared by both processes
  pid_t pid_;
};

}  // namespace gradwire::bench
