// Authentication of a client: it signs a nonce from the server with its key. The server has enrolled that key
// once, by a token from the operator. No I/O.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/security/keys.h"

namespace gradwire {

// An invitation that an operator gives to one client, once, over a trusted channel: "gw1.SECRET.REALM.NAME".
struct Invitation {
  std::string name;   // name of the client
  Bytes32 secret{};   // valid for one enrolment
  std::string realm;  // fingerprint of the CA of the server, which identifies the server

  std::string text() const;
  // Parses an invitation. The error does not quote the secret.
  static Result<Invitation> parse(std::string_view text);
};

// The identity of a client at one server.
struct Credentials {
  std::string name, realm;
  SigningKey key;
  std::optional<Bytes32> token;  // the secret of its token, until the server has enrolled the key
  bool is_new = false;           // the folder has the key, but no name and realm until the server accepts it
};

struct Proof {
  Signature signature{};
  std::optional<Bytes32> token_mac;  // HMAC of the same message; the key is the hash of the secret
};

// Returns the bytes to sign: all that may differ between two logins.
std::vector<std::byte> login_message(std::string_view realm, std::string_view name, const PublicKey& key,
                                     const Bytes32& nonce);
Proof prove(const Credentials& credentials, const Bytes32& nonce);

}  // namespace gradwire
