// The folder that says who a server is and who its clients are, and the sockets that follow from it.
//
//   ca.pem, ca.key          the authority; the key makes certificates, and may be kept elsewhere
//   server.pem, server.key  what the server shows
//   client-ca.pem           where it is there, clients must show a certificate of this authority, too
//   clients/                who may come (allow_list.h)
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

// Makes the folder, or what is missing in it, for a server that is reached under these names. Throws
// std::runtime_error, one line.
void make_identity(const std::filesystem::path& folder, const std::vector<std::string>& hosts,
                   std::chrono::seconds validity);
// Whether nothing is missing.
bool holds_identity(const std::filesystem::path& folder);
// The list of the clients of that folder. Throws std::runtime_error.
AllowList clients_of(const std::filesystem::path& folder, Log log = {});
// A new certificate in `to`, by the authority in `folder`. No hosts: for those of the old one, to/server.pem.
// Throws std::runtime_error, one line.
void renew_certificate(const std::filesystem::path& folder, const std::filesystem::path& to,
                       const std::vector<std::string>& hosts, std::chrono::seconds validity);
// Makes `to`: all that a relay needs on its machine, which clients reach under these names. Throws
// std::runtime_error.
void make_relay_identity(const std::filesystem::path& folder, const std::string& name,
                         const std::filesystem::path& to, const std::vector<std::string>& hosts,
                         std::chrono::seconds validity);

class ServerIdentity {
 public:
  // Throws std::invalid_argument or std::runtime_error, one line.
  ServerIdentity(const std::filesystem::path& folder, TlsVersion least, Log log);

  // Connections that are accepted speak TLS; a new certificate in the folder serves those that come after it.
  std::unique_ptr<SocketLayer> secure(std::unique_ptr<SocketLayer> sockets);
  Authenticator& authenticator() { return clients_; }

 private:
  AllowList clients_;
  std::shared_ptr<TlsServer> tls_;
  Log log_;
};

// The sockets of a relay whose folder make_relay_identity() has made: TLS on both sides, to the server that
// made it alone.
std::unique_ptr<SocketLayer> secure_relay(std::unique_ptr<SocketLayer> sockets,
                                          const std::filesystem::path& folder, Log log);

}  // namespace gradwire
