// gradwire-server --upstream: the clients of one site behind one connection to the server.
//
// Each client is a channel of that connection; frames pass unchanged but for its number, so results are those
// of the same clients connected to the server itself, bit by bit. With --aggregate the replies of a round go
// up as their sum where the method allows it (relay_sums.h). What the server sends to all comes once and is
// passed on to each. The relay remembers nothing: when it dies, or loses the server, its clients come back.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "fl_server/connection.h"
#include "proto/log.h"

namespace gradwire {

struct RelayOptions {
  std::string upstream;         // HOST:PORT of the server
  std::string listen;           // HOST:PORT for the clients
  std::filesystem::path state;  // folder for the file `address`; empty: none is written
  bool aggregate = false;       // adds up replies where the method allows it
  WireTimes times;
  std::chrono::milliseconds back_off_base{100}, back_off_cap{60'000};
  std::chrono::milliseconds give_up_after{3'600'000};  // without a server
  std::uint64_t jitter_seed = std::random_device{}();  // of the back-off
  bool handle_signals = true;
  Log log;  // one line; may be empty
};

// One relay on any sockets: everything happens inside their wait().
class RelayRun {
 public:
  virtual ~RelayRun() = default;
  virtual void start() = 0;       // accepts, and connects to the server
  virtual bool over() const = 0;  // the run is, or the operator asked to stop, or no server was found in time
};
// The options must outlive it.
std::unique_ptr<RelayRun> make_relay(const RelayOptions& options, std::unique_ptr<SocketLayer> sockets);

// Returns when the run is over for its clients, or the operator asked to stop. Throws std::invalid_argument
// (--listen, --upstream) or std::runtime_error; always one line.
void run_relay(const RelayOptions& options);

}  // namespace gradwire
