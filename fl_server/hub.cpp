#include "fl_server/hub.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "fl_server/session.h"
#include "proto/control_frame.h"
#include "proto/wire.pb.h"

namespace gradwire {
namespace {

// Sockets beyond two per client: room for newcomers that have not said who they are.
constexpr std::size_t kExtraSockets = 64;
constexpr std::uint32_t kFullRetryMs = 1000;
constexpr std::size_t kNamedMissing = 10;
constexpr std::chrono::minutes kSayWhoIsMissing{1};
constexpr std::chrono::milliseconds kQuietGoodbye{500};  // before it is worth a line that somebody takes long

}  // namespace

struct Hub::Impl final : SessionOwner, SocketLayerHandler {
  Impl(HubOptions o, std::unique_ptr<SocketLayer> n);

  void on_accepted(std::unique_ptr<Socket> socket) override;
  void on_turned_away() override;
  void on_tick() override;
  void on_stop() override;

  SteadyTime now() const { return sockets->now(); }
  void log(const std::string& line) const {
    if (options.log) options.log(line);
  }
  std::string name(ClientId client) const {
    return "client " + std::to_string(client) + " '" + table.info(client).name + "'";
  }
  std::string missing() const;
  void compare_kernels(ClientId client) const;
  void replace(ClientId client, Session& session);
  Session& add_session();

  Result<ClientId> on_hello(Session& session, const std::string& who, std::optional<std::uint32_t> part_index,
                            std::optional<std::uint32_t> part_count) override;
  std::string welcome(ClientId client) override;
  Status on_join(Session& session, ClientInfo info) override;
  Result<std::span<const std::span<std::byte>>> on_reply_header(Session& session, const Prefix& prefix,
                                                                std::span<const std::byte> header) override;
  Status on_reply(Session& session, std::uint64_t bytes) override;
  void on_heard(Session& session) override { farewells.erase(*session.client()); }
  void on_broken_reply(Session& session, std::uint64_t payload_bytes) override;
  void on_closed(Session& session, const std::string& why) override;
  Result<std::span<const std::span<std::byte>>> on_sum_header(Session& relay, const Prefix& prefix,
                                                              std::span<const std::byte> header) override;
  Status on_sum(Session& relay, std::uint64_t bytes) override;
  std::string relay_welcome(const Session& relay) override;
  std::uint64_t max_payload() const override { return longest_payload; }
  Channel on_channel(Session& relay, Connection& trunk, std::uint32_t channel) override;
  void on_shut(Session& session) override { sessions.erase(session.id()); }

  HubOptions options;
  ClientTable table;
  ConnectionCounts counts;
  const std::unique_ptr<SocketLayer> sockets;  // sessions end before it
  std::string start;                           // the frame; empty until the run begins
  std::uint64_t longest_payload = 0;           // max_payload()
  HubEvents* events = nullptr;                 // null before the run and after it
  bool stopped = false, ended = false, said_short = false, takes_sums = false;

  std::map<std::uint64_t, std::unique_ptr<Session>> sessions;  // in the order in which they came
  std::uint64_t sessions_so_far = 0;
  std::vector<Session*> live;  // by client: the connection that speaks for it, or null
  // By client: its last message, until it was heard; to be sent again to a client that comes back for it.
  std::map<ClientId, Outgoing> farewells;
};

Hub::Impl::Impl(HubOptions o, std::unique_ptr<SocketLayer> n)
    : options(std::move(o)),
      table(options.table.size() > 0 ? options.table : ClientTable(options.clients)),
      sockets(std::move(n)),
      live(options.clients, nullptr) {
  welcome(0);  // throws now, not in front of a client, when the experiment is too long for it
  sockets->start(*this, options.times.tick(), options.handle_signals);
}

// ---- sockets and time ----

void Hub::Impl::on_accepted(std::unique_ptr<Socket> socket) {
  if (counts.open >= 2 * options.clients + kExtraSockets) return;
  said_short = false;
  Session& session = add_session();
  session.speak(std::make_unique<Connection>(*sockets, std::move(socket), options.times, session, counts))
      .start();
}

Session& Hub::Impl::add_session() {
  const std::uint64_t id = ++sessions_so_far;
  return *(sessions[id] = std::make_unique<Session>(id, *sockets, options.times, *this));
}

Channel Hub::Impl::on_channel(Session& relay, Connection& trunk, std::uint32_t channel) {
  if (sessions.size() >= 2 * options.clients + kExtraSockets) {
    const std::string full = error_frame("the server takes no more connections", false, kFullRetryMs);
    trunk.send(Outgoing::control(gradwire::on_channel(full, channel)));
    return {};
  }
  Session& session = add_session();
  ChannelLink& link = session.speak(std::make_unique<ChannelLink>(*sockets, trunk, channel, session), relay);
  return {&session, &link};
}

std::string Hub::Impl::relay_welcome(const Session& relay) {
  wire::Relay message;
  message.set_protocol(kWireVersion);
  message.set_heartbeat_ms(static_cast<std::uint32_t>(options.times.heartbeat.count()));
  message.set_max_payload(longest_payload);
  if (takes_sums && relay.adds()) message.set_adds(true);
  return control_frame(FrameType::kRelay, message);
}

void Hub::Impl::on_turned_away() {
  if (!std::exchange(said_short, true))
    log("no file descriptors are left: connections are turned away; raise 'ulimit -n'");
}

void Hub::Impl::on_tick() {
  const SteadyTime time = now();
  for (const auto& [id, session] : sessions) session->check_time(time);
}

void Hub::Impl::on_stop() {
  stopped = true;
  log("stopping: the round is finished first");
  if (events != nullptr) events->on_stop();
}

// ---- the handshake ----

// A new connection speaks for the client: the old one is told and hung up on. For good, if that is another
// process and this one has shown that it is there: else two would take turns for ever.
void Hub::Impl::replace(ClientId client, Session& session) {
  Session* old = std::exchange(live[client], &session);
  if (old == nullptr) return;
  log(name(client) + ": " + session.link().peer() + " takes the place of " + old->link().peer());
  old->give_way("another process has connected as client " + std::to_string(client),
                !start.empty() && !old->same_process(session));
}

Result<ClientId> Hub::Impl::on_hello(Session& session, const std::string& who,
                                     std::optional<std::uint32_t> part_index,
                                     std::optional<std::uint32_t> part_count) {
  Result<ClientId> client = table.assign(who, part_index, part_count);
  if (!client) return client;
  if (ended && farewells.count(*client) == 0) return Error{"the run is over"};
  if (const Session* now = live[*client];
      now != nullptr && now->same_process(session) && now->ordinal() > session.ordinal()) {
    // Its network was slow: the process has connected again meanwhile, and that connection is good.
    session.link().refuse("there is a newer connection of this process", false, 0);
    return Error{"it is late"};
  }
  // In a run a Hello replaces nobody: it may be an old one, of a connection that nobody is at any more.
  if (live[*client] != nullptr && !start.empty()) return client;
  const bool again = live[*client] != nullptr;
  replace(*client, session);
  if (!again) return client;
  live[*client] = nullptr;
  table.release(*client);
  client = table.assign(who, part_index, part_count);
  if (client) live[*client] = &session;
  return client;
}

std::string Hub::Impl::welcome(ClientId client) {
  wire::Welcome message;
  message.set_client(client);
  message.set_experiment(options.experiment);
  message.set_heartbeat_ms(static_cast<std::uint32_t>(options.times.heartbeat.count()));
  message.set_max_payload(longest_payload);
  return control_frame(FrameType::kWelcome, message);
}

Status Hub::Impl::on_join(Session& session, ClientInfo info) {
  const ClientId client = *session.client();
  const std::string detail = std::to_string(info.sample_count) + " samples";
  const std::string process = session.link().peer() + ", process " + std::to_string(info.pid);
  if (Status status = table.join(client, std::move(info)); !status) return status;
  if (live[client] != &session) replace(client, session);
  const std::uint32_t left = table.size() - table.joined_count();
  log(name(client) + " (" + process + ") joined with " + detail +
      (start.empty() && left > 0 ? "; waiting for " + std::to_string(left) + " more" : ""));
  compare_kernels(client);
  if (options.watcher != nullptr)
    options.watcher->client_joined(client, table.info(client), session.link().peer());
  if (!start.empty()) {
    session.begin(start, longest_payload);
    if (const auto last = farewells.find(client); last != farewells.end()) session.link().send(last->second);
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

Result<std::span<const std::span<std::byte>>> Hub::Impl::on_sum_header(Session& relay, const Prefix& prefix,
                                                                       std::span<const std::byte> header) {
  if (events == nullptr) return std::span<const std::span<std::byte>>();  // its clients hear that it is over
  return events->on_sum_header(relay.id(), prefix, header, [&](ClientId client) {
    const Session* session = live[client];
    return session != nullptr && session->state() == Session::State::kRounds && session->is_behind(relay);
  });
}

Status Hub::Impl::on_sum(Session& relay, std::uint64_t bytes) {
  return events != nullptr ? events->on_sum(relay.id(), bytes) : Status(Unit{});
}

void Hub::Impl::on_broken_reply(Session& session, std::uint64_t payload_bytes) {
  if (events != nullptr) events->on_broken_reply(*session.client(), payload_bytes);
}

void Hub::Impl::on_closed(Session& session, const std::string& why) {
  const auto client = session.client();
  const bool speaks = client && live[*client] == &session;
  if (session.state() == Session::State::kRelay && events != nullptr) events->on_relay_left(session.id());
  if (!session.link().ending())
    log((speaks ? name(*client) + " (" + session.link().peer() + ")" : session.link().peer()) +
        " is disconnected: " + why);
  if (speaks) {
    live[*client] = nullptr;
    if (options.watcher != nullptr) options.watcher->client_gone(*client, session.link().ending() ? "" : why);
    if (start.empty()) table.release(*client);
    if (session.state() == Session::State::kRounds && events != nullptr) events->on_left(*client);
  }
}

// ---- Hub ----

Hub::Hub(HubOptions options, std::unique_ptr<SocketLayer> sockets)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(sockets))) {}
Hub::~Hub() = default;
std::string Hub::address() const { return impl_->sockets->address(); }
SteadyTime Hub::now() const { return impl_->now(); }
const ClientTable& Hub::table() const { return impl_->table; }
bool Hub::stopped() const { return impl_->stopped; }

bool Hub::gather(std::chrono::milliseconds deadline) {
  Impl& m = *impl_;
  const auto complete = [&] { return m.table.joined_count() == m.table.size(); };
  const SteadyTime end = m.now() + deadline;
  while (!m.stopped && !complete() && m.now() < end) {
    const SteadyTime soon = std::min(end, m.now() + kSayWhoIsMissing);
    m.sockets->wait(soon, [&] { return m.stopped || complete(); });
    if (!m.stopped && !complete() && m.now() < end)
      m.log("still waiting for clients " + m.missing() + " to join; start them with --server " +
            m.sockets->address());
  }
  if (m.stopped) return false;
  if (complete()) return true;
  throw std::runtime_error("after " + std::to_string(deadline.count()) + " ms only " +
                           std::to_string(m.table.joined_count()) + " of " + std::to_string(m.table.size()) +
                           " clients have joined; missing: " + m.missing() +
                           "; start them, or give more time with --join-deadline-ms");
}

void Hub::begin(std::string start, std::uint64_t max_payload, HubEvents& events, bool takes_sums) {
  Impl& m = *impl_;
  m.takes_sums = takes_sums;
  m.start = std::move(start);
  m.longest_payload = max_payload;
  m.events = &events;
  for (const auto& [id, session] : m.sessions)
    if (session->state() == Session::State::kRelay) session->tell_relay();
  for (Session* session : m.live)
    if (session != nullptr && session->state() == Session::State::kJoined)
      session->begin(m.start, max_payload);
}

void Hub::end() {
  impl_->events = nullptr;
  for (const auto& [id, session] : impl_->sessions) session->link().skip_payload();
}

void Hub::send(ClientId client, Outgoing message) {
  if (message.last) impl_->farewells[client] = message;
  Session* session = impl_->live[client];
  if (session == nullptr || session->state() != Session::State::kRounds) return;
  session->link().send(std::move(message));
}

bool Hub::has_body(ClientId client, const void* body) const {
  Session* session = impl_->live[client];
  return session != nullptr && session->state() == Session::State::kRounds && session->link().has_body(body);
}

void Hub::tell_asked(std::uint64_t ticket) {
  wire::Relay message;
  message.set_protocol(kWireVersion);
  message.set_asked(ticket);
  for (const auto& [id, session] : impl_->sessions)
    if (session->state() == Session::State::kRelay && session->adds())
      session->link().send(Outgoing::control(control_frame(FrameType::kRelay, message)));
}

void Hub::send_soon(ClientId client, const std::string& control_frame) {
  Session* session = impl_->live[client];
  if (session != nullptr) session->link().send_soon(control_frame);
}

void Hub::wait(SteadyTime deadline, const std::function<bool()>& done) {
  impl_->sockets->wait(deadline, done);
}

void Hub::own_pending() {
  if (impl_->counts.borrowing == 0) return;
  OwnedSections copies;
  for (const auto& [id, session] : impl_->sessions) session->link().own_sections(copies);
}

bool Hub::finish(std::chrono::milliseconds deadline) {
  Impl& m = *impl_;
  m.events = nullptr;
  m.ended = true;
  for (const auto& [id, session] : m.sessions)
    if (!session->link().ending() && session->client() && m.farewells.count(*session->client()) == 0)
      session->link().refuse("the run is over", true, 0);
  const SteadyTime end = m.now() + deadline;
  const auto heard = [&] { return m.farewells.empty(); };
  m.sockets->wait(std::min(end, m.now() + kQuietGoodbye), heard);
  if (!heard()) {
    m.log("waiting for " + std::to_string(m.farewells.size()) +
          " clients to hear that the run is over, first " + m.name(m.farewells.begin()->first));
    m.sockets->wait(end, heard);
  }
  wire::Relay over;
  over.set_protocol(kWireVersion);
  over.set_over(true);
  for (const auto& [id, session] : m.sessions)
    if (heard() && session->state() == Session::State::kRelay)
      session->link().send(Outgoing::control(control_frame(FrameType::kRelay, over)));
  m.sockets->wait(std::min(end, m.now() + kQuietGoodbye),
                  [&] { return m.counts.open == 0; });  // they hang up
  return heard();
}

void Hub::abandon(const std::string& message, bool fatal, std::uint32_t retry_after_ms) {
  Impl& m = *impl_;
  m.events = nullptr;
  m.ended = true;
  m.sockets->stop_accepting();  // whoever comes now finds nobody, and tries again
  for (const auto& [id, session] : m.sessions) session->link().refuse(message, fatal, retry_after_ms);
  m.sockets->wait(m.now() + m.options.times.linger, [&] { return m.counts.open == 0; });
}

}  // namespace gradwire
