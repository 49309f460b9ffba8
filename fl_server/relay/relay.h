// A relay (gradwire-server relay): connects the clients of a site to the server over one connection.
//
// Each client is a channel of that connection. The relay changes only the channel number of a frame, so the
// results are bit for bit those of directly connected clients. With --aggregate, the relay sends the sum of a
// round's replies if the algorithm allows it (relay_sums.h). The server sends a shared body once, and the
// relay forwards it to each client. The relay stores no state: after a crash, or if it loses the server, its
// clients reconnect.
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
#include "fl_server/net/connection.h"
#include "fl_server/sessions/rate_limit.h"
#include "proto/security/login.h"
#include "proto/security/tls.h"

namespace gradwire {

struct RelayOptions {
  std::string upstream;         // HOST:PORT of the server
  std::string listen;           // HOST:PORT for the clients
  std::filesystem::path state;  // folder for the file `address`; if empty, none is written
  // Its identity on both sides (access/server_identity.h). If empty, connections are in plain text.
  std::filesystem::path identity;
  bool aggregate = false;                // adds up replies if the algorithm allows it
  TlsVersion tls_min = TlsVersion::k13;  // oldest version for the clients
  WireTimes times;                       // the heartbeats are those of the server, once it is connected
  std::chrono::milliseconds back_off_base{100}, back_off_cap{60'000};
  std::chrono::milliseconds give_up_after{3'600'000};  // time without a server
  std::optional<Credentials> credentials;  // for the server; run_relay() reads them from the identity
  std::uint64_t jitter_seed = std::random_device{}();  // for the back-off
  bool handle_signals = true;
  std::uint32_t most_from_address = 0;  // connections of clients per address; 0 means no limit
  // Limits of client handshakes. run_relay() sets them if there is an identity.
  HandshakeRates handshakes{};
  ServerMetrics* server_metrics = nullptr;  // may be null
  Log log;                                  // takes one line; may be empty
};

// A relay on any socket layer. Everything happens inside the layer's wait().
class RelayRun {
 public:
  virtual ~RelayRun() = default;
  virtual void start() = 0;       // accepts clients and connects to the server
  virtual bool over() const = 0;  // the run is over, the operator stopped it, or no server was found in time
};
// Makes a relay. The options must outlive it.
std::unique_ptr<RelayRun> make_relay(const RelayOptions& options, std::unique_ptr<SocketLayer> sockets);

// Runs a relay until the run is over for its clients or the operator stops it. Throws std::invalid_argument
// (--listen, --upstream) or std::runtime_error (one line).
void run_relay(const RelayOptions& options);

}  // namespace gradwire
