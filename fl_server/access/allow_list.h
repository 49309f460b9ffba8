// The list of enrolled clients: a folder with one file for each name. The operator's commands and a running
// server both change it, each change in one atomic step.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "fl_server/sessions/authenticator.h"

namespace gradwire {

struct AllowedClient {
  enum class Standing : std::uint8_t { kInvited, kEnrolled, kRevoked };
  Standing standing = Standing::kInvited;
  Bytes32 token_hash{};            // invited: SHA-256 of its token's secret
  std::int64_t token_expires = 0;  // invited: seconds since 1970
  PublicKey key;                   // enrolled
  // The only role in which the key is accepted. A file without a role means a client.
  Login::PeerRole role = Login::PeerRole::kClient;
};

// Returns an error if a client cannot be enrolled under this name. The name becomes a file name.
Status check_enrolled_name(std::string_view name);

class AllowList final : public Authenticator {
 public:
  using Clock = std::chrono::system_clock;

  // `folder` must exist. `realm` is the one in Invitations. `log` receives a line for each enrolment; it may
  // be empty.
  AllowList(std::filesystem::path folder, std::string realm, Log log = {});

  // Throws std::runtime_error (one line) if invite() or enroll() would.
  void check_may_enroll(const std::string& name) const;
  // Lets `name` enroll once, within `validity`, with the returned token. A revoked client may be invited
  // again. Throws std::runtime_error (one line) if `name` is enrolled or invalid.
  Invitation invite(const std::string& name, std::chrono::hours validity);
  // Revokes a client: it is no longer accepted, and is disconnected. Throws std::runtime_error if the name is
  // unknown.
  void revoke(const std::string& name);
  // Enrolls a key that the operator made, such as a relay's. Throws like invite().
  void enroll(const std::string& name, const PublicKey& key, Login::PeerRole role);
  // Changes the role of an enrolled key from its next login on. Throws std::runtime_error.
  void set_role(const std::string& name, Login::PeerRole role);
  // Returns all clients, with an error for each client whose file is damaged or unreadable.
  std::map<std::string, Result<AllowedClient>> all() const;

  const std::string& realm() const override { return realm_; }
  Status admit(const Login& login) override;
  bool still_admits(const std::string& name) override;

 private:
  std::filesystem::path file(const std::string& name) const { return folder_ / (name + ".client"); }
  Result<std::optional<AllowedClient>> find(const std::string& name) const;
  void write(const std::string& name, const AllowedClient& client) const;

  Status admit_one(const Login& login);
  Result<bool> admits_known(const Login& login) const;

  const std::filesystem::path folder_;
  const std::string realm_;
  const Log log_;
  std::filesystem::file_time_type known_since_{};  // last change of the folder when known_ was filled
  std::map<std::string, bool> known_;              // cache of still_admits()
};

}  // namespace gradwire
