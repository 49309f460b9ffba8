// Keys and hashes of a board, over libsodium: mbedTLS has no Ed25519.
#include "proto/security/keys.h"

#include <algorithm>
#include <cstring>
#include <sodium.h>
#include <stdexcept>
#include <string_view>

#include "proto/security/private_file.h"

namespace gradwire {
namespace {

// An Ed25519 key as PKCS #8 (RFC 8410) is these bytes and the 32 bytes of the key's seed.
constexpr unsigned char kKeyHead[] = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
                                      0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20};
constexpr std::size_t kKeyBytes = sizeof kKeyHead + crypto_sign_SEEDBYTES;
constexpr std::string_view kBegin = "-----BEGIN PRIVATE KEY-----", kEnd = "-----END PRIVATE KEY-----";
constexpr std::size_t kMostFileBytes = 16 * 1024;

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* raw_out(std::span<std::byte> bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

void need_sodium() {
  if (sodium_init() < 0) throw std::runtime_error("the system provides no random numbers for keys");
}

}  // namespace

Bytes32 random_secret() {
  need_sodium();
  Bytes32 secret;
  randombytes_buf(secret.data(), secret.size());
  return secret;
}

Bytes32 sha256(std::span<const std::byte> bytes) {
  Bytes32 digest;
  crypto_hash_sha256(raw_out(digest), raw(bytes), bytes.size());
  return digest;
}

Bytes32 mac(const Bytes32& key, std::span<const std::byte> message) {
  static_assert(crypto_auth_hmacsha256_KEYBYTES == sizeof(Bytes32));
  Bytes32 digest;
  crypto_auth_hmacsha256(raw_out(digest), raw(message), message.size(), raw(key));
  return digest;
}

bool same_secret(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool verify(const PublicKey& key, std::span<const std::byte> message, const Signature& signature) {
  return crypto_sign_verify_detached(raw(signature), raw(message), message.size(), raw(key.bytes)) == 0;
}

struct SigningKey::Impl {
  unsigned char secret[crypto_sign_SECRETKEYBYTES];  // the seed, then the public key

  Impl() = default;
  ~Impl() { sodium_memzero(secret, sizeof secret); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  static std::shared_ptr<const Impl> of_seed(const unsigned char* seed) {
    need_sodium();
    auto impl = std::make_shared<Impl>();
    unsigned char public_part[crypto_sign_PUBLICKEYBYTES];
    crypto_sign_seed_keypair(public_part, impl->secret, seed);
    return impl;
  }
};

SigningKey SigningKey::generate() { return SigningKey(Impl::of_seed(raw(random_secret()))); }

Result<SigningKey> SigningKey::load(const std::filesystem::path& file) {
  if (Status status = check_private(file); !status) return status.error();
  auto text = read_plain(file, kMostFileBytes);
  if (!text) return text.error();
  const std::string_view pem = *text ? std::string_view(**text) : std::string_view();
  const std::size_t begin = pem.find(kBegin), end = pem.find(kEnd);
  unsigned char der[4096];
  std::size_t size = 0;
  if (begin == pem.npos || end == pem.npos || end < begin + kBegin.size() ||
      sodium_base642bin(der, sizeof der, pem.data() + begin + kBegin.size(), end - begin - kBegin.size(),
                        "\r\n \t", &size, nullptr, sodium_base64_VARIANT_ORIGINAL) != 0)
    return Error{file.string() + ": is not a key in PEM"};
  if (size != kKeyBytes || std::memcmp(der, kKeyHead, sizeof kKeyHead) != 0)
    return Error{file.string() + ": is not an Ed25519 key, which gradwire needs"};
  SigningKey key(Impl::of_seed(der + sizeof kKeyHead));
  sodium_memzero(der, sizeof der);
  sodium_memzero((*text)->data(), (*text)->size());
  return key;
}

void SigningKey::save(const std::filesystem::path& file) const {
  unsigned char der[kKeyBytes];
  std::copy_n(kKeyHead, sizeof kKeyHead, der);
  std::copy_n(impl_->secret, crypto_sign_SEEDBYTES, der + sizeof kKeyHead);
  char text[sodium_base64_ENCODED_LEN(kKeyBytes, sodium_base64_VARIANT_ORIGINAL)];
  sodium_bin2base64(text, sizeof text, der, sizeof der, sodium_base64_VARIANT_ORIGINAL);
  create_private(file, std::string(kBegin) + "\n" + text + "\n" + std::string(kEnd) + "\n");
  sodium_memzero(der, sizeof der);
  sodium_memzero(text, sizeof text);
}

PublicKey SigningKey::public_key() const {
  PublicKey key;
  crypto_sign_ed25519_sk_to_pk(raw_out(key.bytes), impl_->secret);
  return key;
}

Signature SigningKey::sign(std::span<const std::byte> message) const {
  Signature signature;
  crypto_sign_detached(raw_out(signature), nullptr, raw(message), message.size(), impl_->secret);
  return signature;
}

}  // namespace gradwire
