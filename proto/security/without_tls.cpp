// Takes the place of the other files of this folder in a gradwire-client that is built without TLS.
#include <stdexcept>

#include "proto/security/challenge.h"
#include "proto/security/identity.h"
#include "proto/security/tls.h"

namespace gradwire {
namespace {

constexpr const char* kWithoutTls =
    "this gradwire-client is built without TLS; use one that is built with -DGRADWIRE_TLS=mbedtls";

}  // namespace

Credentials open_identity(const std::filesystem::path& folder, const std::string&) {
  throw std::invalid_argument("--identity " + folder.string() + ": " + kWithoutTls);
}
void write_identity(const std::filesystem::path&, const std::string&, const std::string&) {}

Result<std::string> answer_challenge(std::span<const std::byte>, const std::optional<Credentials>&) {
  return Error{std::string("the server requires authentication, but ") + kWithoutTls};
}

struct TlsClient::Impl {};
TlsClient::TlsClient(const TrustedServer& trusted, TlsVersion, const ClientCertificate&, WallClock) {
  throw std::invalid_argument("--ca " + trusted.ca_file.string() + ": " + kWithoutTls);
}
TlsClient::~TlsClient() = default;
std::unique_ptr<StreamFilter> TlsClient::connect(const std::string&) { return nullptr; }
ClientCertificate certificate_in(const std::filesystem::path&) { return {}; }

struct SigningKey::Impl {};
PublicKey SigningKey::public_key() const { return {}; }

}  // namespace gradwire
