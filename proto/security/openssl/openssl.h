// Owning pointers for OpenSSL's objects, and its errors as one line. Only for .cpp files of this folder.
#pragma once

#include <memory>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdexcept>
#include <string>

namespace gradwire {

template <auto kFree>
struct OpensslFree {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using KeyContextPtr = std::unique_ptr<EVP_PKEY_CTX, OpensslFree<EVP_PKEY_CTX_free>>;
using DigestPtr = std::unique_ptr<EVP_MD_CTX, OpensslFree<EVP_MD_CTX_free>>;
using CertificatePtr = std::unique_ptr<X509, OpensslFree<X509_free>>;
using BioPtr = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;
using SslContextPtr = std::unique_ptr<SSL_CTX, OpensslFree<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, OpensslFree<SSL_free>>;
using SslSessionPtr = std::unique_ptr<SSL_SESSION, OpensslFree<SSL_SESSION_free>>;

// Returns the reason of the last error, and clears all errors.
inline std::string openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* const reason = ERR_reason_error_string(code);
  const std::string text = reason != nullptr ? reason
                           : code != 0       ? "error " + std::to_string(code)
                                             : "no reason given";
  ERR_clear_error();
  return text;
}

// Throws std::runtime_error: "`what`: the reason".
[[noreturn]] inline void fail_openssl(const std::string& what) {
  throw std::runtime_error(what + ": " + openssl_reason());
}

// Returns the key as PKCS #8, not encrypted. Throws std::runtime_error.
std::string pem_of(EVP_PKEY* key);
// Returns the SHA-256 of the certificate as DER, in base64url.
std::string fingerprint_of(X509* certificate);

}  // namespace gradwire
