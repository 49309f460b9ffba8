#include "proto/security/keys.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/security/openssl.h"
#include "proto/security/private_file.h"

namespace gradwire {
namespace {

constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* raw_out(std::span<std::byte> bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  std::uint32_t held = 0;
  int bits = 0;
  for (const std::byte byte : bytes) {
    held = held << 8 | static_cast<std::uint32_t>(byte);
    for (bits += 8; bits >= 6; bits -= 6) text += kDigits[held >> (bits - 6) & 63];
  }
  if (bits > 0) text += kDigits[held << (6 - bits) & 63];
  return text;
}

Result<std::vector<std::byte>> from_base64(std::string_view text) {
  std::vector<std::byte> bytes;
  std::uint32_t held = 0;
  int bits = 0;
  for (const char c : text) {
    const char* const digit = c == '\0' ? nullptr : std::strchr(kDigits, c);
    if (digit == nullptr) return Error{std::string("'") + c + "' is not a digit of base64url"};
    held = held << 6 | static_cast<std::uint32_t>(digit - kDigits);
    if ((bits += 6) >= 8) bytes.push_back(static_cast<std::byte>(held >> (bits -= 8) & 255));
  }
  // Each value has exactly one text: no half bytes, and no bits after the last byte.
  if (bits >= 6 || (held & ((1U << bits) - 1)) != 0) return Error{"it is cut off"};
  return bytes;
}

Bytes32 random_secret() {
  Bytes32 secret;
  if (RAND_priv_bytes(raw_out(secret), static_cast<int>(secret.size())) != 1)
    fail_openssl("the system provides no random numbers for keys");
  return secret;
}

Bytes32 sha256(std::span<const std::byte> bytes) {
  Bytes32 digest;
  SHA256(raw(bytes), bytes.size(), raw_out(digest));
  return digest;
}

Bytes32 mac(const Bytes32& key, std::span<const std::byte> message) {
  Bytes32 digest;
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), raw(message), message.size(),
           raw_out(digest), &size) == nullptr)
    fail_openssl("HMAC");
  return digest;
}

bool same_secret(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool verify(const PublicKey& key, std::span<const std::byte> message, const Signature& signature) {
  const KeyPtr open(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw(key.bytes), key.bytes.size()));
  const DigestPtr digest(EVP_MD_CTX_new());
  const bool good =
      open && digest && EVP_DigestVerifyInit(digest.get(), nullptr, nullptr, nullptr, open.get()) == 1 &&
      EVP_DigestVerify(digest.get(), raw(signature), signature.size(), raw(message), message.size()) == 1;
  ERR_clear_error();
  return good;
}

struct SigningKey::Impl {
  KeyPtr key;
};

SigningKey SigningKey::generate() {
  auto impl = std::make_shared<Impl>();
  impl->key.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!impl->key) fail_openssl("cannot create an Ed25519 key");
  return SigningKey(std::move(impl));
}

Result<SigningKey> SigningKey::load(const std::filesystem::path& file) {
  if (Status status = check_private(file); !status) return status.error();
  const BioPtr in(BIO_new_file(file.c_str(), "r"));
  auto impl = std::make_shared<Impl>();
  if (in) impl->key.reset(PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr));
  if (!impl->key) return Error{file.string() + ": is not a key in PEM: " + openssl_reason()};
  if (EVP_PKEY_get_id(impl->key.get()) != EVP_PKEY_ED25519)
    return Error{file.string() + ": is not an Ed25519 key, which gradwire needs"};
  return SigningKey(std::move(impl));
}

void SigningKey::save(const std::filesystem::path& file) const {
  create_private(file, pem_of(impl_->key.get()));
}

PublicKey SigningKey::public_key() const {
  PublicKey key;
  std::size_t size = key.bytes.size();
  if (EVP_PKEY_get_raw_public_key(impl_->key.get(), raw_out(key.bytes), &size) != 1)
    fail_openssl("the key has no public part");
  return key;
}

Signature SigningKey::sign(std::span<const std::byte> message) const {
  Signature signature;
  std::size_t size = signature.size();
  const DigestPtr digest(EVP_MD_CTX_new());
  if (!digest || EVP_DigestSignInit(digest.get(), nullptr, nullptr, nullptr, impl_->key.get()) != 1 ||
      EVP_DigestSign(digest.get(), raw_out(signature), &size, raw(message), message.size()) != 1)
    fail_openssl("signing with the key failed");
  return signature;
}

Status check_private(const std::filesystem::path& file) {
  struct stat about {};
  if (::stat(file.c_str(), &about) != 0) return Error{file.string() + ": " + std::strerror(errno)};
  if (!S_ISREG(about.st_mode)) return Error{file.string() + ": is not a file"};
  if ((about.st_mode & 077) != 0)
    return Error{file.string() + ": other users may read this key; fix this with chmod 600 " + file.string()};
  return Unit{};
}

}  // namespace gradwire
