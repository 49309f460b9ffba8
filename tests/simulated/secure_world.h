// TLS and logins for a simulated federation, with the same identities for all its runs. OpenSSL draws its own
// random numbers, so the lengths of a few messages differ between runs of one seed.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "fl_server/access/server_identity.h"
#include "fl_server/net/filtered_sockets.h"
#include "proto/security/certificates.h"
#include "proto/security/login.h"
#include "tests/support/data_files.h"

namespace gradwire {

class SecureWorld {
 public:
  SecureWorld() {
    make_identity(place_, {"server", "relay"}, std::chrono::hours(24));
    server_ = std::make_unique<TlsServer>(place_ / "server.pem", place_ / "server.key");
    client_ = std::make_unique<TlsClient>(TrustedServer{{}, fingerprint_of(place_ / "ca.pem")});
    clients_ = std::make_unique<AllowList>(clients_of(place_));
  }
  // Wraps `sockets`, those of the server or of a relay, in TLS.
  std::unique_ptr<SocketLayer> secure(std::unique_ptr<SocketLayer> sockets) {
    return filtered(std::move(sockets), {[this] { return server_->accept(); },
                                         [this](const std::string& host) { return client_->connect(host); },
                                         {}});
  }
  std::unique_ptr<StreamFilter> connect() { return client_->connect("server"); }
  Authenticator& authenticator() { return *clients_; }
  // Returns the credentials of `name`. The first call enrolls it.
  const Credentials& credentials(const std::string& name) {
    auto found = known_.find(name);
    if (found != known_.end()) return found->second;
    const SigningKey key = SigningKey::generate();
    clients_->enroll(name, key.public_key(),
                     name == "relay" ? Login::PeerRole::kRelay : Login::PeerRole::kClient);
    return known_.emplace(name, Credentials{name, clients_->realm(), key, std::nullopt}).first->second;
  }

 private:
  TemporaryFolder folder_;
  const std::filesystem::path place_ = folder_.path() / "identity";
  std::unique_ptr<TlsServer> server_;
  std::unique_ptr<TlsClient> client_;
  std::unique_ptr<AllowList> clients_;
  std::map<std::string, Credentials> known_;
};

}  // namespace gradwire
