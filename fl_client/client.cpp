#include "fl_client/client.h"

#include <array>
#include <cctype>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "fl_client/client_journal.h"
#include "fl_client/client_session.h"
#include "fl_client/connection.h"
#include "fl_client/stoppable_oracle.h"
#include "fl_client/upload_chunks.h"
#include "parallel/processors.h"
#include "parallel/shared_threads.h"
#include "proto/security/tls.h"
#include "proto/wire/back_off.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

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

// Computes and sends the answer, and meanwhile receives what the server sends.
std::optional<ClientEnding> answer(ClientSession& session, ServerConnection& connection) {
  if (const auto ending = session.begin_answer()) return ending;
  std::optional<ClientEnding> meanwhile;
  std::exception_ptr trouble;
  const auto take_one = [&] {
    try {
      const auto frame = connection.read_head(session.max_payload());
      meanwhile = frame ? session.take(connection, frame->prefix, frame->header)
                        : std::optional(ClientEnding{false, frame.error().message});
      if (meanwhile && meanwhile->shutdown) session.stop();
      session.stop_if_superseded();
    } catch (...) {
      trouble = std::current_exception();
      session.stop();
    }
    return !meanwhile && !trouble;
  };
  try {
    const ChunkSender sender(connection, session.chunks());
    connection.read_while_computing([&] { session.compute(); }, take_one);
  } catch (const OracleStopped&) {
  }
  if (trouble) std::rethrow_exception(trouble);
  const auto ending = session.finish_answer(meanwhile ? nullptr : &connection);
  return meanwhile ? meanwhile : ending;
}

// The client's end of TLS. A new or replaced certificate in the client's folder is used from the next
// connection on. So a client that was refused because it had none needs no restart.
class OwnTls {
 public:
  // Throws std::invalid_argument, one line.
  explicit OwnTls(const ClientOptions& options) : options_(options), changed_(times()), tls_(load()) {}

  // Loads the certificate again if it changed. REQUIRES: no filter that connect() made still exists.
  void look_for_certificate() {
    const auto now = times();
    if (now == changed_) return;
    changed_ = now;
    try {
      tls_ = load();
      if (options_.log) options_.log("certificate.pem is new; it is used from the next connection on");
    } catch (const std::invalid_argument& error) {
      if (options_.log)
        options_.log(LogLine::warning(std::string("the new certificate cannot be used: ") + error.what()));
    }
  }
  std::unique_ptr<StreamFilter> connect(const std::string& host) { return tls_->connect(host); }

 private:
  using Time = std::filesystem::file_time_type;

  std::pair<Time, Time> times() const {
    if (options_.certificates.empty()) return {};
    std::error_code absent;
    return {std::filesystem::last_write_time(options_.certificates / "certificate.pem", absent),
            std::filesystem::last_write_time(options_.certificates / "certificate.key", absent)};
  }
  std::unique_ptr<TlsClient> load() const {
    const bool by_file = !options_.ca_file.empty();
    return std::make_unique<TlsClient>(
        TrustedServer{options_.ca_file, by_file ? "" : options_.credentials->realm}, TlsVersion::k13,
        certificate_in(options_.certificates));
  }

  const ClientOptions& options_;
  std::pair<Time, Time> changed_;
  std::unique_ptr<TlsClient> tls_;
};

// Serves one connection, from the Hello to the end.
ClientEnding serve(ClientSession& session, ServerConnection& connection) {
  if (Status status = connection.write(session.hello()); !status) return {false, status.error().message};
  for (;;) {
    const auto frame = connection.read_head(session.max_payload());
    if (!frame) return {false, frame.error().message};
    if (const auto ending = session.take(connection, frame->prefix, frame->header)) return *ending;
    if (!session.asked() || connection.more_waiting()) continue;
    if (const auto ending = answer(session, connection)) return *ending;
  }
}

}  // namespace

void run_client(const ClientOptions& options) {
  std::optional<ClientFolder> folder;
  std::optional<ClientJournal> journal;
  std::string name = options.credentials    ? options.credentials->name
                     : options.name.empty() ? draw_name()
                                            : options.name;
  if (!options.state.empty()) {
    folder.emplace(options.state);
    journal.emplace(folder->disk(), options.log);
    if (options.name.empty() && !options.credentials) name = journal->name(name);
  }
  std::random_device device;
  const std::uint64_t process = std::uint64_t{device()} << 32 | device();
  const unsigned threads = options.threads > 0 ? options.threads : usable_processors();
  ClientSession session(
      {name, process, options.data, options.log, options.credentials, shared_threads(threads)},
      journal ? &*journal : nullptr);
  std::optional<OwnTls> tls;
  ServerConnection::MakeFilter filter;
  if (options.credentials || !options.ca_file.empty()) {
    tls.emplace(options);
    filter = [&tls](const std::string& host) { return tls->connect(host); };
  }
  BackOff back_off(options.back_off_base, options.back_off_cap, device());
  Clock::time_point last_contact = Clock::now(), warned_since;  // a contact that was lost warns once
  for (;;) {
    if (tls) tls->look_for_certificate();
    auto connection =
        ServerConnection::connect(options.server, options.connect_timeout, options.io_timeout, filter);
    const ClientEnding ending = connection
                                    ? serve(session, **connection)
                                    : ClientEnding{false, "cannot connect to " + connection.error().message};
    if (ending.shutdown) return;
    if (connection) connection->reset();  // so that the client does not seem alive while it waits
    if (connection && session.welcome()) last_contact = Clock::now();
    if (connection && session.answered()) back_off.reset();
    const auto away = std::chrono::duration_cast<milliseconds>(Clock::now() - last_contact);
    if (away > options.give_up_after) {
      throw ClientError(
          ending.why + "; giving up after " + std::to_string(away.count()) +
          " ms without a server; check its address, or give it more time with --give-up-after-ms");
    }
    const milliseconds delay = back_off.next(ending.retry_after);
    LogLine line(ending.why + "; trying again in " + std::to_string(delay.count()) + " ms");
    if (std::exchange(warned_since, last_contact) != last_contact) line.level = LogLevel::kWarning;
    if (options.log) options.log(line);
    std::this_thread::sleep_for(delay);
  }
}

}  // namespace gradwire
