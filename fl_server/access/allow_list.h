// The clients that may come: a folder with one file for each name, which the operator's commands and the
// server change, each in one step, while the other is at work.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "fl_server/hub/authenticator.h"

namespace gradwire {

struct AllowedClient {
  enum class Standing : std::uint8_t { kInvited, kEnrolled, kRevoked };
  Standing standing = Standing::kInvited;
  Bytes32 token_hash{};            // of an invited one: SHA-256 of its token's secret
  std::int64_t token_expires = 0;  // the same, seconds since 1970
  PublicKey key;                   // of an enrolled one
  // The only role in which the key is let in. A file that names no role is of a client.
  Login::PeerRole role = Login::PeerRole::kClient;
};

// A name that a client may be enrolled under: it names a file.
Status check_enrolled_name(std::string_view name);

class AllowList final : public Authenticator {
 public:
  using Clock = std::chrono::system_clock;

  // `folder` exists; `realm` as in Invitation. `log`, which may be empty, hears who enrolls.
  AllowList(std::filesystem::path folder, std::string realm, Log log = {});

  // Throws std::runtime_error, one line, where invite() and enroll() would.
  void check_may_enroll(const std::string& name) const;
  // Lets `name` enroll once, within `validity`, with the token returned. A client that was revoked may be
  // invited again. Throws std::runtime_error, one line: it is enrolled, or the name is none.
  Invitation invite(const std::string& name, std::chrono::hours validity);
  // It is let in no more, and disconnected. Throws std::runtime_error: nobody has the name.
  void revoke(const std::string& name);
  // Lets in a key that the operator has made: of a relay. Throws as invite() does.
  void enroll(const std::string& name, const PublicKey& key, Login::PeerRole role);
  // Changes the role of an enrolled key, for its next login. Throws std::runtime_error.
  void set_role(const std::string& name, Login::PeerRole role);
  // An error: the file of that client is damaged, or cannot be read.
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
  std::filesystem::file_time_type looked_at_{};  // when the folder had changed last, as known_ was filled
  std::map<std::string, bool> known_;            // still_admits()
};

}  // namespace gradwire
