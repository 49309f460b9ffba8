#include <utility>

#include "proto/security/openssl/openssl.h"
#include "proto/security/openssl/tls_context.h"
#include "proto/security/openssl/tls_filter.h"
#include "proto/security/tls.h"
#include "proto/security/tls_files.h"
#include "proto/wire/address.h"

namespace gradwire {

struct TlsClient::Impl {
  std::string pin;  // if empty, the authorities of `context` are trusted
  SslContextPtr context;
  SslSessionPtr session;  // the last one from a server
  WallClock now;

  static Impl& of(const SSL* ssl) { return *static_cast<Impl*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl))); }
  // Accepts, in addition to known roots, the pinned root that came with the server's certificate.
  static int check(int good, X509_STORE_CTX* store) {
    const auto* const ssl =
        static_cast<const SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    if (good == 1) return 1;
    const std::string& pin = of(ssl).pin;
    X509* const certificate = X509_STORE_CTX_get_current_cert(store);
    const bool is_root = X509_STORE_CTX_get_error(store) == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN;
    if (is_root && certificate != nullptr && !pin.empty() && fingerprint_of(certificate) == pin) {
      X509_STORE_CTX_set_error(store, X509_V_OK);
      return 1;
    }
    if (certificate != nullptr)
      static_cast<TlsFilter*>(SSL_get_app_data(ssl))->note_distrust(certificate, of(ssl).now());
    return 0;
  }
  static int keep_session(SSL* ssl, SSL_SESSION* session) {
    of(ssl).session.reset(session);
    return 1;  // this object owns it now
  }
};

TlsClient::TlsClient(const TrustedServer& trusted, TlsVersion least, const ClientCertificate& own,
                     WallClock now)
    : impl_(new Impl) {
  impl_->now = std::move(now);
  impl_->pin = trusted.ca_pin;
  impl_->context = make_context(TLS_client_method(), least);
  SSL_CTX* const context = impl_->context.get();
  if (!trusted.ca_file.empty()) trust_authorities(context, trusted.ca_file);
  if (!own.certificate.empty()) {
    use_certificate(context, own.certificate, own.key);
    if (has_expired(context, impl_->now()))
      refuse_files(own.certificate.string() + ": has expired; ask its issuer for a new one");
  }
  SSL_CTX_set_app_data(context, impl_.get());
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, Impl::check);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, Impl::keep_session);
}
TlsClient::~TlsClient() = default;

std::unique_ptr<StreamFilter> TlsClient::connect(const std::string& host) {
  SslPtr ssl = make_ssl(impl_->context.get());
  SSL_set_connect_state(ssl.get());
  X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl.get()), impl_->now());
  if (is_numeric(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host.c_str());
  } else {
    SSL_set_hostflags(ssl.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    SSL_set1_host(ssl.get(), host.c_str());
    SSL_set_tlsext_host_name(ssl.get(), host.c_str());
  }
  if (impl_->session) SSL_set_session(ssl.get(), impl_->session.get());
  return std::make_unique<TlsFilter>(std::move(ssl), TlsFilter::End::kClient);
}

}  // namespace gradwire
