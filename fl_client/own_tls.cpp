#include "fl_client/own_tls.h"

#include <stdexcept>
#include <system_error>

#include "proto/security/identity.h"

namespace gradwire {

OwnTls::OwnTls(const ClientSettings& settings) : settings_(settings), changed_(times()), tls_(load()) {}

void OwnTls::look_for_certificate() {
  const auto now = times();
  if (now == changed_) return;
  changed_ = now;
  try {
    tls_ = load();
    if (settings_.log) settings_.log("certificate.pem is new; it is used from the next connection on");
  } catch (const BadInput& error) {
    if (settings_.log)
      settings_.log(LogLine::warning(std::string("the new certificate cannot be used: ") + error.what()));
  }
}

std::pair<OwnTls::Time, OwnTls::Time> OwnTls::times() const {
  if (settings_.certificates.empty()) return {};
  std::error_code absent;
  return {std::filesystem::last_write_time(settings_.certificates / "certificate.pem", absent),
          std::filesystem::last_write_time(settings_.certificates / "certificate.key", absent)};
}

std::unique_ptr<TlsClient> OwnTls::load() const {
  const bool by_file = !settings_.ca_file.empty();
  try {
    return std::make_unique<TlsClient>(
        TrustedServer{settings_.ca_file, by_file ? "" : settings_.credentials->realm}, TlsVersion::k13,
        certificate_in(settings_.certificates));
  } catch (const std::invalid_argument& error) {
    throw BadInput(error.what());
  }
}

}  // namespace gradwire
