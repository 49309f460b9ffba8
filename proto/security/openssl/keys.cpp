#include "proto/security/keys.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "proto/security/openssl/openssl.h"
#include "proto/security/private_file.h"

namespace gradwire {
namespace {

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* raw_out(std::span<std::byte> bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

}  // namespace

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

}  // namespace gradwire
