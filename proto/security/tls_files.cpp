#include "proto/security/tls_files.h"

#include <stdexcept>

#include "proto/security/private_file.h"
#include "proto/security/tls.h"

namespace gradwire {
namespace fs = std::filesystem;

void refuse_files(const std::string& what) { throw std::invalid_argument(what); }

void refuse_pipe(const fs::path& file) {
  if (fs::exists(file) && !fs::is_regular_file(file)) refuse_files(file.string() + ": is not a file");
}

void check_pair(const fs::path& certificate, const fs::path& key) {
  if (const Status status = check_private(key); !status) refuse_files(status.error().message);
  refuse_pipe(certificate);
}

ClientCertificate certificate_in(const fs::path& folder) {
  if (folder.empty() || !fs::exists(folder / "certificate.pem")) return {};
  return {folder / "certificate.pem", folder / "certificate.key"};
}

}  // namespace gradwire
