#include "proto/security/openssl/tls_filter.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <new>
#include <string>
#include <utility>

namespace gradwire {
namespace {

// A peer may update its keys kMostKeyUpdates times, and once more for every kBytesOfAKey bytes that it sends.
constexpr std::uint64_t kMostKeyUpdates = 32, kBytesOfAKey = std::uint64_t{16} << 20;

// The streams that OpenSSL reads from and writes to.
struct Streams {
  ByteQueue &in, &out;
};

int read_some(BIO* bio, char* to, int most) {
  BIO_clear_retry_flags(bio);
  auto& streams = *static_cast<Streams*>(BIO_get_data(bio));
  const auto waiting = streams.in.bytes();
  const std::size_t count = std::min(static_cast<std::size_t>(std::max(most, 0)), waiting.size());
  if (count == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  std::copy_n(waiting.data(), count, reinterpret_cast<std::byte*>(to));
  streams.in.drop(count);
  return static_cast<int>(count);
}

int write_some(BIO* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  ByteQueue& out = static_cast<Streams*>(BIO_get_data(bio))->out;
  try {
    out.add(std::as_bytes(std::span(from, static_cast<std::size_t>(size))));
  } catch (const std::bad_alloc&) {  // must not pass through OpenSSL, which is C
    return -1;
  }
  return size;
}

long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

int destroy(BIO* bio) {
  delete static_cast<Streams*>(BIO_get_data(bio));
  return 1;
}

std::time_t seconds_of(const ASN1_TIME* time) {
  std::tm date{};
  return ASN1_TIME_to_tm(time, &date) == 1 ? ::timegm(&date) : 0;
}

// Returns the names in a certificate, as OpenSSL prints them.
std::string names_in(const X509* certificate) {
  const int at = X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1);
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (at < 0 || !out || X509V3_EXT_print(out.get(), X509_get_ext(certificate, at), 0, 0) != 1) return "";
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

// Returns the reason why a handshake failed at the server. Empty if this function has no text for it.
std::string trouble_with_client(const SSL* ssl, int reason) {
  switch (reason) {
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "this server's certificate has expired; make a new one with gradwire-server renew";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      return "the client rejects this server's certificate: does it connect by a name that the "
             "certificate lacks? (gradwire-server renew, with a --host for each of its names)";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "the client does not trust this server's authority: its token or its --ca is from "
             "another server";
    case SSL_R_UNSUPPORTED_PROTOCOL:
      return "the client's TLS version is too old for this server (server.tls_min)";
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "the client sent no certificate, but this server requires one (client-ca.pem)";
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
      return std::string("the client's certificate is not trusted: ") +
             X509_verify_cert_error_string(SSL_get_verify_result(ssl));
    default: return "";
  }
}

}  // namespace

BIO_METHOD* TlsFilter::method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "gradwire");
    BIO_meth_set_read(made, read_some);
    BIO_meth_set_write(made, write_some);
    BIO_meth_set_ctrl(made, control);
    BIO_meth_set_destroy(made, destroy);
    return made;
  }();
  return method;
}

TlsFilter::TlsFilter(SslPtr ssl, End end) : end_(end), ssl_(std::move(ssl)) {
  BIO* const bio = BIO_new(method());
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, new Streams{in_, out_});
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), this);
  SSL_set_msg_callback(ssl_.get(), note_message);
  SSL_set_msg_callback_arg(ssl_.get(), this);
  if (end_ == End::kClient) (void)shake_hands();  // sends the ClientHello
}

// Keeps the session resumable: OpenSSL would not resume it after a connection that broke.
TlsFilter::~TlsFilter() { SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); }

void TlsFilter::note_message(int is_written, int, int type, const void* bytes, std::size_t size, SSL*,
                             void* filter) {
  if (is_written != 0 || type != SSL3_RT_HANDSHAKE || size == 0 ||
      *static_cast<const unsigned char*>(bytes) != SSL3_MT_KEY_UPDATE)
    return;
  auto& self = *static_cast<TlsFilter*>(filter);
  ++self.key_updates_;
  // Otherwise OpenSSL would process all received key updates, perhaps thousands, in one call.
  if (!self.check_key_updates()) self.in_.clear();
}

// Limits key updates. New keys are due only after hundreds of GB; a peer that updates them all the time
// wastes this end's CPU.
Status TlsFilter::check_key_updates() const {
  if (key_updates_ <= kMostKeyUpdates + arrived_ / kBytesOfAKey) return Unit{};
  return Error{std::string("the ") + (end_ == End::kServer ? "client" : "server") +
               " updates its keys too often (" + std::to_string(key_updates_) + " times)"};
}

Status TlsFilter::feed(std::span<const std::byte> arrived) {
  in_.add(arrived);
  arrived_ += arrived.size();
  if (!ready_)
    if (Status status = shake_hands(); !status) return status;
  return ready_ ? look_ahead() : Unit{};
}

Status TlsFilter::shake_hands() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    ready_ = true;
    return Unit{};
  }
  if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ) return Unit{};
  return trouble(result);
}

// Decrypts the next record and keeps its first byte, so that has_plain() knows whether there is data.
Status TlsFilter::look_ahead() {
  if (has_byte_) return Unit{};
  ERR_clear_error();
  std::size_t got = 0;
  const int result = SSL_read_ex(ssl_.get(), &next_, 1, &got);
  has_byte_ = result == 1;
  if (Status status = check_key_updates(); !status) return status;
  if (has_byte_) return Unit{};
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_ZERO_RETURN) return Unit{};
  return trouble(result);
}

Result<std::size_t> TlsFilter::read(std::span<std::byte> to) {
  if (!ready_ || to.empty() || !has_byte_) return std::size_t{0};
  to[0] = next_;
  has_byte_ = false;
  std::size_t done = 1;
  while (done < to.size()) {
    ERR_clear_error();
    std::size_t got = 0;
    const int result = SSL_read_ex(ssl_.get(), to.data() + done, to.size() - done, &got);
    if (result != 1) {
      const int error = SSL_get_error(ssl_.get(), result);
      if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_ZERO_RETURN) return done;
      return trouble(result);
    }
    done += got;
  }
  if (Status status = look_ahead(); !status) return status.error();
  return done;
}

Status TlsFilter::write(std::span<const std::byte> plain) {
  while (!plain.empty()) {
    ERR_clear_error();
    std::size_t taken = 0;
    const int result = SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &taken);
    if (result != 1) return trouble(result);
    plain = plain.subspan(taken);
  }
  return Unit{};
}

void TlsFilter::end() {
  ERR_clear_error();
  if (ready_) SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

void TlsFilter::note_distrust(const X509* certificate, std::time_t now) {
  seen_ = {names_in(certificate), seconds_of(X509_get0_notBefore(certificate)),
           seconds_of(X509_get0_notAfter(certificate))};
  seen_at_ = now;
}

std::optional<Error> TlsFilter::why_not_trusted() const {
  const long result = SSL_get_verify_result(ssl_.get());
  if (end_ != End::kClient || result == X509_V_OK) return std::nullopt;
  const auto because = [this](Distrust why) { return untrusted_server(why, seen_, seen_at_); };
  switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED: return because(Distrust::kExpired);
    case X509_V_ERR_CERT_NOT_YET_VALID: return because(Distrust::kNotYetValid);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return because(Distrust::kOtherNames);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE: return because(Distrust::kOtherAuthority);
    default:
      return Error{std::string("the server's certificate is not trusted: ") +
                   X509_verify_cert_error_string(result)};
  }
}

Error TlsFilter::trouble(int result) {
  const int error = SSL_get_error(ssl_.get(), result);
  if (std::optional<Error> why = why_not_trusted()) {
    ERR_clear_error();
    return *std::move(why);
  }
  if (error == SSL_ERROR_SSL) {
    const int reason = ERR_GET_REASON(ERR_peek_last_error());
    const char* const peer = end_ == End::kClient ? "server" : "client";
    if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
        reason == SSL_R_PACKET_LENGTH_TOO_LONG) {
      ERR_clear_error();
      return Error{std::string("the ") + peer + " does not speak TLS"};
    }
    if (const std::string why = end_ == End::kServer ? trouble_with_client(ssl_.get(), reason)
                                                     : refusal_by_server(reason - SSL_AD_REASON_OFFSET);
        !why.empty()) {
      ERR_clear_error();
      return Error{why};
    }
    return Error{"TLS: " + openssl_reason()};
  }
  return Error{"TLS: the connection was ended"};
}

}  // namespace gradwire
