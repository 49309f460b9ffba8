// The session manager: listens, performs handshakes, numbers the clients, and bans peers that misbehave. It
// uses one thread; everything happens inside wait() and gather().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "base/log.h"
#include "engine/data/normalize.h"
#include "fl_server/net/connection.h"
#include "fl_server/net/server_metrics.h"
#include "fl_server/sessions/authenticator.h"
#include "fl_server/sessions/client_table.h"
#include "fl_server/sessions/peer_limits.h"

namespace gradwire {

// An observer of clients that join and leave, for the run history. Called from inside wait() and gather().
class SessionObserver {
 public:
  virtual ~SessionObserver() = default;
  virtual void client_joined(ClientId client, const ClientInfo& info, const std::string& peer) = 0;
  // `why` is empty if the client was not lost: the server disconnected it, or it left after its last message.
  virtual void client_gone(ClientId client, const std::string& why) = 0;
};

struct SessionManagerOptions {
  std::uint32_t clients = 0;     // n
  std::uint32_t start_with = 0;  // clients that must join before the run begins; 0 for all
  std::string experiment;        // serialized, for the Welcome
  WireTimes times;
  bool handle_signals = false;          // SIGINT and SIGTERM stop the run; a second one stops the process
  Log log;                              // takes one line; may be empty
  ClientTable table{0};                 // the n clients of an earlier process, if any
  SessionObserver* observer = nullptr;  // may be null
  bool asks_constants = false;          // clients must report their smoothness constants
  // Checks a new client against the others, those that have joined or sent their sums (null if one has not).
  // An error refuses it. May be empty.
  std::function<Status(const ClientInfo&, const std::function<const ClientInfo*(ClientId)>& other)> check;
  // Records a client that joins after the run began, before it gets an answer. An error sends it away for a
  // moment. Empty if all clients have joined before.
  std::function<Status(ClientId, const ClientInfo&, bool by_part)> record_join;
  // Returns an error if a client with these abilities cannot take part. May be empty.
  std::function<Status(const Abilities&)> check_abilities;
  bool warns_of_kernels = true;             // true if different kernels give different bits
  Authenticator* authenticator = nullptr;   // if null, all peers are accepted
  ServerMetrics* server_metrics = nullptr;  // may be null
  // The bytes that may wait for a relay, in addition to the start messages of its clients and two messages of
  // a round.
  std::uint64_t most_for_relay_bytes = 64 << 20;
  BanLimits bans{};
  std::uint32_t most_from_address = 0;              // connections; 0 means no limit per address
  HandshakeRates handshakes{};                      // handshakes over TLS; no limit by default
  std::uint64_t receive_budget_bytes = UINT64_MAX;  // limit of simultaneously arriving payloads
  // Returns what the run needs of its first clients and these have not, for people, or "". The run then waits
  // for more than start_with clients. May be empty.
  std::function<std::string(const ClientTable&)> lacks{};
  std::stop_token stop{};                  // stops the run, like a signal; any thread may request it
  std::stop_token abandon{};               // also calls on_stop(), a second time
  Normalize normalize = Normalize::kNone;  // problem.normalize
  // The map of an earlier process; null if clients must send the sums for it.
  std::shared_ptr<const Normalization> normalization = nullptr;
};

// Receives the frames and events of the rounds, from inside wait().
class SessionEvents {
 public:
  virtual ~SessionEvents() = default;
  virtual Result<std::span<const std::span<std::byte>>> on_reply_header(
      ClientId client, const Prefix& prefix, std::span<const std::byte> header) = 0;
  virtual Status on_reply(ClientId client, std::uint64_t bytes) = 0;
  // Returns the place for a chunk of a reply that is still to come.
  virtual Result<std::span<const std::span<std::byte>>> on_chunk_header(
      ClientId client, const Prefix& prefix, std::span<const std::byte> header) = 0;
  virtual Status on_chunk(ClientId client) = 0;
  // Called in place of on_reply() if the connection was lost after so many bytes of the payload were stored.
  virtual void on_broken_reply(ClientId client, std::uint64_t payload_bytes) = 0;
  // Returns the place for a relay's sum of replies. is_client_of() is true for clients of that relay that are
  // in the run.
  virtual Result<std::span<const std::span<std::byte>>> on_sum_header(
      std::uint64_t relay, const Prefix& prefix, std::span<const std::byte> header,
      const std::function<bool(ClientId)>& is_client_of) = 0;
  virtual Status on_sum(std::uint64_t relay, std::uint64_t bytes) = 0;
  virtual void on_relay_left(std::uint64_t relay) = 0;
  virtual void on_joined(ClientId client) = 0;
  virtual void on_left(ClientId client) = 0;
  virtual void on_stop() = 0;
};

class SessionManager {
 public:
  // Throws std::runtime_error (one line) if the experiment is too long for a Welcome.
  SessionManager(SessionManagerOptions options, std::unique_ptr<SocketLayer> sockets);
  ~SessionManager();

  std::string address() const;  // HOST:PORT as bound
  SteadyTime now() const;
  const ClientTable& table() const;
  // Returns the map of the features, or null if the experiment needs no sums or they are not complete.
  std::shared_ptr<const Normalization> normalization() const;
  bool stopped() const;  // the operator asked the process to stop
  bool connected(ClientId client) const;
  // Returns the client and its connection, as in "1 'n1' (lost at 03:56:22: it closed the connection)".
  std::string standing(ClientId client) const;

  // Waits until all clients have joined, or start_with of them that lack nothing. If problem.normalize needs
  // sums, it first waits for the sums of all clients, and sends them the map. Returns false if stopped.
  // Throws std::runtime_error, which names the missing clients, after the deadline.
  bool gather(std::chrono::milliseconds deadline);

  // Sends `start` (a whole frame) to all clients, now and whenever one joins again. From now on the session
  // manager accepts replies of up to `max_payload` bytes. With takes_sums, relays may add up replies.
  void begin(std::string start, std::uint64_t max_payload, SessionEvents& events, bool takes_sums = false);
  // Ends the callbacks.
  void end();
  // Sends a message. send() and send_soon() do nothing if the client is not connected.
  void send(ClientId client, Outgoing message);
  // Returns true if the client's relay keeps the last body. Then requests may have a short head.
  bool remembers_bodies(ClientId client) const;
  // Returns true if long sections that are not borrowed may be sent without a copy.
  bool zero_copy() const;
  // Announces to relays that add up replies: all clients that are asked now have been sent this request id.
  void announce_request(std::uint64_t request_id);
  void send_soon(ClientId client, const std::string& control_frame);
  // Records that the client sent an unusable reply. Repeated violations ban it.
  void note_violation(ClientId client);
  // Serves the connections until done() returns true or the deadline passes.
  void wait(SteadyTime deadline, const std::function<bool()>& done);
  // Copies the buffers that unfinished writes still view.
  void own_pending();

  // Waits until all clients have confirmed their last message, including those that must reconnect to get it.
  // Returns false if some have not by the deadline, or soon after a stop.
  bool finish(std::chrono::milliseconds deadline);
  // Tells all clients the reason and disconnects them. Unless `fatal`, they reconnect after at least
  // retry_after_ms.
  void abandon(const std::string& message, bool fatal, std::uint32_t retry_after_ms);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
