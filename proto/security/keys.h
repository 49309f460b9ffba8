// The key of a client, and the signatures and hashes of a login. The key is an Ed25519 key (RFC 8032) that
// never leaves the client's machine.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "proto/security/base64.h"

namespace gradwire {

using Bytes32 = std::array<std::byte, 32>;
using Signature = std::array<std::byte, 64>;

// Returns random bytes for a secret. Throws std::runtime_error if the system provides none.
Bytes32 random_secret();
Bytes32 sha256(std::span<const std::byte> bytes);
// Returns the HMAC-SHA-256 of a message.
Bytes32 mac(const Bytes32& key, std::span<const std::byte> message);
// Compares in constant time.
bool same_secret(std::span<const std::byte> a, std::span<const std::byte> b);

struct PublicKey {
  Bytes32 bytes{};
  std::string text() const { return to_base64(bytes); }
  bool operator==(const PublicKey&) const = default;
};
bool verify(const PublicKey& key, std::span<const std::byte> message, const Signature& signature);

class SigningKey {
 public:
  static SigningKey generate();
  // Reads a PEM file that only its owner may read; the error names the file.
  static Result<SigningKey> load(const std::filesystem::path& file);
  // Creates the file with mode 0600. Throws std::runtime_error, also if the file exists.
  void save(const std::filesystem::path& file) const;

  PublicKey public_key() const;
  Signature sign(std::span<const std::byte> message) const;

 private:
  struct Impl;
  explicit SigningKey(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace gradwire
