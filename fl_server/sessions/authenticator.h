// The interface that authenticates clients and relays. A session calls it before it accepts a Hello.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "proto/security/login.h"

namespace gradwire {

// The claimed identity of a peer and its proof.
struct Login {
  enum class PeerRole : std::uint8_t { kClient, kRelay };
  std::string name;
  PublicKey key;
  Bytes32 nonce{};  // drawn by the server for this login
  Proof proof;
  PeerRole role = PeerRole::kClient;  // the role that the peer requests
};

class Authenticator {
 public:
  virtual ~Authenticator() = default;
  virtual const std::string& realm() const = 0;
  // Verifies a login. The error gives the reason, for the peer and the log, and reveals no secret.
  virtual Status admit(const Login& login) = 0;
  // Returns true if the name is still accepted. Must be called periodically, because the operator may revoke
  // it.
  virtual bool still_admits(const std::string& name) = 0;
};

}  // namespace gradwire
