// How a client shows who it is: it signs what the server has just drawn (a nonce), with a key that the
// server's operator has let in, once, by a token. Pure but for the random numbers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/security/keys.h"

namespace gradwire {

// What an operator gives to one client, once, by a way that both trust: "gw1.SECRET.REALM.NAME".
struct Invitation {
  std::string name;   // of the client
  Bytes32 secret{};   // good for one enrolment
  std::string realm;  // fingerprint of the CA of the server: which server this is for

  std::string text() const;
  // The error does not quote the secret.
  static Result<Invitation> parse(std::string_view text);
};

// Who a client is for one server.
struct Credentials {
  std::string name, realm;
  SigningKey key;
  std::optional<Bytes32> token;  // its secret, until the server has let the key in
};

struct Proof {
  Signature signature{};
  std::optional<Bytes32> token_mac;  // of the same message, under the hash of the token's secret
};

// What is signed: everything that another login could differ in.
std::vector<std::byte> login_message(std::string_view realm, std::string_view name, const PublicKey& key,
                                     const Bytes32& nonce);
Proof prove(const Credentials& credentials, const Bytes32& nonce);

}  // namespace gradwire
