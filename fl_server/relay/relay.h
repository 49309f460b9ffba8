// gradwire-server --upstream: the clients of one site behind one connection to the server.
//
// Each client is a channel of that connection. The relay changes only the channel number of a frame, so the
// results are, bit by bit, those of the same clients connected to the server directly. With --aggregate the
// relay sends the replies of a round as their sum where the algorithm allows it (relay_sums.h). The server
// sends once what is for all clients, and the relay passes it on to each. The relay remembers nothing: when
// it crashes, or loses the server, its clients reconnect.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "base/log.h"
#include "fl_server/hub/rate_limit.h"
#include "fl_server/net/connection.h"
#include "proto/security/login.h"

namespace gradwire {

struct RelayOptions {
  std::string upstream;         // HOST:PORT of the server
  std::string listen;           // HOST:PORT for the clients
  std::filesystem::path state;  // folder for the file `address`; empty: none is written
  std::filesystem::path
      identity;            // who it is for both sides (access/server_identity.h); empty: in plain text
  bool aggregate = false;  // adds up replies where the algorithm allows it
  WireTimes times;
  std::chrono::milliseconds back_off_base{100}, back_off_cap{60'000};
  std::chrono::milliseconds give_up_after{3'600'000};  // without a server
  std::optional<Credentials> credentials;  // for the server; run_relay() takes them from the identity
  std::uint64_t jitter_seed = std::random_device{}();  // of the back-off
  bool handle_signals = true;
  std::uint32_t most_from_address = 0;  // connections of clients; 0: no limit
  // Handshakes of clients. run_relay() sets them if there is an identity.
  HandshakeRates handshakes{};
  ServerMetrics* server_metrics = nullptr;  // where it counts; null: nobody watches
  Log log;                                  // one line; may be empty
};

// One relay on any sockets: everything happens inside their wait().
class RelayRun {
 public:
  virtual ~RelayRun() = default;
  virtual void start() = 0;       // accepts, and connects to the server
  virtual bool over() const = 0;  // run over, or stopped by the operator, or no server found in time
};
// The options must outlive it.
std::unique_ptr<RelayRun> make_relay(const RelayOptions& options, std::unique_ptr<SocketLayer> sockets);

// Returns when the run is over for its clients, or the operator asked to stop. Throws std::invalid_argument
// (--listen, --upstream) or std::runtime_error; always one line.
void run_relay(const RelayOptions& options);

}  // namespace gradwire
