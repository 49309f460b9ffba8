// The settings of OpenSSL that a server and a client share. Only for .cpp files of this folder.
#pragma once

#include <ctime>
#include <filesystem>

#include "proto/security/openssl/openssl.h"
#include "proto/security/tls.h"

namespace gradwire {

// Throws std::runtime_error.
SslContextPtr make_context(const SSL_METHOD* algorithm, TlsVersion least);
SslPtr make_ssl(SSL_CTX* context);
// Loads a certificate and its key. Throws std::invalid_argument.
void use_certificate(SSL_CTX* context, const std::filesystem::path& certificate,
                     const std::filesystem::path& key);
bool has_expired(SSL_CTX* context, std::time_t now);
// Trusts the authorities in a file. Throws std::invalid_argument.
void trust_authorities(SSL_CTX* context, const std::filesystem::path& file);

}  // namespace gradwire
