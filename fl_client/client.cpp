#include "fl_client/client.h"

#include <array>
#include <cctype>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "fl_client/client_journal.h"
#include "fl_client/client_session.h"
#include "fl_client/connection.h"
#include "fl_client/stoppable_oracle.h"
#include "fl_client/upload_chunks.h"
#include "parallel/processors.h"
#include "parallel/shared_threads.h"
#include "proto/security/identity.h"
#include "proto/security/tls.h"
#include "proto/wire/back_off.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Attempts after which a client that was never welcomed believes that the server is another one.
constexpr int kMostForeignServers = 5;

// The time that a wait may take beyond its limit before the watchdog ends the client, and that for
// connecting, whose parts have their own limits: names, each address, TLS.
constexpr milliseconds kWaitGrace{60'000}, kLongestConnect{10 * 60'000};

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

// Sends what the session wants to send.
Status send_outgoing(ClientSession& session, ServerConnection& connection) {
  for (auto segments = session.outgoing(); !segments.empty(); segments = session.outgoing()) {
    std::size_t bytes = 0;
    for (const auto segment : segments) bytes += segment.size();
    if (Status status = connection.write(segments); !status) return status;
    session.left(bytes);
  }
  return Unit{};
}

// Takes the next frame of the server, and sends what follows from it.
std::optional<ClientEnding> take_one(ClientSession& session, ServerConnection& connection, Pulse& pulse) {
  pulse.wait(connection.longest_head() + kWaitGrace);
  const auto frame = connection.read_head(session.max_payload());
  pulse.work();
  if (!frame) return ClientEnding{false, frame.error().message};
  std::optional<ClientEnding> ending;
  try {
    ending = session.take_head(frame->prefix, frame->header);
    for (auto place = session.wanted(); !ending && !place.empty(); place = session.wanted()) {
      if (const Status status = connection.read_payload(place); !status)
        return ClientEnding{false, status.error().message};
      ending = session.arrived(place.size());
    }
  } catch (...) {
    (void)send_outgoing(session, connection);  // best effort: this client ends
    throw;
  }
  const Status sent = send_outgoing(session, connection);
  if (!ending && !sent) ending = ClientEnding{false, sent.error().message};
  return ending;
}

// Computes and sends the answer, and meanwhile receives what the server sends.
std::optional<ClientEnding> answer(ClientSession& session, ServerConnection& connection,
                                   const std::stop_token& stop) {
  if (const auto ending = session.begin_answer()) return ending;
  std::optional<ClientEnding> meanwhile;
  std::exception_ptr trouble;
  Pulse unwatched;  // another thread waits, while this one computes
  const auto take = [&] {
    try {
      meanwhile = take_one(session, connection, unwatched);
      if (meanwhile && meanwhile->shutdown) session.stop();
      session.stop_if_superseded();
    } catch (...) {
      trouble = std::current_exception();
      session.stop();
    }
    return !meanwhile && !trouble;
  };
  try {
    const ChunkSender sender([&](const Encoded& message) { return connection.write(message); },
                             session.chunks());
    connection.read_while_computing([&] { session.compute(); }, std::cref(take));
  } catch (const OracleStopped&) {
    if (stop.stop_requested()) return ClientEnding{};
  } catch (...) {
    session.tell_exception();
    (void)send_outgoing(session, connection);
    throw;
  }
  if (trouble) std::rethrow_exception(trouble);
  const auto ending = session.finish_answer(/*is_connected=*/!meanwhile);
  if (meanwhile) return meanwhile;
  const Status sent = send_outgoing(session, connection);
  return ending || sent ? ending : ClientEnding{false, sent.error().message};
}

// The client's end of TLS. A new or replaced certificate in the client's folder is used from the next
// connection on. So a client that was refused because it had none needs no restart.
class OwnTls {
 public:
  // Throws BadInput (one line).
  explicit OwnTls(const ClientSettings& settings) : settings_(settings), changed_(times()), tls_(load()) {}

  // Loads the certificate again if it changed. REQUIRES: no filter that connect() made still exists.
  void look_for_certificate() {
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
  std::unique_ptr<StreamFilter> connect(const std::string& host) { return tls_->connect(host); }

 private:
  using Time = std::filesystem::file_time_type;

  std::pair<Time, Time> times() const {
    if (settings_.certificates.empty()) return {};
    std::error_code absent;
    return {std::filesystem::last_write_time(settings_.certificates / "certificate.pem", absent),
            std::filesystem::last_write_time(settings_.certificates / "certificate.key", absent)};
  }
  std::unique_ptr<TlsClient> load() const {
    const bool by_file = !settings_.ca_file.empty();
    try {
      return std::make_unique<TlsClient>(
          TrustedServer{settings_.ca_file, by_file ? "" : settings_.credentials->realm}, TlsVersion::k13,
          certificate_in(settings_.certificates));
    } catch (const std::invalid_argument& error) {
      throw BadInput(error.what());
    }
  }

  const ClientSettings& settings_;
  std::pair<Time, Time> changed_;
  std::unique_ptr<TlsClient> tls_;
};

// Returns the error after several attempts to reach a server of another authority.
std::string foreign_server(const ClientSettings& settings, const std::string& why) {
  const std::string question =
      settings.ca_file.empty()
          ? "are the token and the identity in " + settings.certificates.string() +
                " from this server? A token of another server needs a folder of its own (--identity)"
          : "is --ca " + settings.ca_file.string() + " from this server?";
  return why + "; " + question;
}

// Waits, unless stopped.
void wait_for(milliseconds delay, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, delay, [] { return false; });
}

// Serves one connection, from the Hello to the end.
ClientEnding serve(ClientSession& session, ServerConnection& connection, const std::stop_token& stop,
                   Pulse& pulse) {
  session.begin_connection([&](const Pace& pace) { connection.keep_pace(pace); });
  if (Status status = send_outgoing(session, connection); !status) return {false, status.error().message};
  for (;;) {
    try {
      if (const auto ending = take_one(session, connection, pulse)) return *ending;
    } catch (const OracleStopped&) {
      return {};
    }
    if (!session.asked() || connection.more_waiting()) continue;
    if (const auto ending = answer(session, connection, stop)) return *ending;
  }
}

}  // namespace

void join_and_answer(const ClientSettings& settings) {
  std::optional<ClientFolder> folder;
  std::optional<ClientJournal> journal;
  std::string name = settings.credentials    ? settings.credentials->name
                     : settings.name.empty() ? draw_name()
                                             : settings.name;
  if (!settings.state.empty()) {
    folder.emplace(settings.state);
    journal.emplace(folder->disk(), settings.log);
    if (settings.name.empty() && !settings.credentials) name = journal->name(name);
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
  if (settings.credentials && settings.credentials->is_new)
    identity.on_accepted = [&settings] {
      write_identity(settings.certificates, settings.credentials->name, settings.credentials->realm);
    };
  ClientSession session(std::move(identity), journal ? &*journal : nullptr);
  std::optional<OwnTls> tls;
  ServerConnection::MakeFilter filter;
  if (settings.credentials || !settings.ca_file.empty()) {
    tls.emplace(settings);
    filter = [&tls](const std::string& host) { return tls->connect(host); };
  }
  BackOff back_off(settings.back_off_base, settings.back_off_cap, device());
  Clock::time_point last_contact = Clock::now(), warned_since;  // a contact that was lost warns once
  int foreign = 0;                                              // servers in a row
  bool was_welcome = false;
  Pulse unwatched;
  Pulse& pulse = settings.pulse != nullptr ? *settings.pulse : unwatched;
  for (;;) {
    if (tls) tls->look_for_certificate();
    pulse.wait(kLongestConnect);
    auto connection = ServerConnection::connect(settings.server, settings.connect_timeout,
                                                settings.io_timeout, filter, settings.stop);
    const ClientEnding ending = connection
                                    ? serve(session, **connection, settings.stop, pulse)
                                    : ClientEnding{false, "cannot connect to " + connection.error().message};
    if (ending.shutdown && settings.log) settings.log(LogLine("the run is over"));
    if (ending.shutdown || settings.stop.stop_requested()) return;
    if (connection) connection->reset();  // so that the client does not seem alive while it waits
    session.end_connection();
    if (connection && session.welcome()) {
      last_contact = Clock::now();
      was_welcome = true;
    }
    foreign = !connection && connection.error().kind == ErrorKind::kForeign ? foreign + 1 : 0;
    if (foreign == kMostForeignServers && !was_welcome)
      throw ClientRefused(foreign_server(settings, ending.why));
    if (connection && session.answered()) back_off.reset();
    const auto away = std::chrono::duration_cast<milliseconds>(Clock::now() - last_contact);
    if (away > settings.give_up_after) {
      throw ClientError(
          ending.why + "; giving up after " + std::to_string(away.count()) +
          " ms without a server; check its address, or give it more time with --give-up-after-ms");
    }
    const milliseconds delay = back_off.next(ending.retry_after);
    LogLine line(ending.why + "; trying again in " + std::to_string(delay.count()) + " ms");
    if (std::exchange(warned_since, last_contact) != last_contact) line.level = LogLevel::kWarning;
    if (settings.log) settings.log(line);
    pulse.wait(delay + kWaitGrace);
    wait_for(delay, settings.stop);
    if (settings.stop.stop_requested()) return;
  }
}

}  // namespace gradwire
