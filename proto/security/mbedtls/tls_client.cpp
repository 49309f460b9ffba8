// TLS of a board's client, over mbedTLS: TLS 1.3 if the library has it, and TLS 1.2.
#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstdio>
#include <ctime>
#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>
#include <memory>
#include <new>
#include <optional>
#include <sodium.h>
#include <stdexcept>
#include <string>
#include <utility>

#include "proto/security/byte_queue.h"
#include "proto/security/keys.h"
#include "proto/security/tls.h"
#include "proto/security/tls_files.h"
#include "proto/security/tls_trouble.h"
#include "proto/wire/address.h"

#if MBEDTLS_VERSION_MAJOR < 3
#define MBEDTLS_PRIVATE(member) member
#else
#include <psa/crypto.h>
#endif

namespace gradwire {
namespace {

// An object of mbedTLS.
template <class T, auto kInit, auto kFree>
class Mbed {
 public:
  Mbed() { kInit(&object_); }
  ~Mbed() { kFree(&object_); }
  Mbed(const Mbed&) = delete;
  Mbed& operator=(const Mbed&) = delete;
  T* get() { return &object_; }
  T* operator->() { return &object_; }
  void clear() {
    kFree(&object_);
    kInit(&object_);
  }

 private:
  T object_;
};
using Certificates = Mbed<mbedtls_x509_crt, mbedtls_x509_crt_init, mbedtls_x509_crt_free>;
using PrivateKey = Mbed<mbedtls_pk_context, mbedtls_pk_init, mbedtls_pk_free>;
using Config = Mbed<mbedtls_ssl_config, mbedtls_ssl_config_init, mbedtls_ssl_config_free>;
using Session = Mbed<mbedtls_ssl_session, mbedtls_ssl_session_init, mbedtls_ssl_session_free>;
using Connection = Mbed<mbedtls_ssl_context, mbedtls_ssl_init, mbedtls_ssl_free>;

#ifdef MBEDTLS_SSL_PROTO_TLS1_3
constexpr bool kHasTls13 = true;
#else
constexpr bool kHasTls13 = false;
#endif

// Only forward-secret key exchange and authenticated encryption.
constexpr int kCipherSuites[] = {
#ifdef MBEDTLS_SSL_PROTO_TLS1_3
    MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS1_3_AES_128_GCM_SHA256,
    MBEDTLS_TLS1_3_AES_256_GCM_SHA384,
#endif
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    0};

int random_bytes(void*, unsigned char* to, std::size_t size) {
  randombytes_buf(to, size);
  return 0;
}

std::string number_of(int error) {
  char text[16];
  std::snprintf(text, sizeof text, "-0x%04x", static_cast<unsigned>(-error));
  return text;
}

std::time_t seconds_of(const mbedtls_x509_time& time) {
  std::tm date{};
  date.tm_year = time.year - 1900;
  date.tm_mon = time.mon - 1;
  date.tm_mday = time.day;
  date.tm_hour = time.hour;
  date.tm_min = time.min;
  date.tm_sec = time.sec;
  return ::timegm(&date);
}

// ---- the names in a certificate ----

constexpr int kDnsName = 2, kAddress = 7;  // RFC 5280, 4.2.1.6

// Calls see(kind, bytes) for each name.
template <class See>
void for_each_name(const mbedtls_x509_crt& certificate, const See& see) {
  for (const mbedtls_x509_sequence* at = &certificate.subject_alt_names; at != nullptr; at = at->next)
    if (at->buf.p != nullptr)
      see(at->buf.tag & MBEDTLS_ASN1_TAG_VALUE_MASK, std::span<const unsigned char>(at->buf.p, at->buf.len));
}

std::string names_in(const mbedtls_x509_crt& certificate) {
  std::string names;
  for_each_name(certificate, [&names](int kind, std::span<const unsigned char> bytes) {
    std::string name;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (kind == kDnsName) {
      name = "DNS:";
      for (const unsigned char c : bytes) name += c > ' ' && c < 127 ? static_cast<char>(c) : '?';
    } else if (kind == kAddress && (bytes.size() == 4 || bytes.size() == 16) &&
               ::inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text.data(), text.size())) {
      name = std::string("IP Address:") + text.data();
    }
    if (!name.empty()) names += (names.empty() ? "" : ", ") + name;
  });
  return names;
}

// Returns whether a certificate is for an IP address. mbedTLS 2.28 compares only names.
bool has_address(const mbedtls_x509_crt& certificate, const std::string& address) {
  std::array<unsigned char, 16> bytes{};
  const std::size_t size = ::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1    ? 4
                           : ::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1 ? 16
                                                                                       : 0;
  bool found = false;
  for_each_name(certificate, [&](int kind, std::span<const unsigned char> name) {
    found = found || (kind == kAddress && size > 0 && std::ranges::equal(name, std::span(bytes).first(size)));
  });
  return found;
}

std::string fingerprint_of(const mbedtls_x509_crt& certificate) {
  return to_base64(sha256(std::as_bytes(std::span(certificate.raw.p, certificate.raw.len))));
}

// ---- what the connections of one client share ----

struct Shared {
  std::string pin;  // if empty, `authorities` are trusted
  WallClock now;
  Certificates authorities, own;
  PrivateKey own_key;
  Config config;
  Session session;  // the last one from a server
  bool has_session = false, has_own = false;

  void keep_session(const mbedtls_ssl_context* connection) {
    session.clear();
    has_session = mbedtls_ssl_get_session(connection, session.get()) == 0;
  }
};

void read_certificates(Certificates& to, const std::filesystem::path& file, const char* trouble) {
  refuse_pipe(file);
  const int result = mbedtls_x509_crt_parse_file(to.get(), file.c_str());
  if (result < 0 || to->version == 0) refuse_files(file.string() + trouble + number_of(result));
}

void use_certificate(Shared& shared, const ClientCertificate& own) {
  check_pair(own.certificate, own.key);
  read_certificates(shared.own, own.certificate, ": is not a certificate in PEM: ");
#if MBEDTLS_VERSION_MAJOR < 3
  int result = mbedtls_pk_parse_keyfile(shared.own_key.get(), own.key.c_str(), nullptr);
  if (result == 0) result = mbedtls_pk_check_pair(&shared.own->pk, shared.own_key.get());
#else
  int result =
      mbedtls_pk_parse_keyfile(shared.own_key.get(), own.key.c_str(), nullptr, random_bytes, nullptr);
  if (result == 0)
    result = mbedtls_pk_check_pair(&shared.own->pk, shared.own_key.get(), random_bytes, nullptr);
#endif
  if (result != 0)
    refuse_files(own.key.string() + ": is not the key of " + own.certificate.string() + ": " +
                 number_of(result));
  if (shared.now() > seconds_of(shared.own->valid_to))
    refuse_files(own.certificate.string() + ": has expired; ask its issuer for a new one");
  if (mbedtls_ssl_conf_own_cert(shared.config.get(), shared.own.get(), shared.own_key.get()) != 0)
    throw std::bad_alloc();
  shared.has_own = true;
}

// ---- one connection ----

class MbedFilter final : public StreamFilter {
 public:
  MbedFilter(std::shared_ptr<Shared> shared, const std::string& host)
      : shared_(std::move(shared)), address_(is_numeric(host) ? host : "") {
    if (mbedtls_ssl_setup(ssl_.get(), shared_->config.get()) != 0 ||
        mbedtls_ssl_set_hostname(ssl_.get(), address_.empty() ? host.c_str() : nullptr) != 0)
      throw std::bad_alloc();
    mbedtls_ssl_set_bio(ssl_.get(), this, send_some, receive_some, nullptr);
    mbedtls_ssl_set_verify(ssl_.get(), check, this);
    if (shared_->has_session) (void)mbedtls_ssl_set_session(ssl_.get(), shared_->session.get());
    (void)shake_hands();  // sends the ClientHello
  }

  Status feed(std::span<const std::byte> arrived) override {
    if (failed_) return *failed_;
    in_.add(arrived);
    if (!ready_)
      if (Status status = shake_hands(); !status) return status;
    return ready_ ? look_ahead() : Unit{};
  }

  Result<std::size_t> read(std::span<std::byte> to) override {
    if (!ready_ || to.empty() || !has_byte_) return std::size_t{0};
    to[0] = next_;
    has_byte_ = false;
    std::size_t done = 1;
    while (done < to.size()) {
      const auto got = read_some(to.subspan(done));
      if (!got) return got.error();
      if (*got == 0) return done;
      done += *got;
    }
    if (Status status = look_ahead(); !status) return status.error();
    return done;
  }
  bool has_plain() const override { return ready_ && has_byte_; }

  Status write(std::span<const std::byte> plain) override {
    while (!plain.empty()) {
      const int taken =
          mbedtls_ssl_write(ssl_.get(), reinterpret_cast<const unsigned char*>(plain.data()), plain.size());
      if (taken < 0) return fail(taken);
      plain = plain.subspan(static_cast<std::size_t>(taken));
    }
    return Unit{};
  }
  void end() override {
    if (ready_ && !failed_) (void)mbedtls_ssl_close_notify(ssl_.get());
  }

  std::span<const std::byte> outgoing() const override { return out_.bytes(); }
  void sent(std::size_t bytes) override { out_.drop(bytes); }
  bool ready() const override { return ready_; }

 private:
  static int send_some(void* filter, const unsigned char* from, std::size_t size) {
    try {
      static_cast<MbedFilter*>(filter)->out_.add(std::as_bytes(std::span(from, size)));
    } catch (const std::bad_alloc&) {  // must not pass through mbedTLS, which is C
      return MBEDTLS_ERR_SSL_ALLOC_FAILED;
    }
    return static_cast<int>(size);
  }
  static int receive_some(void* filter, unsigned char* to, std::size_t most) {
    ByteQueue& in = static_cast<MbedFilter*>(filter)->in_;
    const auto waiting = in.bytes();
    const std::size_t count = std::min(most, waiting.size());
    if (count == 0) return MBEDTLS_ERR_SSL_WANT_READ;
    std::copy_n(waiting.data(), count, reinterpret_cast<std::byte*>(to));
    in.drop(count);
    return static_cast<int>(count);
  }

  // Judges a certificate of the server's chain, from its root to the server's own at depth 0.
  static int check(void* filter, mbedtls_x509_crt* certificate, int depth, std::uint32_t* flags) {
    try {
      static_cast<MbedFilter*>(filter)->judge(*certificate, depth, *flags);
    } catch (const std::bad_alloc&) {
      return MBEDTLS_ERR_X509_ALLOC_FAILED;
    }
    return 0;
  }
  void judge(const mbedtls_x509_crt& certificate, int depth, std::uint32_t& flags) {
    const std::time_t now = shared_->now();
    const SeenCertificate dates{"", seconds_of(certificate.valid_from), seconds_of(certificate.valid_to)};
    flags &= ~static_cast<std::uint32_t>(MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE);
    if (now > dates.ends) flags |= MBEDTLS_X509_BADCERT_EXPIRED;
    if (now < dates.begins) flags |= MBEDTLS_X509_BADCERT_FUTURE;
    // The pinned root came with the server's certificate. No other one signed it, so mbedTLS does not trust
    // it.
    if (depth > 0 && !shared_->pin.empty() && fingerprint_of(certificate) == shared_->pin)
      flags &= ~static_cast<std::uint32_t>(MBEDTLS_X509_BADCERT_NOT_TRUSTED);
    if (depth == 0 && !address_.empty() && !has_address(certificate, address_))
      flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
    if (flags == 0) return;
    if (trouble_ == 0) {
      seen_ = dates;
      seen_.names = names_in(certificate);
      seen_at_ = now;
    }
    trouble_ |= flags;
  }

  Status shake_hands() {
    const int result = mbedtls_ssl_handshake(ssl_.get());
    if (result == MBEDTLS_ERR_SSL_WANT_READ) return Unit{};
    if (result != 0) return fail(result);
    ready_ = true;
    shared_->keep_session(ssl_.get());
    return Unit{};
  }

  // Returns 0 if more must be fed first, or if the server ended the connection.
  Result<std::size_t> read_some(std::span<std::byte> to) {
    for (;;) {
      const std::size_t waiting = in_.bytes().size();
      const int result = mbedtls_ssl_read(ssl_.get(), reinterpret_cast<unsigned char*>(to.data()), to.size());
      if (result > 0) return static_cast<std::size_t>(result);
#ifdef MBEDTLS_SSL_PROTO_TLS1_3
      if (result == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET) {
        shared_->keep_session(ssl_.get());
        continue;
      }
#endif
      // mbedTLS 3.6 also stops after a session ticket. The next bytes have arrived already.
      if (result == MBEDTLS_ERR_SSL_WANT_READ && !in_.bytes().empty() && in_.bytes().size() < waiting)
        continue;
      if (result == 0 || result == MBEDTLS_ERR_SSL_WANT_READ || result == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY)
        return std::size_t{0};
      return fail(result);
    }
  }

  // Decrypts the next record and keeps its first byte, so that has_plain() knows whether there is data.
  Status look_ahead() {
    if (has_byte_) return Unit{};
    const auto got = read_some(std::span(&next_, 1));
    if (!got) return got.error();
    has_byte_ = *got == 1;
    return Unit{};
  }

  Error fail(int result) {
    failed_ = trouble(result);
    return *failed_;
  }
  Error trouble(int result) {
    const auto because = [this](Distrust why) { return untrusted_server(why, seen_, seen_at_); };
    if ((trouble_ & MBEDTLS_X509_BADCERT_NOT_TRUSTED) != 0) return because(Distrust::kOtherAuthority);
    if ((trouble_ & MBEDTLS_X509_BADCERT_EXPIRED) != 0) return because(Distrust::kExpired);
    if ((trouble_ & MBEDTLS_X509_BADCERT_FUTURE) != 0) return because(Distrust::kNotYetValid);
    if ((trouble_ & MBEDTLS_X509_BADCERT_CN_MISMATCH) != 0) return because(Distrust::kOtherNames);
    if (trouble_ != 0)
      return Error{"the server's certificate is not trusted: reasons " + std::to_string(trouble_) +
                   " of mbedTLS"};
    if (result == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE)
      return Error{refusal(ssl_->MBEDTLS_PRIVATE(in_msg)[1])};
    if (!ready_ && (result == MBEDTLS_ERR_SSL_INVALID_RECORD || result == MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE))
      return Error{"the server does not speak TLS"};
    return Error{"TLS: error " + number_of(result) + " of mbedTLS"};
  }
  std::string refusal(int alert) {
#if MBEDTLS_VERSION_MAJOR < 3
    // TLS 1.2 has no alert for a missing certificate.
    if (alert == kAlertHandshakeFailure && ssl_->client_auth != 0 && !shared_->has_own)
      alert = kAlertCertificateRequired;
#endif
    const std::string text = refusal_by_server(alert);
    if (alert == kAlertProtocolVersion && !kHasTls13)
      return text + ", which has TLS 1.2; set server.tls_min = \"TLS1.2\" at the server";
    return text.empty() ? "TLS: the server ended the connection with alert " + std::to_string(alert) : text;
  }

  const std::shared_ptr<Shared> shared_;
  const std::string address_;                          // the server's IP address; empty if it has a name
  static constexpr std::size_t kMostKept = 32 * 1024;  // so that messages up to this size need no new memory
  ByteQueue in_{kMostKept}, out_{kMostKept};
  std::uint32_t trouble_ = 0;  // flags of mbedTLS for all certificates
  SeenCertificate seen_;       // the first one with a flag
  std::time_t seen_at_ = 0;
  std::optional<Error> failed_;
  std::byte next_{};  // the next byte for read(), if has_byte_
  bool has_byte_ = false, ready_ = false;
  Connection ssl_;
};

}  // namespace

struct TlsClient::Impl {
  std::shared_ptr<Shared> shared = std::make_shared<Shared>();
};

TlsClient::TlsClient(const TrustedServer& trusted, [[maybe_unused]] TlsVersion least,
                     const ClientCertificate& own, WallClock now)
    : impl_(new Impl) {
  Shared& shared = *impl_->shared;
  shared.pin = trusted.ca_pin;
  shared.now = std::move(now);
  mbedtls_ssl_config* const config = shared.config.get();
  if (sodium_init() < 0) throw std::runtime_error("the system provides no random numbers for keys");
  if (mbedtls_ssl_config_defaults(config, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
                                  MBEDTLS_SSL_PRESET_DEFAULT) != 0)
    throw std::bad_alloc();
#if MBEDTLS_VERSION_MAJOR < 3
  mbedtls_ssl_conf_min_version(config, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
#else
  if (psa_crypto_init() != PSA_SUCCESS) throw std::runtime_error("mbedTLS failed to initialize");
  mbedtls_ssl_conf_min_tls_version(config, kHasTls13 && least == TlsVersion::k13
                                               ? MBEDTLS_SSL_VERSION_TLS1_3
                                               : MBEDTLS_SSL_VERSION_TLS1_2);
#if MBEDTLS_VERSION_NUMBER >= 0x03060100 && defined(MBEDTLS_SSL_PROTO_TLS1_3)
  mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(
      config, MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED);
#endif
#endif
  mbedtls_ssl_conf_rng(config, random_bytes, nullptr);
  mbedtls_ssl_conf_ciphersuites(config, kCipherSuites);
  mbedtls_ssl_conf_authmode(config, MBEDTLS_SSL_VERIFY_REQUIRED);
  mbedtls_ssl_conf_session_tickets(config, MBEDTLS_SSL_SESSION_TICKETS_ENABLED);
  if (!trusted.ca_file.empty())
    read_certificates(shared.authorities, trusted.ca_file, ": has no certificate in PEM: ");
  mbedtls_ssl_conf_ca_chain(config, shared.authorities.get(), nullptr);  // empty with a pin
  if (!own.certificate.empty()) use_certificate(shared, own);
}
TlsClient::~TlsClient() = default;

std::unique_ptr<StreamFilter> TlsClient::connect(const std::string& host) {
  return std::make_unique<MbedFilter>(impl_->shared, host);
}

}  // namespace gradwire
