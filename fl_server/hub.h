// The server's end of all its clients' connections: listens, shakes hands, numbers the clients, drops what
// misbehaves. One thread; everything happens inside wait() and gather().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "fl_server/client_table.h"
#include "fl_server/connection.h"
#include "proto/log.h"

namespace gradwire {

// Hears who comes and goes, for a record beside the run; from inside wait() and gather().
class HubWatcher {
 public:
  virtual ~HubWatcher() = default;
  virtual void client_joined(ClientId client, const ClientInfo& info, const std::string& peer) = 0;
  // `why` is empty where it was not lost: the server, or the client after its last message, hung up.
  virtual void client_gone(ClientId client, const std::string& why) = 0;
};

struct HubOptions {
  std::uint32_t clients = 0;  // n
  std::string experiment;     // serialised, for the Welcome
  WireTimes times;
  bool handle_signals = false;    // SIGINT and SIGTERM stop the run, a second one the process
  Log log;                        // one line; may be empty
  ClientTable table{0};           // of n clients: who they were in an earlier process, if any
  HubWatcher* watcher = nullptr;  // may be null
  bool asks_constants = false;    // clients must say how smooth their functions are
  std::function<Status(const ClientInfo&)> check;  // of one that joins; an error sends it away. May be empty
};

// What a hub tells the transport once the run has begun, from inside wait().
class HubEvents {
 public:
  virtual ~HubEvents() = default;
  virtual Result<std::span<const std::span<std::byte>>> on_reply_header(
      ClientId client, const Prefix& prefix, std::span<const std::byte> header) = 0;
  virtual Status on_reply(ClientId client, std::uint64_t bytes) = 0;
  // Instead of on_reply: the connection broke; so much of the payload is where on_reply_header said.
  virtual void on_broken_reply(ClientId client, std::uint64_t payload_bytes) = 0;
  // The same for a sum of replies from a relay. is_behind: the client is one of its site, and in the run.
  virtual Result<std::span<const std::span<std::byte>>> on_sum_header(
      std::uint64_t relay, const Prefix& prefix, std::span<const std::byte> header,
      const std::function<bool(ClientId)>& is_behind) = 0;
  virtual Status on_sum(std::uint64_t relay, std::uint64_t bytes) = 0;
  virtual void on_relay_left(std::uint64_t relay) = 0;
  virtual void on_joined(ClientId client) = 0;
  virtual void on_left(ClientId client) = 0;
  virtual void on_stop() = 0;
};

class Hub {
 public:
  // Throws std::runtime_error (one line) when the experiment is too long to be told.
  Hub(HubOptions options, std::unique_ptr<SocketLayer> sockets);
  ~Hub();

  std::string address() const;  // HOST:PORT as bound
  SteadyTime now() const;
  const ClientTable& table() const;
  bool stopped() const;  // the operator asked to stop

  // Until all clients have joined; false: stopped. Throws std::runtime_error that says who is missing.
  bool gather(std::chrono::milliseconds deadline);

  // Sends `start` (a whole frame) to all clients, now and whenever one joins again. From now on replies of up
  // to `max_payload` bytes are taken.
  // takes_sums: relays may add up replies.
  void begin(std::string start, std::uint64_t max_payload, HubEvents& events, bool takes_sums = false);
  // No more events.
  void end();
  // Both do nothing when the client is not connected.
  void send(ClientId client, Outgoing message);
  // The client is behind a relay, which keeps the last body: requests may have a short head.
  bool remembers_bodies(ClientId client) const;
  // Tells relays that add up replies that all who are asked in this ticket, as of now, were sent it.
  void tell_asked(std::uint64_t ticket);
  void send_soon(ClientId client, const std::string& control_frame);
  // Works on the connections until done() or the deadline.
  void wait(SteadyTime deadline, const std::function<bool()>& done);
  // Gives writes that are not through copies of what they borrow.
  void own_pending();

  // Until all clients have heard the last message that they were sent (a client says so),
  // also those that must come back for it; at the latest after `deadline`.
  // False: some have not.
  bool finish(std::chrono::milliseconds deadline);
  // Hangs up on all clients and tells them why. Unless that is `fatal` they come back, in retry_after_ms at
  // the earliest.
  void abandon(const std::string& message, bool fatal, std::uint32_t retry_after_ms);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
