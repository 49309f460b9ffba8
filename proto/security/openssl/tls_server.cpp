#include <ctime>
#include <system_error>
#include <utility>

#include "proto/security/certificates.h"
#include "proto/security/openssl/openssl.h"
#include "proto/security/openssl/tls_context.h"
#include "proto/security/openssl/tls_filter.h"
#include "proto/security/tls.h"
#include "proto/security/tls_files.h"

namespace gradwire {
namespace fs = std::filesystem;

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

}  // namespace gradwire
