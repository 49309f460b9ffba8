#include "proto/security/login.h"

#include <algorithm>

#include "proto/wire/client_name.h"

namespace gradwire {
namespace {

constexpr std::string_view kVersion = "gw1.";
constexpr std::string_view kPurpose = "gradwire login 1";
constexpr const char* kTokenFormat =
    "a token is gw1.SECRET.REALM.NAME, as gradwire-server enroll prints it: ";

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  for (std::size_t k = 0; k < 8; ++k) to.push_back(static_cast<std::byte>(bytes.size() >> (8 * k)));
  to.insert(to.end(), bytes.begin(), bytes.end());
}
void append(std::vector<std::byte>& to, std::string_view text) { append(to, std::as_bytes(std::span(text))); }

bool is_digest(std::string_view text) {
  const auto bytes = from_base64(text);
  return bytes && bytes->size() == Bytes32().size();
}

}  // namespace

std::string Invitation::text() const {
  return std::string(kVersion) + to_base64(secret) + "." + realm + "." + name;
}

Result<Invitation> Invitation::parse(std::string_view text) {
  const auto wrong = [](const char* what) { return Error{std::string(kTokenFormat) + what}; };
  if (!text.starts_with(kVersion))
    return wrong("this one does not begin with gw1.; --token @FILE reads it from a file");
  text.remove_prefix(kVersion.size());
  const std::size_t first = text.find('.'), second = text.find('.', first + 1);
  if (first == text.npos || second == text.npos) return wrong("this one is cut off");
  Invitation invitation{
      std::string(text.substr(second + 1)), {}, std::string(text.substr(first + 1, second - first - 1))};
  const auto secret = from_base64(text.substr(0, first));
  if (!secret || secret->size() != invitation.secret.size() || !is_digest(invitation.realm))
    return wrong("this one is damaged");
  if (const Status name = check_client_name(invitation.name); !name)
    return wrong("this one lacks the name at its end");
  std::copy(secret->begin(), secret->end(), invitation.secret.begin());
  return invitation;
}

std::vector<std::byte> login_message(std::string_view realm, std::string_view name, const PublicKey& key,
                                     const Bytes32& nonce) {
  std::vector<std::byte> message;
  append(message, kPurpose);
  append(message, realm);
  append(message, name);
  append(message, key.bytes);
  append(message, nonce);
  return message;
}

Proof prove(const Credentials& credentials, const Bytes32& nonce) {
  const auto message =
      login_message(credentials.realm, credentials.name, credentials.key.public_key(), nonce);
  Proof proof{credentials.key.sign(message), std::nullopt};
  if (credentials.token) proof.token_mac = mac(sha256(*credentials.token), message);
  return proof;
}

}  // namespace gradwire
