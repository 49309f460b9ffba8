#include "proto/security/tls_trouble.h"

namespace gradwire {
namespace {

std::string date_of(std::time_t time) {
  std::tm date{};
  if (::gmtime_r(&time, &date) == nullptr) return "an unknown date";
  char text[64];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &date)};
}

}  // namespace

Error untrusted_server(Distrust why, const SeenCertificate& seen, std::time_t now) {
  switch (why) {
    case Distrust::kExpired:
      return Error{"the server's certificate has expired (" + date_of(seen.ends) +
                   "): its operator must renew it, or the clock of this machine is wrong"};
    case Distrust::kNotYetValid:
      return Error{"the clock of this machine says " + date_of(now) +
                   ", before the first day of the server's certificate (" + date_of(seen.begins) +
                   "): set the clock"};
    case Distrust::kOtherNames:
      return Error{"the server's certificate is for other names" +
                   (seen.names.empty() ? "" : " (" + seen.names + ")") +
                   "; connect by one of them, or ask its operator to add this one"};
    case Distrust::kOtherAuthority: break;
  }
  return Error{
      "the server's certificate is not from the authority that this client trusts: it is a "
      "different server, or someone intercepts the connection",
      ErrorKind::kForeign};
}

std::string refusal_by_server(int alert) {
  switch (alert) {
    case kAlertCertificateRequired:
      return "the server requires a certificate: ask its operator for certificate.pem and certificate.key, "
             "and put them into the folder of --identity";
    case kAlertUnknownAuthority:
    case kAlertBadCertificate:
      return "the server rejects certificate.pem of this client: ask its operator for one that it "
             "signs";
    case kAlertCertificateExpired:
      return "the server says that certificate.pem of this client has expired: ask its operator for a new "
             "one";
    case kAlertProtocolVersion: return "the server requires a newer TLS version than this client supports";
    default: return "";
  }
}

}  // namespace gradwire
