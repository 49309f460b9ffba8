#include "fl_client/client.h"

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "fl_client/client_session.h"
#include "fl_client/connection.h"
#include "fl_client/membership.h"
#include "fl_client/stoppable_oracle.h"
#include "fl_client/upload_chunks.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;

// The time that a wait may take beyond its limit before the watchdog ends the client, and that for
// connecting, whose parts have their own limits: names, each address, TLS.
constexpr milliseconds kWaitGrace{60'000}, kLongestConnect{10 * 60'000};

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
  Membership membership(settings, /*sends_chunks=*/true);
  ClientSession& session = membership.session();
  ServerConnection::MakeFilter filter;
  if (membership.uses_tls()) filter = [&](const std::string& host) { return membership.tls_to(host); };
  Pulse unwatched;
  Pulse& pulse = settings.pulse != nullptr ? *settings.pulse : unwatched;
  for (;;) {
    pulse.wait(kLongestConnect);
    auto connection = ServerConnection::connect(settings.server, settings.connect_timeout,
                                                settings.io_timeout, filter, settings.stop);
    const ClientEnding ending = connection
                                    ? serve(session, **connection, settings.stop, pulse)
                                    : ClientEnding{false, "cannot connect to " + connection.error().message};
    if (!ending.shutdown && settings.stop.stop_requested()) return;
    const ErrorKind kind = connection ? ErrorKind{} : connection.error().kind;
    if (connection) connection->reset();  // so that the client does not seem alive while it waits
    const auto delay = membership.ended(ending, connection.has_value(), kind);
    if (!delay) return;
    pulse.wait(*delay + kWaitGrace);
    wait_for(*delay, settings.stop);
    if (settings.stop.stop_requested()) return;
  }
}

}  // namespace gradwire
