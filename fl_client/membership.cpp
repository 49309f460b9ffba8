#include "fl_client/membership.h"

#include <array>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <random>
#include <unistd.h>
#include <utility>

#include "parallel/processors.h"
#include "parallel/shared_threads.h"
#include "proto/security/identity.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;

// Attempts after which a client that was never welcomed believes that the server is another one.
constexpr int kMostForeignServers = 5;

// Returns a new name, HOST-PID-RANDOM. The client keeps it when it reconnects, so the server recognizes the
// client.
std::string draw_name() {
  std::array<char, 33> host{};
  ::gethostname(host.data(), host.size() - 1);
  for (char& c : host)
    if (c != '\0' && std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  std::array<char, 9> random{};
  std::snprintf(random.data(), random.size(), "%08x", std::random_device{}());
  return std::string(host.data()) + "-" + std::to_string(::getpid()) + "-" + random.data();
}

// Returns the error after several attempts to reach a server of another authority.
std::string foreign_server(const ClientSettings& settings, const std::string& why) {
  const std::string question =
      settings.ca_file.empty()
          ? "are the token and the identity in " + settings.certificates.string() +
                " from this server? A token of another server needs a folder of its own (--identity)"
          : "is --ca " + settings.ca_file.string() + " from this server?";
  return why + "; " + question;
}

}  // namespace

Membership::Membership(const ClientSettings& settings, bool sends_chunks, Clock::time_point now)
    : settings_(settings),
      back_off_(settings.back_off_base, settings.back_off_cap, std::random_device{}()),
      last_contact_(now) {
  std::string name = settings.credentials    ? settings.credentials->name
                     : settings.name.empty() ? draw_name()
                                             : settings.name;
  if (!settings.state.empty()) {
    folder_.emplace(settings.state);
    journal_.emplace(folder_->disk(), settings.log);
    if (settings.name.empty() && !settings.credentials) name = journal_->name(name);
  }
  std::random_device device;
  const std::uint64_t process = std::uint64_t{device()} << 32 | device();
  const unsigned threads = settings.threads > 0 ? settings.threads : usable_processors();
  ClientIdentity identity{name,
                          process,
                          settings.data,
                          settings.log,
                          settings.credentials,
                          shared_threads(threads),
                          settings.oracle,
                          settings.stop};
  identity.sends_chunks = sends_chunks;
  if (settings.credentials && settings.credentials->is_new)
    identity.on_accepted = [&settings] {
      write_identity(settings.certificates, settings.credentials->name, settings.credentials->realm);
    };
  session_ = std::make_unique<ClientSession>(std::move(identity), journal_ ? &*journal_ : nullptr);
  if (settings.credentials || !settings.ca_file.empty()) tls_.emplace(settings);
}

Membership::~Membership() = default;

std::unique_ptr<StreamFilter> Membership::tls_to(const std::string& host) {
  tls_->look_for_certificate();
  return tls_->connect(host);
}

std::optional<milliseconds> Membership::ended(const ClientEnding& ending, bool was_connected, ErrorKind kind,
                                              Clock::time_point now) {
  if (ending.shutdown) {
    log(LogLine("the run is over"));
    return std::nullopt;
  }
  session_->end_connection();
  if (was_connected && session_->welcome()) {
    last_contact_ = now;
    was_welcome_ = true;
  }
  foreign_ = !was_connected && kind == ErrorKind::kForeign ? foreign_ + 1 : 0;
  if (foreign_ == kMostForeignServers && !was_welcome_)
    throw ClientRefused(foreign_server(settings_, ending.why));
  if (was_connected && session_->answered()) back_off_.reset();
  const auto away = std::chrono::duration_cast<milliseconds>(now - last_contact_);
  if (away > settings_.give_up_after) {
    throw ClientError(
        ending.why + "; giving up after " + std::to_string(away.count()) +
        " ms without a server; check its address, or give it more time with --give-up-after-ms");
  }
  const milliseconds delay = back_off_.next(ending.retry_after);
  LogLine line(ending.why + "; trying again in " + std::to_string(delay.count()) + " ms");
  if (std::exchange(warned_since_, last_contact_) != last_contact_) line.level = LogLevel::kWarning;
  log(line);
  return delay;
}

}  // namespace gradwire
