// TLS 1.3 (or 1.2, where that is allowed) over OpenSSL, as a filter of bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "proto/security/stream_filter.h"

namespace gradwire {

enum class TlsVersion : std::uint8_t { k12, k13 };

// Returns the seconds since 1970 that dates of certificates are compared with; tests have clocks of their
// own.
using WallClock = std::function<std::time_t()>;
inline std::time_t time_now() { return std::time(nullptr); }

// What the connections of one server share: its certificate and key. For one thread.
class TlsServer {
 public:
  // PEM files: the certificate with those that lead to the CA behind it, and the key, which nobody else may
  // read. client_ca: only peers with a certificate of one of the authorities in that file may connect; empty:
  // they need none. `realm`: the fingerprint of the CA that clients trust by their tokens; empty: any. Throws
  // std::invalid_argument, one line that names the file.
  TlsServer(std::filesystem::path certificate, std::filesystem::path key, TlsVersion least = TlsVersion::k13,
            std::filesystem::path client_ca = {}, std::string realm = {}, WallClock now = time_now);
  ~TlsServer();
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  // The server's end of a new connection.
  std::unique_ptr<StreamFilter> accept();
  // Reads the files again if they have changed; connections that are there keep the certificate they have.
  // False: they have not changed. Error: the new ones cannot be used, and the old ones stay.
  Result<bool> renew();
  // Whether the certificate is of another authority than the realm's: clients need --ca.
  bool is_foreign() const;
  // When the certificate that new connections see ends.
  std::chrono::system_clock::time_point expires() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Whom a client takes for its server: exactly one is set.
struct TrustedServer {
  std::filesystem::path ca_file;  // PEM: whoever has a certificate of one of these for the host's name
  std::string ca_pin;             // SHA-256 of the CA's certificate, as fingerprint_of() writes it
};

// What a client shows to a server that asks for it: PEM files, as those of a server. Empty: nothing.
struct ClientCertificate {
  std::filesystem::path certificate, key;
};

// FOLDER/certificate.pem and .key, of an identity (identity.h) that has them.
ClientCertificate certificate_in(const std::filesystem::path& folder);

// What the connections of one client share. It resumes its last session where the server allows it: no
// certificates then cross the network. For one thread.
class TlsClient {
 public:
  // Throws std::invalid_argument, one line.
  explicit TlsClient(const TrustedServer& trusted, TlsVersion least = TlsVersion::k13,
                     const ClientCertificate& own = {}, WallClock now = time_now);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  // The client's end of a new connection to `host`, a name or an address. Send its outgoing() first.
  std::unique_ptr<StreamFilter> connect(const std::string& host);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
