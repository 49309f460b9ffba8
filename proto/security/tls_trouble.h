// Errors of a client's handshake that name a remedy. They are the same with each TLS library.
#pragma once

#include <ctime>
#include <string>

#include "base/result.h"

namespace gradwire {

enum class Distrust { kOtherAuthority, kExpired, kNotYetValid, kOtherNames };

// Facts of a certificate that the client does not trust.
struct SeenCertificate {
  std::string names;                 // as in "DNS:fl.example, IP Address:127.0.0.1"
  std::time_t begins = 0, ends = 0;  // its validity, in seconds since 1970
};

// `now` is the time by the clock of this machine.
Error untrusted_server(Distrust why, const SeenCertificate& seen, std::time_t now);

// Numbers of alerts (RFC 8446, section 6).
inline constexpr int kAlertHandshakeFailure = 40, kAlertBadCertificate = 42, kAlertCertificateExpired = 45,
                     kAlertUnknownAuthority = 48, kAlertProtocolVersion = 70, kAlertCertificateRequired = 116;
// Returns why the server ended the handshake, by the number of its alert. Empty if this function has no text.
std::string refusal_by_server(int alert);

}  // namespace gradwire
