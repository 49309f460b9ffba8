#include "fl_server/access/allow_list.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <stdexcept>
#include <sys/file.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "proto/security/private_file.h"
#include "proto/wire/client_name.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

using Standing = AllowedClient::Standing;

constexpr std::string_view kStandings[] = {"invited", "enrolled", "revoked"};
constexpr std::string_view kRelayRole = "relay";
constexpr std::string_view kSuffix = ".client";
constexpr std::size_t kLongestFile = 4096;
// Two changes of a folder that are at least this far apart have different times.
constexpr std::chrono::seconds kClockResolution{2};
constexpr std::chrono::seconds kCommandWaits{10};
constexpr std::chrono::milliseconds kTryAgain{10};

// A lock on changes of the folder, across processes. Readers do not need it.
class EnrollmentLock {
 public:
  // Throws std::runtime_error if another process holds it for longer than `longest`. A server does not wait,
  // because its thread serves all clients.
  explicit EnrollmentLock(const fs::path& folder, std::chrono::milliseconds longest = kCommandWaits)
      : fd_(::open((folder / ".turn").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW,
                   0600)) {
    const auto end = std::chrono::steady_clock::now() + longest;
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(kTryAgain);
        continue;
      }
      const std::string why = errno == EWOULDBLOCK
                                  ? "another process is changing the list of clients (it holds .turn)"
                                  : std::strerror(errno);
      ::close(fd_);
      throw std::runtime_error(folder.string() + ": " + why + "; try again");
    }
    if (fd_ < 0) throw std::runtime_error((folder / ".turn").string() + ": " + std::strerror(errno));
  }
  ~EnrollmentLock() { ::close(fd_); }
  EnrollmentLock(const EnrollmentLock&) = delete;
  EnrollmentLock& operator=(const EnrollmentLock&) = delete;

 private:
  const int fd_;
};

std::string text_of(const AllowedClient& client) {
  std::string text = "standing " + std::string(kStandings[static_cast<std::size_t>(client.standing)]) + "\n";
  if (client.standing == Standing::kInvited)
    text += "token_hash " + to_base64(client.token_hash) + "\ntoken_expires " +
            std::to_string(client.token_expires) + "\n";
  if (client.standing == Standing::kEnrolled) text += "key " + client.key.text() + "\n";
  if (client.role == Login::PeerRole::kRelay) text += "role " + std::string(kRelayRole) + "\n";
  return text;
}

bool read_digest(std::string_view text, Bytes32& to) {
  const auto bytes = from_base64(text);
  if (!bytes || bytes->size() != to.size()) return false;
  std::copy(bytes->begin(), bytes->end(), to.begin());
  return true;
}

// Returns nullopt if the text is damaged.
std::optional<AllowedClient> parse_client(std::string_view text) {
  std::map<std::string_view, std::string_view> fields;
  while (!text.empty()) {
    const std::size_t end = text.find('\n'), blank = text.find(' ');
    if (end == text.npos || blank > end) return std::nullopt;
    fields[text.substr(0, blank)] = text.substr(blank + 1, end - blank - 1);
    text.remove_prefix(end + 1);
  }
  AllowedClient client;
  const auto* const standing = std::find(std::begin(kStandings), std::end(kStandings), fields["standing"]);
  if (standing == std::end(kStandings)) return std::nullopt;
  client.standing = static_cast<Standing>(standing - std::begin(kStandings));
  if (fields["role"] == kRelayRole) client.role = Login::PeerRole::kRelay;
  const std::string_view expires = fields["token_expires"];
  if (client.standing == Standing::kInvited &&
      (!read_digest(fields["token_hash"], client.token_hash) ||
       std::from_chars(expires.data(), expires.data() + expires.size(), client.token_expires).ec !=
           std::errc()))
    return std::nullopt;
  if (client.standing == Standing::kEnrolled && !read_digest(fields["key"], client.key.bytes))
    return std::nullopt;
  return client;
}

std::int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(AllowList::Clock::now().time_since_epoch()).count();
}

}  // namespace

Status check_enrolled_name(std::string_view name) {
  if (Status status = check_client_name(name); !status) return status;
  const bool good = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (!good || name.front() == '.')
    return Error{
        "the name of an enrolled client may contain only letters, digits, - _ and . and must not begin with "
        "a dot"};
  return Unit{};
}

AllowList::AllowList(fs::path folder, std::string realm, Log log)
    : folder_(std::move(folder)), realm_(std::move(realm)), log_(std::move(log)) {}

Result<std::optional<AllowedClient>> AllowList::find(const std::string& name) const {
  if (!check_enrolled_name(name)) return std::optional<AllowedClient>();
  const Result<std::optional<std::string>> text = read_plain(file(name), kLongestFile);
  if (!text) return text.error();
  if (!*text) return std::optional<AllowedClient>();
  auto client = parse_client(**text);
  if (!client) return Error{file(name).string() + ": is damaged; revoke the client, then enroll it again"};
  return client;
}

void AllowList::write(const std::string& name, const AllowedClient& client) const {
  replace_private(file(name), text_of(client));
}

Invitation AllowList::invite(const std::string& name, std::chrono::hours validity) {
  check_may_enroll(name);  // checked before the lock, so an invalid name creates no file
  const EnrollmentLock lock(folder_);
  check_may_enroll(name);
  const Invitation invitation{name, random_secret(), realm_};
  AllowedClient client;
  client.token_hash = sha256(invitation.secret);
  client.token_expires = now_seconds() + std::chrono::seconds(validity).count();
  write(name, client);
  return invitation;
}

void AllowList::check_may_enroll(const std::string& name) const {
  if (const Status good = check_enrolled_name(name); !good)
    throw std::runtime_error("'" + name + "': " + good.error().message);
  const auto there = find(name);
  if (there && *there && (*there)->standing == Standing::kEnrolled)
    throw std::runtime_error("'" + name + "' is already enrolled; to give it a new key, revoke it first");
}

void AllowList::revoke(const std::string& name) {
  const EnrollmentLock lock(folder_);
  if (!check_enrolled_name(name) || !fs::exists(file(name)))
    throw std::runtime_error("'" + name +
                             "' is not a client of this server; gradwire-server clients lists them");
  AllowedClient client;
  client.standing = Standing::kRevoked;
  write(name, client);
}

void AllowList::enroll(const std::string& name, const PublicKey& key, Login::PeerRole role) {
  check_may_enroll(name);  // checked before the lock, so an invalid name creates no file
  const EnrollmentLock lock(folder_);
  check_may_enroll(name);
  AllowedClient client;
  client.standing = Standing::kEnrolled;
  client.key = key;
  client.role = role;
  write(name, client);
}

void AllowList::set_role(const std::string& name, Login::PeerRole role) {
  const EnrollmentLock lock(folder_);
  auto found = find(name);
  if (!found) throw std::runtime_error(found.error().message);
  if (!*found || (*found)->standing != Standing::kEnrolled)
    throw std::runtime_error("'" + name +
                             "' has not enrolled; gradwire-server clients lists the enrolled clients");
  (*found)->role = role;
  write(name, **found);
}

std::map<std::string, Result<AllowedClient>> AllowList::all() const {
  std::map<std::string, Result<AllowedClient>> clients;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(kSuffix)) continue;
    const std::string owner = name.substr(0, name.size() - kSuffix.size());
    const auto client = find(owner);
    if (!client)
      clients.emplace(owner, client.error());
    else if (*client)
      clients.emplace(owner, **client);
  }
  return clients;
}

Status AllowList::admit(const Login& login) {
  try {
    return admit_one(login);
  } catch (const std::exception& error) {  // disk error
    return Error{error.what(), ErrorKind::kSystem};
  }
}

Status AllowList::admit_one(const Login& login) {
  // Verifying a signature costs a third of a TLS handshake. So a signature is verified only for an enrolled
  // key, or for a key with a valid token.
  const auto message = login_message(realm_, login.name, login.key, login.nonce);
  const auto signature_is_good = [&]() -> Status {
    if (verify(login.key, message, login.proof.signature)) return Unit{};
    return Error{"the signature of '" + login.name + "' is wrong"};
  };
  // Only an enrolment changes the list: all other logins need no lock.
  if (const Result<bool> known = admits_known(login); !known || *known)
    return known ? signature_is_good() : known.error();
  if (!login.proof.token_mac)
    return Error{"'" + login.name + "' has not enrolled yet: start it with its --token"};
  const EnrollmentLock lock(folder_, std::chrono::milliseconds(0));
  if (const Result<bool> known = admits_known(login); !known || *known)  // it may have enrolled meanwhile
    return known ? signature_is_good() : known.error();
  AllowedClient client = **find(login.name);
  if (!same_secret(*login.proof.token_mac, mac(client.token_hash, message)))
    return Error{"'" + login.name + "' does not have the last token made for it"};
  if (now_seconds() > client.token_expires)
    return Error{"the token of '" + login.name + "' has expired; the operator must make another"};
  if (Status good = signature_is_good(); !good) return good;
  client.standing = Standing::kEnrolled;
  client.key = login.key;
  write(login.name, client);  // before anything else, because a token is valid only once
  if (log_) log_("'" + login.name + "' has enrolled, with the key " + login.key.text());
  return Unit{};
}

// Returns false if the client is invited but has not enrolled yet.
Result<bool> AllowList::admits_known(const Login& login) const {
  const auto found = find(login.name);
  if (!found) return found.error();
  if (!*found)
    return Error{"'" + login.name + "' is not a client of this server; the operator must enroll it"};
  const AllowedClient& client = **found;
  if (client.standing == Standing::kRevoked) return Error{"'" + login.name + "' was revoked"};
  if (client.standing == Standing::kEnrolled && !(client.key == login.key))
    return Error{"'" + login.name + "' enrolled with another key" +
                 (login.proof.token_mac ? ": a token is valid once, and this one was used before" : "") +
                 "; the operator must revoke it and enroll it again"};
  if (client.role != login.role)
    return Error{
        login.role == Login::PeerRole::kRelay
            ? "'" + login.name +
                  "' may connect as a client, not as a relay; the operator of the server makes the "
                  "identity of a relay with gradwire-server enroll NAME --relay OUT; a relay that was "
                  "enrolled before keys had roles is accepted after gradwire-server role NAME relay"
            : "'" + login.name + "' may connect as a relay, not as a client: give each client its own token"};
  return client.standing == Standing::kEnrolled;
}

// Reads files only if the folder has changed since the last check. Also reads them if the last change is so
// recent that a further one may have the same time.
bool AllowList::still_admits(const std::string& name) {
  std::error_code error;
  const auto changed = fs::last_write_time(folder_, error);
  if (error || changed != known_since_ || fs::file_time_type::clock::now() - changed < kClockResolution)
    known_.clear();
  known_since_ = changed;
  if (const auto known = known_.find(name); known != known_.end()) return known->second;
  const auto found = find(name);
  const bool admits =
      !found || (*found && (*found)->standing == Standing::kEnrolled);  // a disk error disconnects no client
  return known_[name] = admits;
}

}  // namespace gradwire
