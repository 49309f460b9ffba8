#include "proto/security/openssl/tls_context.h"

#include <new>
#include <stdexcept>

#include "proto/security/tls_files.h"

namespace gradwire {
namespace fs = std::filesystem;

SslContextPtr make_context(const SSL_METHOD* algorithm, TlsVersion least) {
  SslContextPtr context(SSL_CTX_new(algorithm));
  if (!context) throw std::runtime_error("OpenSSL failed to initialize: " + openssl_reason());
  SSL_CTX_set_min_proto_version(context.get(), least == TlsVersion::k13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(),
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Prefer the fastest on processors with AES instructions.
  SSL_CTX_set_ciphersuites(context.get(),
                           "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384");
  SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20");
  return context;
}

void use_certificate(SSL_CTX* context, const fs::path& certificate, const fs::path& key) {
  check_pair(certificate, key);
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1)
    refuse_files(certificate.string() + ": is not a certificate in PEM: " + openssl_reason());
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1)
    refuse_files(key.string() + ": is not the key of " + certificate.string() + ": " + openssl_reason());
}

bool has_expired(SSL_CTX* context, std::time_t now) {
  return X509_cmp_time(X509_get0_notAfter(SSL_CTX_get0_certificate(context)), &now) < 0;
}

void trust_authorities(SSL_CTX* context, const fs::path& file) {
  if (SSL_CTX_load_verify_file(context, file.c_str()) != 1)
    refuse_files(file.string() + ": has no certificate in PEM: " + openssl_reason());
}

SslPtr make_ssl(SSL_CTX* context) {
  SslPtr ssl(SSL_new(context));
  if (!ssl) throw std::bad_alloc();
  return ssl;
}

}  // namespace gradwire
