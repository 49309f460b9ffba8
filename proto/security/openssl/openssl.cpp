#include "proto/security/openssl/openssl.h"

#include "proto/security/keys.h"

namespace gradwire {

std::string pem_of(EVP_PKEY* key) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  char* text = nullptr;
  if (!out || PEM_write_bio_PKCS8PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    throw std::runtime_error("the key cannot be written: " + openssl_reason());
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string fingerprint_of(X509* certificate) {
  Bytes32 digest{};
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), reinterpret_cast<unsigned char*>(digest.data()), &size) != 1)
    fail_openssl("the certificate cannot be hashed");
  return to_base64(digest);
}

}  // namespace gradwire
