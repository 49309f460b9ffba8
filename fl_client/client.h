// The gradwire-client program as a function: joins a server, answers its requests, and reconnects after it
// loses the connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>

#include "base/log.h"
#include "fl_client/pulse.h"
#include "gradwire/bad_input.h"
#include "gradwire/client.h"
#include "proto/security/login.h"
#include "samples/client_data.h"

namespace gradwire {

struct ClientSettings {
  std::string server;                   // HOST:PORT; over TLS with credentials or a ca_file, else unencrypted
  ClientData data;                      // for data in files, see client_data()
  std::optional<OracleFactory> oracle;  // the program's own, for problem.kind = "custom"; in place of data
  std::string name;  // --id; if empty, the name in the credentials, else a name unique to this process
  // Empty if the client cannot authenticate. If they are new, they are written to the folder `certificates`
  // once the server has accepted them.
  std::optional<Credentials> credentials;
  std::filesystem::path ca_file;  // PEM: the trusted CA of the server; if empty, the credentials name it
  // The folder of the identity. It holds certificate.pem and certificate.key, now or later, for a server that
  // requests a client certificate. May be empty.
  std::filesystem::path certificates;
  std::filesystem::path state;  // folder of the state that survives a restart; empty if none does
  std::chrono::milliseconds connect_timeout{10'000};
  // Limit for each answer of the server in the handshake, and for writes without progress.
  std::chrono::milliseconds io_timeout{60'000};
  std::chrono::milliseconds back_off_base{100};        // doubles with each failure, with full jitter
  std::chrono::milliseconds back_off_cap{60'000};      // largest back-off
  std::chrono::milliseconds give_up_after{3'600'000};  // time without a connection to a server
  unsigned threads = 0;    // divide the gradient of a large batch; 0 means one per processor
  std::stop_token stop;    // ends the client
  Pulse* pulse = nullptr;  // tells a watchdog about each wait; may be null
  Log log;                 // receives one line at a time; may be empty
};

// Thrown if the server refused this client for good, or was not found in time. what() is one line.
class ClientError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thrown if a restart with the same arguments cannot help: the server refused the client's name, part, data
// or release.
class ClientRefused : public BadInput {
 public:
  using BadInput::BadInput;
};

// Checks the options of the command line or of a program, and opens the identity. Leaves out `data` and
// `test`, which need readers. `log` gets warnings, and later the lines of the client. Throws BadInput (one
// line) or std::runtime_error.
ClientSettings settings_of(const ClientOptions& options, Log log);

// Runs until the server tells the clients to shut down, or until it is stopped. Throws ClientError,
// ClientRefused, DataError if this client's data cannot be used, or an exception of the program's oracle.
void join_and_answer(const ClientSettings& settings);

}  // namespace gradwire
