#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "fl_server/sessions/session_manager_impl.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/feature_messages.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

// The number of sockets or channels in addition to two per client, for unauthenticated connections.
constexpr std::size_t kExtraSockets = 256;
constexpr std::uint32_t kFullRetryMs = 1000;
constexpr std::size_t kNamedMissing = 10;
constexpr std::size_t kMapBytes = 17;  // per feature of a map, or a little less

}  // namespace

SessionManager::Impl::Impl(SessionManagerOptions o, std::unique_ptr<SocketLayer> n)
    : options(std::move(o)),
      table(options.table.size() > 0 ? options.table : ClientTable(options.clients)),
      counts{.server_metrics = options.server_metrics != nullptr ? *options.server_metrics : own_metrics,
             .receive_budget = {}},
      sockets(std::move(n)),
      normalization(options.normalization),
      limits(options.bans, options.handshakes, options.clients),
      open_from(options.most_from_address),
      clients(options.clients) {
  welcome(0, true);  // throws now, before any client connects, if the experiment is too long
  counts.receive_budget.limit(options.receive_budget_bytes);
  sockets->start(*this, options.times.tick(), options.handle_signals);
  stop_requested.emplace(options.stop, PostStop{*this});
  abandon_requested.emplace(options.abandon, PostStop{*this});
}

void SessionManager::Impl::PostStop::operator()() const {
  to.sockets->post([&manager = to] { manager.on_stop(); });
}

SessionManager::Impl::~Impl() {
  for (const auto gauge : {&ServerMetrics::open, &ServerMetrics::connected, &ServerMetrics::bytes_to_write,
                           &ServerMetrics::bytes_staged})
    (server_metrics().*gauge).set(0);
}

// ---- sockets and time ----

std::size_t SessionManager::Impl::most_sockets() const {
  return std::min<std::size_t>(2 * std::size_t{options.clients} + kExtraSockets, sockets->most_sockets());
}

// Accepts a connection. If there are too many, it closes an unauthenticated one: clients authenticate
// quickly, so a flood of anonymous connections cannot evict them.
void SessionManager::Impl::on_accepted(std::unique_ptr<Socket> socket) {
  if (counts.open >= most_sockets()) {
    if (unauthenticated.empty()) return;
    reject_unauthenticated();
  }
  warned_of_descriptors = false;
  server_metrics().accepted.add();
  Session& session = add_session();
  unauthenticated.add(session.id(), socket->peer());
  session.speak(std::make_unique<Connection>(*sockets, std::move(socket), options.times, session, counts))
      .start();
  admit_connection(session);
}

void SessionManager::Impl::reject_unauthenticated() {
  const std::uint64_t id = unauthenticated.eviction_candidate();
  log(LogLine::warning("too many unauthenticated connections, mostly from " +
                       unauthenticated.largest_origin() + "; closing the oldest"));
  unauthenticated.remove(id);
  server_metrics().end(Ending::kEvicted);
  sessions.at(id)->link().close("");
}

Session& SessionManager::Impl::add_session() {
  const std::uint64_t id = ++sessions_so_far;
  return *(sessions[id] = std::make_unique<Session>(id, *sockets, options.times, *this));
}

Channel SessionManager::Impl::on_channel(Session& relay, Connection& multiplexer, std::uint32_t channel) {
  ChannelLimits& channels = relays.at(relay.id()).channels;
  const bool is_too_fast = !channels.permitted.take(now());
  if (is_too_fast && !channels.refused.take(now())) {
    relay.refuse(Ending::kEvicted, "it repeatedly opens channels too fast", false, relay.on_misbehaviour());
    return {};
  }
  if (is_too_fast || sessions.size() >= 4 * std::size_t{options.clients} + 2 * kExtraSockets) {
    const std::string full = error_frame("the server accepts no more connections now", false, kFullRetryMs);
    if (!multiplexer.writing()) multiplexer.send(Outgoing::control(gradwire::on_channel(full, channel)));
    return {};
  }
  Session& session = add_session();
  MuxChannel& link =
      session.speak(std::make_unique<MuxChannel>(*sockets, multiplexer, channel, session), relay);
  return {&session, &link};
}

std::string SessionManager::Impl::relay_welcome(const Session& relay) {
  wire::Relay message;
  message.set_protocol(kWireVersion);
  message.set_heartbeat_ms(static_cast<std::uint32_t>(options.times.heartbeat.count()));
  message.set_max_payload(longest_payload);
  if (takes_sums && relay.adds()) message.set_adds(true);
  relays.try_emplace(relay.id(), Relay{ChannelLimits::of(options.clients), relay.adds()});
  return control_frame(FrameType::kRelay, message);
}

// Returns the configured limit, plus the start messages of all clients and two of the largest messages.
std::uint64_t SessionManager::Impl::most_for_relay() const {
  return options.most_for_relay_bytes + 2 * longest_payload +
         options.clients * (options.experiment.size() + start.size() +
                            (normalization ? kMapBytes * normalization->shift.size() : 0));
}

void SessionManager::Impl::on_no_descriptors() {
  server_metrics().end(Ending::kNoDescriptors);
  if (!unauthenticated.empty()) reject_unauthenticated();
  if (!std::exchange(warned_of_descriptors, true))
    log(
        LogLine::warning("no file descriptors are left: closing connections; raise 'ulimit -n' "
                         "(LimitNOFILE of a unit)"));
}

void SessionManager::Impl::on_tick() {
  const SteadyTime time = now();
  std::uint64_t waiting = 0;
  for (const auto& [id, session] : sessions) {
    session->check_time(time);
    waiting += session->bytes_waiting();
  }
  server_metrics().open.set(counts.open);
  server_metrics().bytes_to_write.set(waiting);
}

void SessionManager::Impl::on_stop() {
  log(std::exchange(stopped, true) ? "giving up the round in progress" : "stopping after this round");
  if (events != nullptr) events->on_stop();
}

// ---- the handshake ----

// Returns true if the client's process already has a newer connection. Then this session's network was slow,
// or an attacker replayed its bytes.
bool SessionManager::Impl::is_late(const Session& session, const Session* other) const {
  return other != nullptr && other != &session && other->same_process(session) &&
         other->ordinal() >= session.ordinal();
}

// Returns true if two relays send the same Hello of a client, so that one connection is a copy of the other.
bool SessionManager::Impl::is_copy(const Session& session, const Session* other) const {
  return other != nullptr && other->same_process(session) && other->ordinal() == session.ordinal() &&
         other->relay() != nullptr && session.relay() != nullptr && other->relay() != session.relay();
}

void SessionManager::Impl::set_connected(ClientId client, bool is) {
  clients.set_connected(client, is);
  server_metrics().connected.set(clients.connected_count());
}

Result<ClientId> SessionManager::Impl::on_hello(Session& session, const std::string& client_name,
                                                std::optional<std::uint32_t> part_index,
                                                std::optional<std::uint32_t> part_count) {
  // An authenticated name that is still accepted keeps its number.
  const auto keeps = [this](const std::string& name) {
    return options.authenticator != nullptr && options.authenticator->still_admits(name);
  };
  Result<ClientId> client = table.assign(client_name, part_index, part_count, keeps);
  if (!client) return client;
  if (ended && pending_shutdowns.count(*client) == 0) return Error{"the run is over"};
  for (Session* const other : {clients.current(*client), clients.candidate(*client)}) {
    if (!is_copy(session, other)) continue;
    // The relay reconnects. The copy of its old connection does not.
    for (Session* const relay : {other->relay(), session.relay()})
      relay->refuse(Ending::kReplaced, "its frames arrive twice; reconnect", false);
    return Error{"the frames of its relay arrive twice"};
  }
  if (is_late(session, clients.current(*client)) || is_late(session, clients.candidate(*client))) {
    session.refuse(Ending::kReplaced, "there is a newer connection of this process", false);
    return Error{"it is older than another connection of its process"};
  }
  const Session* const relay = session.relay();
  unauthenticated.remove(relay != nullptr ? relay->id() : session.id());
  if (Session* const former = clients.add(*client, session); former != nullptr)
    former->close_replaced("a newer connection claims to be client " + std::to_string(*client), false);
  return client;
}

std::string SessionManager::Impl::welcome(ClientId client, bool chunks) {
  wire::Welcome message;
  message.set_client(client);
  message.set_experiment(options.experiment);
  message.set_heartbeat_ms(static_cast<std::uint32_t>(options.times.heartbeat.count()));
  message.set_max_payload(longest_payload);
  if (chunks) message.set_pieces(true);
  if (needs_sums(options.normalize)) message.set_asks_sums(asks_sums());
  const std::string frame = control_frame(FrameType::kWelcome, message);
  return normalization ? frame + scaling_frames(*normalization, client) : frame;
}

// Lets a session that has described its client's data serve the client.
void SessionManager::Impl::serve_by(Session& session, ClientId client) {
  Session* const former = clients.promote(client, session);
  if (former == nullptr) return;
  log(LogLine(name(client) + ": " + session.link().peer() + " replaces " + former->link().peer())
          .of_client(client));
  // The refusal is fatal if it goes to another process; otherwise two processes would replace each other
  // repeatedly.
  former->close_replaced("another process has connected as client " + std::to_string(client),
                         !former->same_process(session));
}

Status SessionManager::Impl::check(const Session& session, const ClientInfo& info) const {
  if (!options.check) return Unit{};
  return options.check(info, [this, own = *session.client()](ClientId client) -> const ClientInfo* {
    if (client == own) return nullptr;
    if (table.joined(client)) return &table.info(client);
    const auto of = summed.find(client);
    return of == summed.end() ? nullptr : &of->second.info;
  });
}

Status SessionManager::Impl::on_sums(Session& session, const ClientInfo& info, ClientSums sums) {
  const ClientId client = *session.client();
  const std::size_t features = sums.features.size();
  Summed& of = summed[client] = {info, std::move(sums)};
  of.info.name = table.info(client).name;
  serve_by(session, client);
  const std::size_t left = table.size() - summed.size();
  log(LogLine(name(client) + " (" + session.link().peer() + ") sent the sums of " + std::to_string(features) +
              " features for problem.normalize" +
              (left > 0 ? "; waiting for " + std::to_string(left) + " more" : ""))
          .of_client(client));
  return Unit{};
}

void SessionManager::Impl::send_scaling() {
  std::vector<ClientSums> all;  // in order of the clients, so the bits do not depend on arrival
  for (auto& [client, of] : summed) all.push_back(std::exchange(of.sums, {}));
  if (const auto gap = widest_scale_gap(all, options.normalize)) {
    const ClientId small = std::next(summed.begin(), static_cast<std::ptrdiff_t>(gap->small))->first,
                   large = std::next(summed.begin(), static_cast<std::ptrdiff_t>(gap->large))->first;
    log(LogLine::warning("the values of feature " + std::to_string(gap->feature + 1) + " are about " +
                         std::to_string(std::llround(std::min(gap->factor, 1e15))) + " times larger at " +
                         name(large) + " than at " + name(small) +
                         "; are they in the same unit? The log of each client lists its columns"));
  }
  normalization = std::make_shared<const Normalization>(normalization_of(all, options.normalize));
  log("the sums of all clients have arrived; sending them the map of the features");
  for (const auto& [id, session] : sessions) session->scale(*normalization);
}

Status SessionManager::Impl::on_join(Session& session, ClientInfo info) {
  const ClientId client = *session.client();
  if (options.asks_constants && !info.smoothness)
    return Error{"the run needs L_i and mu_i of each client, but " + name(client) +
                 " did not report them; install the same release on both"};
  const std::string detail = std::to_string(info.sample_count) + " samples";
  const std::string process = session.link().peer() + ", process " + std::to_string(info.pid);
  if (Status status = check(session, info); !status) return status;
  if (const auto of = summed.find(client);
      of != summed.end() &&
      (of->second.info.sample_count != info.sample_count || of->second.info.data_hash != info.data_hash))
    return Error{name(client) +
                 " joined with other samples than those of the sums for problem.normalize; "
                 "start it with these, or start the server again"};
  // Until the run begins, the newest process decides which data the client has.
  if (start.empty()) table.leave(client);
  if (!start.empty() && !table.joined(client) && options.record_join) {
    info.name = table.info(client).name;
    if (const Status status = options.record_join(client, info, table.by_part(client)); !status) {
      log(LogLine::warning(name(client) + " cannot join now: " + status.error().message).of_client(client));
      session.refuse(Ending::kUnwanted, status.error().message, false, kFullRetryMs);
      return Unit{};
    }
  }
  if (Status status = table.join(client, std::move(info)); !status) return status;
  serve_by(session, client);
  set_connected(client, true);
  losses.erase(client);
  const std::uint32_t left = needed() - std::min(needed(), table.joined_count());
  log(LogLine(name(client) + " (" + process + ") joined with " + detail +
              (start.empty() && left > 0 ? "; waiting for " + std::to_string(left) + " more" : ""))
          .of_client(client));
  if (const std::string trouble = start.empty() ? lacking() : ""; !trouble.empty())
    log("waiting for one more client, because " + trouble);
  compare_kernels(client);
  limits.move(client, identity(session, "").origin);
  if (options.observer != nullptr)
    options.observer->client_joined(client, table.info(client), session.link().peer());
  if (!start.empty()) {
    session.begin(start, longest_payload);
    if (const auto last = pending_shutdowns.find(client); last != pending_shutdowns.end())
      session.link().send(last->second);
    if (events != nullptr) events->on_joined(client);
  }
  return Unit{};
}

// Warns if the kernels of a client differ from those of the first other client. Skips clients that report
// none.
void SessionManager::Impl::compare_kernels(ClientId client) const {
  const std::string& own = table.info(client).kernels;
  if (!options.warns_of_kernels || own.empty()) return;
  for (ClientId other = 0; other < table.size(); ++other) {
    const std::string& theirs = table.info(other).kernels;
    if (other == client || !table.joined(other) || theirs.empty()) continue;
    if (theirs != own)
      log(LogLine::warning(name(client) + " computes with kernels '" + own + "', " + name(other) + " with '" +
                           theirs +
                           "': results agree only up to rounding; only equal kernels give equal bits")
              .of_client(client));
    return;
  }
}

std::string SessionManager::Impl::missing() const {
  std::string text;
  std::size_t count = 0;
  for (ClientId client = 0; client < table.size(); ++client) {
    if (asks_sums() ? summed.contains(client) : table.joined(client)) continue;
    if (++count <= kNamedMissing) text += (count == 1 ? "" : ", ") + std::to_string(client);
  }
  return count > kNamedMissing ? text + " and " + std::to_string(count - kNamedMissing) + " more" : text;
}

void SessionManager::Impl::on_shut(Session& session) {
  Session* const relay = session.relay();
  unauthenticated.remove(session.id());
  if (!session.is_channel()) open_from.remove(origin_of(session.link().peer()));
  relays.erase(session.id());
  sessions.erase(session.id());
  if (relay != nullptr && relay->has_no_clients()) unauthenticated.add(relay->id(), relay->link().peer());
}

bool SessionManager::Impl::is_served_by(const Session& relay, ClientId client) const {
  const Session* const session = clients.current(client);
  return session != nullptr && session->state() == Session::SessionState::kRounds &&
         session->is_client_of(relay);
}

void SessionManager::Impl::on_closed(Session& session, const std::string& why) {
  const auto client = session.client();
  const bool is_live = client && clients.current(*client) == &session;
  if (session.state() == Session::SessionState::kRelay && events != nullptr)
    events->on_relay_left(session.id());
  if (!session.is_channel())
    unauthenticated.add(session.id(), session.link().peer());  // it may still read the reason
  if (client) clients.remove(*client, session);
  if (!session.link().ending() && !why.empty()) {
    const std::string peer = session.link().peer();
    const std::string claim =
        session.claimed_name().empty() ? "" : ", which claims to be '" + session.claimed_name() + "',";
    const std::string reason = is_live ? why : repeated.see(origin_of(peer) + claim, why, now());
    LogLine line((is_live ? name(*client) + " (" + peer + ")" : peer + claim) + " disconnected: " + reason);
    if (client && session.unwanted()) line.level = LogLevel::kWarning;  // it must be started with other data
    if (!reason.empty()) log(std::move(line).of_client(is_live ? client : std::nullopt));
  }
  if (is_live) {
    losses[*client] = {std::chrono::system_clock::now(),
                       why.empty() ? "the server closed the connection" : why};
    server_metrics().connected.set(clients.connected_count());
    if (options.observer != nullptr)
      options.observer->client_gone(*client, session.link().ending() ? "" : why);
    if (start.empty() || !table.joined(*client)) {
      if (asks_sums()) summed.erase(*client);
      // Once its sums are in the map, a client keeps its number.
      const bool keeps = clients.promote_candidate(*client) || summed.contains(*client);
      keeps ? table.leave(*client) : table.release(*client);
    }
    if (session.state() == Session::SessionState::kRounds && events != nullptr) events->on_left(*client);
  }
}

// ---- limits ----

PeerIdentity SessionManager::Impl::identity(const Session& session, const std::string& claimed_name) const {
  const Session& socket = session.relay() != nullptr ? *session.relay() : session;
  return {session.proven_name(), claimed_name, origin_of(socket.link().peer()), session.is_channel()};
}

std::uint32_t SessionManager::Impl::on_violation(const Session& session) {
  // The session manager ignores all that is sent now.
  if (ended || (events == nullptr && !start.empty())) return 0;
  const std::string name = session.client() ? table.info(*session.client()).name : std::string();
  const auto ban = limits.violation(identity(session, name), now());
  if (!ban) return 0;
  log(LogLine::warning(ban->offender + " misbehaved " + std::to_string(ban->violations) +
                       " times and is banned for " + std::to_string(ban->ms) + " ms"));
  return ban->ms;
}

std::uint32_t SessionManager::Impl::banned(const Session& session, const std::string& name) const {
  return name.empty() ? 0 : limits.ban_ms(identity(session, name), now());
}

bool SessionManager::Impl::wants(const std::string& peer) {
  const std::string origin = origin_of(peer);
  if (limits.take_handshake(origin, now())) return true;
  server_metrics().end(Ending::kFromOneOrigin);
  log(LogLine::warning("too many new handshakes, the last one from " + origin + "; closing its connection"));
  return false;
}

void SessionManager::Impl::admit_connection(Session& session) {
  const std::string origin = origin_of(session.link().peer());
  if (const std::uint32_t ms = limits.ban_ms(origin, now()); ms > 0)
    session.refuse(Ending::kBanned,
                   origin + " is banned for " + std::to_string(ms) + " ms more: it misbehaved repeatedly",
                   false, ms);
  if (!open_from.add(origin)) return;
  log(LogLine::warning("more than " + std::to_string(options.most_from_address) + " connections come from " +
                       origin + "; closing the oldest unauthenticated one"));
  const std::uint64_t oldest = *unauthenticated.first_from(origin);  // the new one if there is no other
  if (oldest == session.id())
    return session.refuse(Ending::kFromOneOrigin, "too many connections come from " + origin, false,
                          kOriginRetryMs);
  unauthenticated.remove(oldest);
  server_metrics().end(Ending::kFromOneOrigin);
  sessions.at(oldest)->link().close("");
}

}  // namespace gradwire
