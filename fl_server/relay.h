// gradwire-server --upstream: the clients of one site behind one connection to the server.
//
// Each client is a channel of that connection; frames pass unchanged but for its number, so results are those
// of the same clients connected to the server itself, bit by bit. What the server sends to all comes once and
// is passed on to each. The relay remembers nothing: when it dies, or loses the server, its clients come
// back.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "fl_server/connection.h"

namespace gradwire {

struct RelayOptions {
  std::string upstream;         // HOST:PORT of the server
  std::string listen;           // HOST:PORT for the clients
  std::filesystem::path state;  // folder for the file `address`; empty: none is written
  WireTimes times;
  std::chrono::milliseconds back_off_base{100}, back_off_cap{60'000};
  std::chrono::milliseconds give_up_after{3'600'000};  // without a server
  bool handle_signals = true;
  std::function<void(const std::string&)> log;  // one line; may be empty
};

// Returns when the run is over for its clients, or the operator asked to stop. Throws std::invalid_argument
// (--listen, --upstream) or std::runtime_error; always one line.
void run_relay(const RelayOptions& options);

}  // namespace gradwire
