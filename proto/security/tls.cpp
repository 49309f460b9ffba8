#include "proto/security/tls.h"

#include <ctime>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "proto/security/certificates.h"
#include "proto/security/keys.h"
#include "proto/security/openssl.h"
#include "proto/security/tls_filter.h"
#include "proto/wire/address.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse_files(const std::string& what) { throw std::invalid_argument(what); }

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

// Refuses pipes, because opening one waits for its writer. Throws std::invalid_argument.
void refuse_pipe(const fs::path& file) {
  if (fs::exists(file) && !fs::is_regular_file(file)) refuse_files(file.string() + ": is not a file");
}

// Loads a certificate and its key. Throws std::invalid_argument.
void use_certificate(SSL_CTX* context, const fs::path& certificate, const fs::path& key) {
  if (const Status status = check_private(key); !status) refuse_files(status.error().message);
  refuse_pipe(certificate);
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1)
    refuse_files(certificate.string() + ": is not a certificate in PEM: " + openssl_reason());
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1)
    refuse_files(key.string() + ": is not the key of " + certificate.string() + ": " + openssl_reason());
}
bool has_expired(SSL_CTX* context, std::time_t now) {
  return X509_cmp_time(X509_get0_notAfter(SSL_CTX_get0_certificate(context)), &now) < 0;
}
// Trusts the authorities in a file. Throws std::invalid_argument.
void trust_authorities(SSL_CTX* context, const fs::path& file) {
  if (SSL_CTX_load_verify_file(context, file.c_str()) != 1)
    refuse_files(file.string() + ": has no certificate in PEM: " + openssl_reason());
}

SslPtr make_ssl(SSL_CTX* context) {
  SslPtr ssl(SSL_new(context));
  if (!ssl) throw std::bad_alloc();
  return ssl;
}

}  // namespace

ClientCertificate certificate_in(const fs::path& folder) {
  if (folder.empty() || !fs::exists(folder / "certificate.pem")) return {};
  return {folder / "certificate.pem", folder / "certificate.key"};
}

// ---- the server ----

struct TlsServer::Impl {
  fs::path certificate, key;
  TlsVersion least;
  fs::path client_ca;  // peers need no certificate if empty
  std::string realm;   // any CA if empty
  WallClock now;
  bool is_foreign = false;
  SslContextPtr context;
  std::pair<fs::file_time_type, fs::file_time_type> changed;

  std::pair<fs::file_time_type, fs::file_time_type> times() const {
    std::error_code error;
    return {fs::last_write_time(certificate, error), fs::last_write_time(key, error)};
  }
  // Loads the files. Throws std::invalid_argument.
  SslContextPtr load() {
    SslContextPtr made = make_context(TLS_server_method(), least);
    use_certificate(made.get(), certificate, key);
    if (has_expired(made.get(), now()))
      refuse_files(certificate.string() + ": has expired; make a new one with gradwire-server renew");
    if (!realm.empty()) {
      const SignedBy signer = signer_of(certificate, realm);
      if (signer == SignedBy::kOtherAuthority)
        refuse_files(certificate.string() +
                     ": is not signed by the authority that clients trust by their tokens, so none "
                     "would connect: combine the files of one identity, or make a new certificate with "
                     "gradwire-server renew");
      is_foreign = signer == SignedBy::kForeign;
    }
    if (!client_ca.empty()) {
      refuse_pipe(client_ca);
      trust_authorities(made.get(), client_ca);
      SSL_CTX_set_client_CA_list(made.get(), SSL_load_client_CA_file(client_ca.c_str()));
      SSL_CTX_set_verify(made.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
      // Do not resume a session from a server that did not request a client certificate.
      static constexpr unsigned char kAsksForCertificates[] = "client-ca";
      SSL_CTX_set_session_id_context(made.get(), kAsksForCertificates, sizeof kAsksForCertificates - 1);
    }
    return made;
  }
};

TlsServer::TlsServer(fs::path certificate, fs::path key, TlsVersion least, fs::path client_ca,
                     std::string realm, WallClock now)
    : impl_(new Impl{std::move(certificate),
                     std::move(key),
                     least,
                     std::move(client_ca),
                     std::move(realm),
                     std::move(now),
                     false,
                     nullptr,
                     {}}) {
  impl_->changed = impl_->times();
  impl_->context = impl_->load();
}
TlsServer::~TlsServer() = default;

std::unique_ptr<StreamFilter> TlsServer::accept() {
  SslPtr ssl = make_ssl(impl_->context.get());
  SSL_set_accept_state(ssl.get());
  // Do not resume earlier sessions, so that the peer sees that the certificate has expired.
  static constexpr unsigned char kExpired[] = "expired";
  if (has_expired(impl_->context.get(), impl_->now()))
    SSL_set_session_id_context(ssl.get(), kExpired, sizeof kExpired - 1);
  return std::make_unique<TlsFilter>(std::move(ssl), TlsFilter::End::kServer);
}

Result<bool> TlsServer::renew() {
  const auto now = impl_->times();
  if (now == impl_->changed) return false;
  impl_->changed = now;
  try {
    impl_->context = impl_->load();
    return true;
  } catch (const std::exception& error) {
    return Error{error.what()};
  }
}

bool TlsServer::is_foreign() const { return impl_->is_foreign; }

std::chrono::system_clock::time_point TlsServer::expires() const {
  std::tm date{};
  ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(impl_->context.get())), &date);
  return std::chrono::system_clock::from_time_t(::timegm(&date));
}

// ---- the client ----

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
    if (certificate != nullptr) static_cast<TlsFilter*>(SSL_get_app_data(ssl))->note_distrust(certificate);
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
