// TLS 1.3 (or 1.2 if allowed) as a filter of bytes: over OpenSSL, or in clients of boards over mbedTLS.
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

// Returns the seconds since 1970, to compare with the dates of certificates. Tests use their own clocks.
using WallClock = std::function<std::time_t()>;
inline std::time_t time_now() { return std::time(nullptr); }

// The certificate and key that the connections of one server share. For one thread.
class TlsServer {
 public:
  // Reads PEM files: the certificate followed by its chain to the CA, and the key, which only its owner may
  // read. With `client_ca`, only peers with a certificate of a CA in that file may connect; if it is empty,
  // peers need none. `realm` is the fingerprint of the CA that clients trust by their tokens; empty means
  // any. Throws std::invalid_argument, one line that names the file.
  TlsServer(std::filesystem::path certificate, std::filesystem::path key, TlsVersion least = TlsVersion::k13,
            std::filesystem::path client_ca = {}, std::string realm = {}, WallClock now = time_now);
  ~TlsServer();
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  // Returns the server's end of a new connection.
  std::unique_ptr<StreamFilter> accept();
  // Reads the files again if they have changed. Existing connections keep their certificate. Returns false if
  // the files have not changed. On an error the new files are unusable, and the old certificate stays.
  Result<bool> renew();
  // Returns whether the certificate comes from a CA other than the realm's; then clients need --ca.
  bool is_foreign() const;
  // Returns the end of the validity of the certificate for new connections.
  std::chrono::system_clock::time_point expires() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The way in which a client verifies the server. Exactly one member is set.
struct TrustedServer {
  std::filesystem::path ca_file;  // PEM: the server's certificate must be for the host, from one of these CAs
  std::string ca_pin;             // SHA-256 of the CA's certificate, as fingerprint_of() writes it
};

// The certificate of a client, for a server that requests one: PEM files like those of a server. Empty if
// there is none.
struct ClientCertificate {
  std::filesystem::path certificate, key;
};

// Returns FOLDER/certificate.pem and .key of an identity (identity.h), if they exist.
ClientCertificate certificate_in(const std::filesystem::path& folder);

// The settings that the connections of one client share. It resumes its last session if the server allows it;
// then no certificates cross the network. For one thread.
class TlsClient {
 public:
  // Throws std::invalid_argument, one line. mbedTLS before 3.6 has only TLS 1.2, whatever `least` is.
  explicit TlsClient(const TrustedServer& trusted, TlsVersion least = TlsVersion::k13,
                     const ClientCertificate& own = {}, WallClock now = time_now);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  // Returns the client's end of a new connection to `host`, a name or an address. Send its outgoing() first.
  std::unique_ptr<StreamFilter> connect(const std::string& host);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
