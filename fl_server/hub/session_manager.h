// The server's end of all its clients' connections: listens, shakes hands, numbers the clients, disconnects
// those that misbehave. One thread; everything happens inside wait() and gather().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/log.h"
#include "fl_server/hub/authenticator.h"
#include "fl_server/hub/ban_list.h"
#include "fl_server/hub/client_table.h"
#include "fl_server/hub/rate_limit.h"
#include "fl_server/net/connection.h"
#include "fl_server/net/server_metrics.h"

namespace gradwire {

// Is told who joins and leaves, for a record beside the run; from inside wait() and gather().
class SessionObserver {
 public:
  virtual ~SessionObserver() = default;
  virtual void client_joined(ClientId client, const ClientInfo& info, const std::string& peer) = 0;
  // `why` is empty when the client was not lost: the server disconnected it, or it left after its last
  // message.
  virtual void client_gone(ClientId client, const std::string& why) = 0;
};

struct SessionManagerOptions {
  std::uint32_t clients = 0;  // n
  std::string experiment;     // serialised, for the Welcome
  WireTimes times;
  bool handle_signals = false;         // SIGINT and SIGTERM stop the run, a second one the process
  Log log;                             // one line; may be empty
  ClientTable table{0};                // of n clients: who they were in an earlier process, if any
  SessionObserver* watcher = nullptr;  // may be null
  bool asks_constants = false;         // clients must say how smooth their functions are
  std::function<Status(const ClientInfo&)> check;  // of a new client; an error refuses it. May be empty
  Authenticator* authenticator = nullptr;          // whom to let in; null: whoever comes
  ServerMetrics* server_metrics = nullptr;         // what happens is counted there; may be null
  // What may wait for a relay, beside what its clients are told at the start and two messages of a round.
  std::uint64_t most_for_relay_bytes = 64 << 20;
  BanLimits bans{};
  std::uint32_t most_from_address = 0;              // connections; 0: as many as from all
  HandshakeRates handshakes{};                      // of peers that speak TLS; no limit unless set
  std::uint64_t receive_budget_bytes = UINT64_MAX;  // of payloads that arrive at the same time
};

// What a session manager tells the transport once the run has begun, from inside wait().
class SessionEvents {
 public:
  virtual ~SessionEvents() = default;
  virtual Result<std::span<const std::span<std::byte>>> on_reply_header(
      ClientId client, const Prefix& prefix, std::span<const std::byte> header) = 0;
  virtual Status on_reply(ClientId client, std::uint64_t bytes) = 0;
  // The same for a piece of a reply that is still to come.
  virtual Result<std::span<const std::span<std::byte>>> on_chunk_header(
      ClientId client, const Prefix& prefix, std::span<const std::byte> header) = 0;
  virtual Status on_chunk(ClientId client) = 0;
  // Instead of on_reply: the connection is lost, and so much of the payload is where on_reply_header said.
  virtual void on_broken_reply(ClientId client, std::uint64_t payload_bytes) = 0;
  // The same for a sum of replies from a relay. is_behind: the client is behind it, and in the run.
  virtual Result<std::span<const std::span<std::byte>>> on_sum_header(
      std::uint64_t relay, const Prefix& prefix, std::span<const std::byte> header,
      const std::function<bool(ClientId)>& is_behind) = 0;
  virtual Status on_sum(std::uint64_t relay, std::uint64_t bytes) = 0;
  virtual void on_relay_left(std::uint64_t relay) = 0;
  virtual void on_joined(ClientId client) = 0;
  virtual void on_left(ClientId client) = 0;
  virtual void on_stop() = 0;
};

// Limits that do not slow down `clients` clients that all come at once, from one address, and a while later
// once more.
HandshakeRates handshake_rates(std::uint32_t clients);

class SessionManager {
 public:
  // Throws std::runtime_error (one line) when the experiment is too long for a Welcome.
  SessionManager(SessionManagerOptions options, std::unique_ptr<SocketLayer> sockets);
  ~SessionManager();

  std::string address() const;  // HOST:PORT as bound
  SteadyTime now() const;
  const ClientTable& table() const;
  bool stopped() const;  // the operator asked to stop

  // Waits until all clients have joined; false: stopped. After the deadline throws std::runtime_error that
  // says who is missing.
  bool gather(std::chrono::milliseconds deadline);

  // Sends `start` (a whole frame) to all clients, now and whenever one joins again. From now on the session
  // manager accepts replies of up to `max_payload` bytes. takes_sums: relays may add up replies.
  void begin(std::string start, std::uint64_t max_payload, SessionEvents& events, bool takes_sums = false);
  // No more events.
  void end();
  // send() and send_soon() do nothing when the client is not connected.
  void send(ClientId client, Outgoing message);
  // The client is behind a relay, which keeps the last body: requests may have a short head.
  bool remembers_bodies(ClientId client) const;
  // Long sections that are not borrowed may be sent without a copy.
  bool zero_copy() const;
  // Tells relays that add up replies: all clients that are asked now have been sent this request id.
  void tell_asked(std::uint64_t request_id);
  void send_soon(ClientId client, const std::string& control_frame);
  // The client sent what cannot be used: whoever does so again and again is disconnected for a while.
  void note_violation(ClientId client);
  // Works on the connections until done() or the deadline.
  void wait(SteadyTime deadline, const std::function<bool()>& done);
  // Copies the buffers that unfinished writes still view.
  void own_pending();

  // Waits until all clients have confirmed the last message that they were sent, also those that must
  // reconnect to get it; at the latest until `deadline` is over. False: some have not confirmed it.
  bool finish(std::chrono::milliseconds deadline);
  // Tells all clients why and disconnects them. Unless it is `fatal`, they reconnect, after retry_after_ms at
  // the earliest.
  void abandon(const std::string& message, bool fatal, std::uint32_t retry_after_ms);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
