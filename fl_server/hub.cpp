#include "fl_server/hub.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <stdexcept>
#include <unistd.h>
#include <utility>
#include <vector>

#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE
#endif
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include "fl_server/listener.h"
#include "fl_server/session.h"
#include "proto/control_frame.h"
#include "proto/wire.pb.h"

namespace gradwire {
namespace {

// Sockets beyond two per client: room for newcomers that have not said who they are.
constexpr std::size_t kExtraSockets = 64;
constexpr int kAcceptsPerWake = 64;
constexpr std::size_t kNamedMissing = 10;
constexpr std::chrono::milliseconds kQuietGoodbye{500};  // before it is worth a line that somebody takes long

SteadyTime now() { return std::chrono::steady_clock::now(); }

}  // namespace

struct Hub::Impl final : SessionOwner {
  explicit Impl(HubOptions o);
  ~Impl() override;

  void accept_next();
  void accept_ready();
  void tick();
  void watch_signals();
  void log(const std::string& line) const {
    if (options.log) options.log(line);
  }
  std::string name(ClientId client) const {
    return "client " + std::to_string(client) + " '" + table.info(client).name + "'";
  }
  std::string missing() const;
  void compare_kernels(ClientId client) const;
  void wait(SteadyTime deadline, const std::function<bool()>& done);
  void replace(ClientId client);

  Result<ClientId> on_hello(Session& session, const std::string& who, std::optional<std::uint32_t> part_index,
                            std::optional<std::uint32_t> part_count) override;
  std::string welcome(ClientId client) override;
  Status on_join(Session& session, ClientInfo info) override;
  Result<std::span<const std::span<std::byte>>> on_reply_header(Session& session, const Prefix& prefix,
                                                                std::span<const std::byte> header) override;
  Status on_reply(Session& session, std::uint64_t bytes) override;
  void on_heartbeat(Session& session) override;
  void on_closed(Session& session, const std::string& why) override;

  HubOptions options;
  ClientTable table;
  ConnectionCounts counts;
  Listener listener;
  std::string start;  // the frame; empty until the run begins
  std::uint64_t max_payload = 0;
  HubEvents* events = nullptr;  // null before the run and after it
  bool stopped = false, ended = false, short_of_descriptors = false;

  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  asio::posix::stream_descriptor acceptor{io};
  asio::steady_timer timer{io};
  asio::signal_set signals{io};
  std::map<Session*, std::unique_ptr<Session>> sessions;
  std::vector<Session*> live;  // by client: the connection that speaks for it, or null
  // By client: its last message, until it was heard; to be sent again to a client that comes back for it.
  std::map<ClientId, Outgoing> farewells;
};

Hub::Impl::Impl(HubOptions o)
    : options(std::move(o)),
      table(options.table.size() > 0 ? options.table : ClientTable(options.clients)),
      listener(options.listen),
      live(options.clients, nullptr) {
  welcome(0);  // throws now, not in front of a client, when the experiment is too long for it
  acceptor.assign(::dup(listener.fd()));
  accept_next();
  tick();
  if (options.handle_signals) watch_signals();
}

// Coroutines end while everything that they use is still there.
Hub::Impl::~Impl() {
  events = nullptr;
  options.log = nullptr;
  options.watcher = nullptr;
  for (const auto& [session, owned] : sessions) session->connection().close("the server ends");
  io.poll();
}

// ---- sockets and time ----

void Hub::Impl::accept_next() {
  acceptor.async_wait(asio::posix::descriptor_base::wait_read, [this](const asio::error_code& error) {
    if (error) return;
    accept_ready();
    if (!short_of_descriptors) accept_next();  // else tick() does
  });
}

void Hub::Impl::accept_ready() {
  for (int k = 0; k < kAcceptsPerWake; ++k) {
    int fd = -1;
    const Listener::Taken taken = listener.accept(fd);
    if (taken == Listener::Taken::kNothing) return;
    if (taken == Listener::Taken::kNoDescriptors) {
      if (!short_of_descriptors)
        log("no file descriptors are left: connections are turned away; raise 'ulimit -n'");
      short_of_descriptors = true;
      return;
    }
    if (counts.open >= 2 * options.clients + kExtraSockets) {
      ::close(fd);
      continue;
    }
    auto session = std::make_unique<Session>(io, fd, options.times, *this, counts);
    session->connection().start();
    sessions.emplace(session.get(), std::move(session));
  }
}

void Hub::Impl::tick() {
  using std::chrono::milliseconds;
  const milliseconds shortest = std::min(options.times.handshake, options.times.heartbeat) / 4;
  timer.expires_after(std::clamp(shortest, milliseconds(10), milliseconds(1000)));
  timer.async_wait([this](const asio::error_code& error) {
    if (error) return;
    const SteadyTime time = now();
    for (const auto& [session, owned] : sessions) session->check_time(time);
    if (std::exchange(short_of_descriptors, false)) accept_next();
    tick();
  });
}

void Hub::Impl::watch_signals() {
  signals.add(SIGINT);
  signals.add(SIGTERM);
  signals.async_wait([this](const asio::error_code& error, int) {
    if (error) return;
    stopped = true;
    signals.clear();  // the next one ends the process
    log("stopping: the round is finished first");
    if (events != nullptr) events->on_stop();
  });
}

void Hub::Impl::wait(SteadyTime deadline, const std::function<bool()>& done) {
  if (deadline <= now()) io.poll();
  while (!done() && io.run_one_until(deadline) > 0) {
  }
}

// ---- the handshake ----

// A new connection speaks for the client: the old one is told and hung up on.
void Hub::Impl::replace(ClientId client) {
  Session* old = std::exchange(live[client], nullptr);
  if (old == nullptr) return;
  old->forget_client();
  old->connection().refuse("another process has connected as client " + std::to_string(client), true, 0);
}

Result<ClientId> Hub::Impl::on_hello(Session& session, const std::string& who,
                                     std::optional<std::uint32_t> part_index,
                                     std::optional<std::uint32_t> part_count) {
  Result<ClientId> client = table.assign(who, part_index, part_count);
  if (!client) return client;
  if (ended && farewells.count(*client) == 0) return Error{"the run is over"};
  if (live[*client] != nullptr) {
    log(name(*client) + ": " + session.connection().peer() + " takes the place of " +
        live[*client]->connection().peer());
    replace(*client);
    if (start.empty()) {
      table.release(*client);
      client = table.assign(who, part_index, part_count);
    }
  }
  if (client) live[*client] = &session;
  return client;
}

std::string Hub::Impl::welcome(ClientId client) {
  wire::Welcome message;
  message.set_client(client);
  message.set_experiment(options.experiment);
  message.set_heartbeat_ms(static_cast<std::uint32_t>(options.times.heartbeat.count()));
  message.set_max_payload(max_payload);
  return control_frame(FrameType::kWelcome, message);
}

Status Hub::Impl::on_join(Session& session, ClientInfo info) {
  const ClientId client = *session.client();
  const std::string detail = std::to_string(info.sample_count) + " samples";
  const std::string process = session.connection().peer() + ", process " + std::to_string(info.pid);
  if (Status status = table.join(client, std::move(info)); !status) return status;
  const std::uint32_t left = table.size() - table.joined_count();
  log(name(client) + " (" + process + ") joined with " + detail +
      (start.empty() && left > 0 ? "; waiting for " + std::to_string(left) + " more" : ""));
  compare_kernels(client);
  if (options.watcher != nullptr)
    options.watcher->client_joined(client, table.info(client), session.connection().peer());
  if (!start.empty()) {
    session.begin(start, max_payload);
    if (const auto last = farewells.find(client); last != farewells.end())
      session.connection().send(last->second);
    if (events != nullptr) events->on_joined(client);
  }
  return Unit{};
}

// With those of the first client; clients that do not say are not compared.
void Hub::Impl::compare_kernels(ClientId client) const {
  const std::string& own = table.info(client).kernels;
  if (own.empty()) return;
  for (ClientId other = 0; other < table.size(); ++other) {
    const std::string& theirs = table.info(other).kernels;
    if (other == client || !table.joined(other) || theirs.empty()) continue;
    if (theirs != own)
      log("warning: " + name(client) + " computes with kernels '" + own + "', " + name(other) + " with '" +
          theirs + "': results agree to rounding only, equal bits are promised for equal kernels");
    return;
  }
}

std::string Hub::Impl::missing() const {
  std::string text;
  std::size_t count = 0;
  for (ClientId client = 0; client < table.size(); ++client) {
    if (table.joined(client)) continue;
    if (++count <= kNamedMissing) text += (count == 1 ? "" : ", ") + std::to_string(client);
  }
  return count > kNamedMissing ? text + " and " + std::to_string(count - kNamedMissing) + " more" : text;
}

// ---- the rounds ----

Result<std::span<const std::span<std::byte>>> Hub::Impl::on_reply_header(Session& session,
                                                                         const Prefix& prefix,
                                                                         std::span<const std::byte> header) {
  if (events == nullptr) return Error{"the run is over"};
  return events->on_reply_header(*session.client(), prefix, header);
}

Status Hub::Impl::on_reply(Session& session, std::uint64_t bytes) {
  if (events == nullptr) return Error{"the run is over"};
  return events->on_reply(*session.client(), bytes);
}

void Hub::Impl::on_heartbeat(Session& session) {
  if (session.connection().ending()) farewells.erase(*session.client());
}

void Hub::Impl::on_closed(Session& session, const std::string& why) {
  const auto client = session.client();
  const bool speaks = client && live[*client] == &session;
  if (!session.connection().ending())
    log((speaks ? name(*client) + " (" + session.connection().peer() + ")" : session.connection().peer()) +
        " is disconnected: " + why);
  if (speaks) {
    live[*client] = nullptr;
    if (options.watcher != nullptr)
      options.watcher->client_gone(*client, session.connection().ending() ? "" : why);
    if (start.empty()) table.release(*client);
    if (session.state() == Session::State::kRounds && events != nullptr) events->on_left(*client);
  }
  sessions.erase(&session);
}

// ---- Hub ----

Hub::Hub(HubOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Hub::~Hub() = default;
std::string Hub::address() const { return impl_->listener.address(); }
const ClientTable& Hub::table() const { return impl_->table; }
bool Hub::stopped() const { return impl_->stopped; }

bool Hub::gather(std::chrono::milliseconds deadline) {
  Impl& m = *impl_;
  const auto complete = [&] { return m.table.joined_count() == m.table.size(); };
  m.wait(now() + deadline, [&] { return m.stopped || complete(); });
  if (m.stopped) return false;
  if (complete()) return true;
  throw std::runtime_error("after " + std::to_string(deadline.count()) + " ms only " +
                           std::to_string(m.table.joined_count()) + " of " + std::to_string(m.table.size()) +
                           " clients have joined; missing: " + m.missing() +
                           "; start them, or give more time with --join-deadline-ms");
}

void Hub::begin(std::string start, std::uint64_t max_payload, HubEvents& events) {
  Impl& m = *impl_;
  m.start = std::move(start);
  m.max_payload = max_payload;
  m.events = &events;
  for (Session* session : m.live)
    if (session != nullptr && session->state() == Session::State::kJoined)
      session->begin(m.start, max_payload);
}

void Hub::end() { impl_->events = nullptr; }

void Hub::send(ClientId client, Outgoing message) {
  if (message.last) impl_->farewells[client] = message;
  Session* session = impl_->live[client];
  if (session == nullptr || session->state() != Session::State::kRounds) return;
  session->connection().send(std::move(message));
}

void Hub::wait(SteadyTime deadline, const std::function<bool()>& done) { impl_->wait(deadline, done); }

void Hub::own_pending() {
  if (impl_->counts.borrowing == 0) return;
  OwnedSections copies;
  for (const auto& [session, owned] : impl_->sessions) session->connection().own_sections(copies);
}

void Hub::finish(std::chrono::milliseconds deadline) {
  Impl& m = *impl_;
  m.events = nullptr;
  m.ended = true;
  for (const auto& [session, owned] : m.sessions)
    if (!session->connection().ending() && session->client() && m.farewells.count(*session->client()) == 0)
      session->connection().refuse("the run is over", true, 0);
  const SteadyTime end = now() + deadline;
  const auto heard = [&] { return m.farewells.empty(); };
  m.wait(std::min(end, now() + kQuietGoodbye), heard);
  if (!heard()) {
    m.log("waiting for " + std::to_string(m.farewells.size()) +
          " clients to hear that the run is over, first " + m.name(m.farewells.begin()->first));
    m.wait(end, heard);
  }
  m.wait(std::min(end, now() + kQuietGoodbye), [&] { return m.counts.open == 0; });  // they hang up
}

void Hub::abandon(const std::string& message, bool fatal, std::uint32_t retry_after_ms) {
  Impl& m = *impl_;
  m.events = nullptr;
  m.ended = true;
  asio::error_code ignored;
  m.acceptor.close(ignored);  // whoever comes now finds nobody, and tries again
  for (const auto& [session, owned] : m.sessions)
    session->connection().refuse(message, fatal, retry_after_ms);
  m.wait(now() + m.options.times.linger, [&] { return m.counts.open == 0; });
}

}  // namespace gradwire
