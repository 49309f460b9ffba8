// Who may speak for whom: what a session asks before it believes a Hello.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "proto/security/login.h"

namespace gradwire {

// A peer that says who it is, and what it gives as proof.
struct Login {
  enum class PeerRole : std::uint8_t { kClient, kRelay };
  std::string name;
  PublicKey key;
  Bytes32 nonce{};  // that the server drew for this login
  Proof proof;
  PeerRole role = PeerRole::kClient;  // that the peer wants to have
};

class Authenticator {
 public:
  virtual ~Authenticator() = default;
  virtual const std::string& realm() const = 0;
  // The error says why not, for the peer and the log; it leaks no secret.
  virtual Status admit(const Login& login) = 0;
  // To be asked from time to time: the operator may have changed his mind.
  virtual bool still_admits(const std::string& name) = 0;
};

}  // namespace gradwire
