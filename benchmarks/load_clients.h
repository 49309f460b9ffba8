// Many peers of one server in one process and one thread, each with its own socket. Clients answer each
// request with vectors that depend only on the client and the round; other peers attack the server. They
// implement the protocol themselves, because ten thousand clients of the library would need ten thousand
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
  std::uint32_t good = 0, bad = 0;  // number of well-behaved clients, which come first, and of others
  enum class Bad : std::uint8_t { kSilent, kNan } kind = Bad::kSilent;
  std::uint32_t slow = 0, garbage = 0;  // unauthenticated connections at a time
  std::uint32_t dim = 0;                // length of the vectors
  enum class ReplyKind : std::uint8_t { kDoubles, kFloats, kNothing } reply = ReplyKind::kDoubles;
  // False for a server without a handshake, which speaks first. It numbers the clients as they connect.
  bool greets = true;
  std::string ca_pin{};  // with it, clients use TLS with a server of this authority; empty for no TLS
  // Largest number of clients that have begun a connection and have no Welcome yet.
  std::uint32_t most_opening = UINT32_MAX;
  // Longest back-off of clients that lost their connection (proto/wire/back_off.h). Without it, all clients
  // end once a well-behaved one loses its connection.
  std::optional<std::chrono::milliseconds> back_off_cap{};
  std::uint32_t clients() const { return good + bad; }
};

// Raises this process's limit of sockets as far as the system allows, and returns it.
std::uint32_t most_load_sockets();

// Runs all peers in one thread of a process of its own. It ends once all well-behaved clients have got the
// shutdown; without such clients it does not end. REQUIRES: this process has one thread.
class LoadProcess {
 public:
  explicit LoadProcess(const LoadOptions& options);
  LoadProcess(const LoadProcess&) = delete;
  LoadProcess& operator=(const LoadProcess&) = delete;
  ~LoadProcess();

  void end();
  // Returns true if the process ended, or a client lost its connection and does not retry. Does not wait.
  bool ended();
  // Returns the number of clients that got the Start on their current connection. Without a handshake, counts
  // the connected clients.
  std::uint32_t in_run() const;

 private:
  struct LoadProgress;
  LoadProgress* progress_;  // shared by both processes
  pid_t pid_;
};

}  // namespace gradwire::bench
