// The gradwire-client program as a function: joins a server, answers its requests, reconnects when the
// connection is lost.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/log.h"
#include "proto/security/login.h"
#include "samples/client_data.h"

namespace gradwire {

struct ClientOptions {
  std::string server;  // HOST:PORT; over TLS with credentials or a ca_file, else as it is
  ClientData data;     // of files: client_data() of local_problem.h
  std::string name;    // --id; empty: that of the credentials, else one that no other process has
  std::optional<Credentials> credentials;  // who it is for its server; nothing: it cannot prove it
  std::filesystem::path ca_file;  // PEM: whom to take for the server; empty: whom the credentials say
  // Where certificate.pem and certificate.key lie, now or later, for a server that asks; may be empty.
  std::filesystem::path certificates;
  std::filesystem::path state;  // what must survive a restart; empty: nothing does
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds io_timeout{
      60'000};  // for the server to answer in the handshake, or to take bytes
  std::chrono::milliseconds back_off_base{100};        // doubles with each failure, with full jitter ...
  std::chrono::milliseconds back_off_cap{60'000};      // ... up to this
  std::chrono::milliseconds give_up_after{3'600'000};  // without a server
  Log log;                                             // one line; may be empty
};

// The server refused this client for good, or was not found in time. what() is one line.
class ClientError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Starting this client again with the same arguments does not help: the server has refused its name, its
// part, its data or its release.
class ClientRefused : public ClientError {
 public:
  using ClientError::ClientError;
};

// Returns when the server tells the clients to shut down. Throws ClientError, or DataError when this client's
// data cannot be used.
void run_client(const ClientOptions& options);

}  // namespace gradwire
