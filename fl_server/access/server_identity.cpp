#include "fl_server/access/server_identity.h"

#include <chrono>
#include <ctime>
#include <stdexcept>
#include <utility>

#include "fl_server/net/filtered_sockets.h"
#include "proto/security/certificates.h"
#include "proto/security/identity.h"
#include "storage/folder_disk.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

const fs::path& with_certificate(const fs::path& folder) {
  if (!fs::exists(folder / "server.pem"))
    throw std::invalid_argument("--identity " + folder.string() +
                                ": has no server.pem; make it with gradwire-server init");
  return folder;
}

std::shared_ptr<TlsServer> open_server(const fs::path& folder, TlsVersion least, const std::string& realm,
                                       const Log& log) {
  const fs::path client_ca = folder / "client-ca.pem";
  auto server = std::make_shared<TlsServer>(folder / "server.pem", folder / "server.key", least,
                                            fs::exists(client_ca) ? client_ca : fs::path(), realm);
  if (server->is_foreign() && log)
    log(LogLine::warning((folder / "server.pem").string() +
                         ": its authority differs from that of the clients' tokens: clients need --ca"));
  return server;
}

// Limit of waiting handshakes. With more, peers would reach their time limit first.
constexpr std::size_t kHandshakes = 4096;
constexpr std::chrono::days kWarnBefore{14}, kWarnEvery{1};

// Returns a warning about a certificate that ends soon, or an empty string.
std::string ends_soon(std::chrono::system_clock::time_point expires,
                      std::chrono::system_clock::time_point now) {
  if (expires - now > kWarnBefore) return "";
  const std::time_t time = std::chrono::system_clock::to_time_t(expires);
  std::tm date{};
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", ::gmtime_r(&time, &date));
  return (expires < now ? "the certificate has expired, " : "the certificate expires, ") + std::string(text) +
         ": without a new one (gradwire-server renew) clients cannot connect after that";
}

// Returns a job that periodically looks for a new certificate and checks when the current one ends.
std::function<void()> renewing(std::shared_ptr<TlsServer> tls, Log log) {
  return
      [tls = std::move(tls), log = std::move(log), said = std::chrono::system_clock::time_point()]() mutable {
        const Result<bool> renewed = tls->renew();
        if (!log) return;
        const auto now = std::chrono::system_clock::now();
        if (renewed && *renewed) said = {};
        const auto end = tls->expires();
        if (now - said >= kWarnEvery || (said < end && end <= now)) {
          said = now;
          if (const std::string what = ends_soon(end, now); !what.empty()) log(LogLine::warning(what));
        }
        if (!renewed)
          log(LogLine::warning("the new certificate cannot be used, keeping the old one: " +
                               renewed.error().message));
        if (renewed && *renewed) log("using a new certificate for new connections");
      };
}

void make_private_folder(const fs::path& folder) {
  if (!make_folder(folder)) fail(folder.string() + ": is not a folder and cannot be created");
  fs::permissions(folder, fs::perms::owner_all);
}

}  // namespace

void make_identity(const fs::path& folder, const std::vector<std::string>& hosts,
                   std::chrono::seconds validity) {
  make_private_folder(folder);
  if (!fs::exists(folder / "ca.pem")) make_authority(folder);
  if (!fs::exists(folder / "server.pem") || !fs::exists(folder / "server.key"))
    make_server_certificate(folder, folder, hosts, validity);
  make_private_folder(folder / "clients");
}

bool holds_identity(const fs::path& folder) {
  return fs::exists(folder / "ca.pem") && fs::exists(folder / "server.pem") &&
         fs::exists(folder / "server.key") && fs::is_directory(folder / "clients");
}

AllowList clients_of(const fs::path& folder, Log log) {
  if (!fs::is_directory(folder / "clients"))
    fail("--identity " + folder.string() +
         ": has no identity of a server; make one with gradwire-server init");
  return AllowList(folder / "clients", fingerprint_of(folder / "ca.pem"), std::move(log));
}

void renew_certificate(const fs::path& folder, const fs::path& to, const std::vector<std::string>& hosts,
                       std::chrono::seconds validity) {
  const bool is_new = !fs::exists(to / "server.pem");
  if (hosts.empty() && is_new)
    fail(to.string() + ": has no server.pem with names for the new one; give --host");
  if (is_new) make_private_folder(to);
  make_server_certificate(folder, to, hosts.empty() ? hosts_in_certificate(to / "server.pem") : hosts,
                          validity);
}

void make_relay_identity(const fs::path& folder, const std::string& name, const fs::path& to,
                         const std::vector<std::string>& hosts, std::chrono::seconds validity) {
  AllowList clients = clients_of(folder);
  if (const Status good = check_enrolled_name(name); !good) fail("'" + name + "': " + good.error().message);
  if (fs::exists(to / "client.key")) fail(to.string() + ": already holds an identity; choose another folder");
  make_private_folder(to);
  make_server_certificate(folder, to, hosts, validity);
  const SigningKey key = SigningKey::generate();
  key.save(to / "client.key");
  write_identity(to, name, clients.realm());
  clients.enroll(name, key.public_key(), Login::PeerRole::kRelay);
}

ServerIdentity::ServerIdentity(const fs::path& folder, TlsVersion least, Log log)
    : clients_(clients_of(with_certificate(folder), log)),
      tls_(open_server(folder, least, clients_.realm(), log)),
      log_(std::move(log)) {}

std::unique_ptr<SocketLayer> ServerIdentity::secure(std::unique_ptr<SocketLayer> sockets) {
  return filtered(std::move(sockets),
                  {[tls = tls_] { return tls->accept(); }, {}, renewing(tls_, log_), kHandshakes});
}

std::unique_ptr<SocketLayer> secure_relay(std::unique_ptr<SocketLayer> sockets, const fs::path& folder,
                                          TlsVersion tls_min, Log log) {
  const std::string realm = open_identity(folder, "").realm;
  const auto server = open_server(folder, tls_min, realm, log);
  const auto client =
      std::make_shared<TlsClient>(TrustedServer{{}, realm}, TlsVersion::k13, certificate_in(folder));
  return filtered(std::move(sockets), {[server] { return server->accept(); },
                                       [client](const std::string& host) { return client->connect(host); },
                                       renewing(server, std::move(log)), kHandshakes});
}

}  // namespace gradwire
