// mbedTLS calls the server's side of its handshake by these names, the second one from version 3 on. A client
// never is a server: a static one of a board defines the names itself, and so does without 25 KB.
#ifdef GRADWIRE_SMALL
#include <mbedtls/ssl.h>

extern "C" {
int mbedtls_ssl_handshake_server_step(mbedtls_ssl_context*) { return MBEDTLS_ERR_SSL_FEATURE_UNAVAILABLE; }
int mbedtls_ssl_tls13_handshake_server_step(mbedtls_ssl_context*) {
  return MBEDTLS_ERR_SSL_FEATURE_UNAVAILABLE;
}
}
#endif
