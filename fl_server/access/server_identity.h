// The folder with the identity of a server and its list of clients, and the TLS sockets made from it.
//
//   ca.pem, ca.key          the authority; its key makes certificates and may be kept elsewhere
//   server.pem, server.key  the certificate of the server
//   client-ca.pem           optional: clients must then also show a certificate of this authority
//   clients/                the enrolled clients (allow_list.h)
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "fl_server/access/allow_list.h"
#include "fl_server/net/socket_layer.h"
#include "proto/security/login.h"
#include "proto/security/tls.h"

namespace gradwire {

// Makes the folder, or its missing files, for a server that is reached under these names. Throws
// std::runtime_error (one line).
void make_identity(const std::filesystem::path& folder, const std::vector<std::string>& hosts,
                   std::chrono::seconds validity);
// Returns true if no file is missing.
bool holds_identity(const std::filesystem::path& folder);
// Returns the list of clients in that folder. Throws std::runtime_error.
AllowList clients_of(const std::filesystem::path& folder, Log log = {});
// Makes a new certificate in `to`, signed by the authority in `folder`. Without hosts, it keeps those of the
// old certificate, to/server.pem. Throws std::runtime_error (one line).
void renew_certificate(const std::filesystem::path& folder, const std::filesystem::path& to,
                       const std::vector<std::string>& hosts, std::chrono::seconds validity);
// Makes the folder `to` with all that a relay needs. `hosts` are the names under which clients reach it.
// Throws std::runtime_error.
void make_relay_identity(const std::filesystem::path& folder, const std::string& name,
                         const std::filesystem::path& to, const std::vector<std::string>& hosts,
                         std::chrono::seconds validity);

class ServerIdentity {
 public:
  // Throws std::invalid_argument or std::runtime_error (one line).
  ServerIdentity(const std::filesystem::path& folder, TlsVersion least, Log log);

  // Puts TLS on accepted connections. A new certificate in the folder serves later connections.
  std::unique_ptr<SocketLayer> secure(std::unique_ptr<SocketLayer> sockets);
  Authenticator& authenticator() { return clients_; }

 private:
  AllowList clients_;
  std::shared_ptr<TlsServer> tls_;
  Log log_;
};

// Returns the sockets of a relay whose folder make_relay_identity() made. They use TLS on both sides, and
// connect only to the server that made the folder.
std::unique_ptr<SocketLayer> secure_relay(std::unique_ptr<SocketLayer> sockets,
                                          const std::filesystem::path& folder, TlsVersion tls_min, Log log);

}  // namespace gradwire
