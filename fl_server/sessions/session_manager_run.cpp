// The use of a session manager by the server: the start, the rounds, the shutdown.
#include <algorithm>
#include <ctime>
#include <stdexcept>
#include <utility>

#include "fl_server/sessions/session_manager_impl.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

constexpr std::chrono::minutes kReportMissingEvery{1};
// After this time the log says that clients are slow to confirm.
constexpr std::chrono::milliseconds kQuietShutdown{500};

// Returns now + wait, or the latest time that the clock can represent.
SteadyTime after(SteadyTime now, std::chrono::milliseconds wait) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(SteadyTime::max() - now);
  return wait < left ? now + wait : SteadyTime::max();
}

}  // namespace

SessionManager::SessionManager(SessionManagerOptions options, std::unique_ptr<SocketLayer> sockets)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(sockets))) {}
SessionManager::~SessionManager() = default;
std::string SessionManager::address() const { return impl_->sockets->address(); }
SteadyTime SessionManager::now() const { return impl_->now(); }
const ClientTable& SessionManager::table() const { return impl_->table; }
std::shared_ptr<const Normalization> SessionManager::normalization() const { return impl_->normalization; }
bool SessionManager::stopped() const { return impl_->stopped; }

bool SessionManager::connected(ClientId client) const {
  const Session* const session = impl_->clients.current(client);
  return session != nullptr && session->state() == Session::SessionState::kRounds;
}

std::string SessionManager::standing(ClientId client) const {
  std::string state = "connected, no reply yet";
  if (const auto loss = impl_->losses.find(client); loss != impl_->losses.end()) {
    const std::time_t time = std::chrono::system_clock::to_time_t(loss->second.at);
    std::tm date{};
    char text[16];
    std::strftime(text, sizeof text, "%H:%M:%S", ::gmtime_r(&time, &date));
    state = "lost at " + std::string(text) + ": " + loss->second.why;
  } else if (!connected(client)) {
    state = "not back since this server started";
  }
  return std::to_string(client) + " '" + impl_->table.info(client).name + "' (" + state + ")";
}

bool SessionManager::gather(std::chrono::milliseconds deadline) {
  Impl& m = *impl_;
  const auto complete = [&] { return m.table.joined_count() >= m.needed() && m.lacking().empty(); };
  const auto has_all_sums = [&] { return m.asks_sums() && m.summed.size() == m.table.size(); };
  const SteadyTime end = after(m.now(), deadline);
  bool warned = false;
  while (!m.stopped && !complete() && m.now() < end) {
    const SteadyTime soon = std::min(end, m.now() + kReportMissingEvery);
    m.sockets->wait(soon, [&] { return m.stopped || complete() || has_all_sums(); });
    if (has_all_sums()) m.send_scaling();
    if (m.stopped || complete() || m.now() >= end || m.now() < soon) continue;
    const std::string lacking = m.lacking();
    LogLine line("still waiting for clients " + m.missing() + " to join" +
                 (lacking.empty() ? "" : ", because " + lacking) + "; start them with --server " +
                 m.sockets->address());
    if (!std::exchange(warned, true)) line.level = LogLevel::kWarning;
    m.log(line);
  }
  if (m.stopped) return false;
  if (complete()) return true;
  const std::string lacking = m.lacking();
  const std::string joined = std::to_string(m.asks_sums() ? m.summed.size() : m.table.joined_count()) +
                             " of " + std::to_string(m.needed()) + " clients have joined";
  throw std::runtime_error(
      "after " + std::to_string(deadline.count()) + " ms " +
      (lacking.empty() ? "only " + joined + "; missing: " : lacking + "; clients that have not joined: ") +
      m.missing() + "; start them, or give more time with --join-deadline-ms");
}

void SessionManager::begin(std::string start, std::uint64_t max_payload, SessionEvents& events,
                           bool takes_sums) {
  Impl& m = *impl_;
  m.takes_sums = takes_sums;
  m.start = std::move(start);
  m.longest_payload = max_payload;
  m.events = &events;
  for (const auto& [id, session] : m.sessions)
    if (session->state() == Session::SessionState::kRelay) session->tell_relay();
  for (Session* session : m.clients.all())
    if (session != nullptr && session->state() == Session::SessionState::kJoined)
      session->begin(m.start, max_payload);
}

void SessionManager::end() {
  impl_->events = nullptr;
  for (const auto& [id, session] : impl_->sessions) session->link().skip_payload();
}

void SessionManager::send(ClientId client, Outgoing message) {
  if (message.last && impl_->table.joined(client)) impl_->pending_shutdowns[client] = message;
  Session* session = impl_->clients.current(client);
  if (session == nullptr || session->state() != Session::SessionState::kRounds) return;
  session->link().send(std::move(message));
}

bool SessionManager::zero_copy() const { return impl_->sockets->zero_copy(); }

bool SessionManager::remembers_bodies(ClientId client) const {
  const Session* session = impl_->clients.current(client);
  return session != nullptr && session->relay() != nullptr;
}

// Tells relays the request id. Clients that return are asked one by one, so this must not visit all sessions.
void SessionManager::announce_request(std::uint64_t request_id) {
  wire::Relay message;
  message.set_protocol(kWireVersion);
  message.set_asked(request_id);
  Outgoing asked = Outgoing::control(control_frame(FrameType::kRelay, message));
  asked.request = request_id;
  for (const auto& [id, relay] : impl_->relays)
    if (relay.adds) impl_->sessions.at(id)->link().send(asked);
}

void SessionManager::send_soon(ClientId client, const std::string& control_frame) {
  Session* session = impl_->clients.current(client);
  if (session != nullptr) session->link().send_soon(control_frame);
}

void SessionManager::note_violation(ClientId client) {
  Session* session = impl_->clients.current(client);
  if (session == nullptr || !session->link().open()) return;
  if (const std::uint32_t out_ms = impl_->on_violation(*session); out_ms > 0)
    session->link().refuse("it misbehaved repeatedly", false, out_ms);
}

void SessionManager::wait(SteadyTime deadline, const std::function<bool()>& done) {
  impl_->sockets->wait(deadline, done);
}

void SessionManager::own_pending() {
  if (impl_->counts.borrowing == 0) return;
  for (const auto& [id, session] : impl_->sessions) session->link().own_sections();
}

bool SessionManager::finish(std::chrono::milliseconds deadline) {
  Impl& m = *impl_;
  m.events = nullptr;
  m.ended = true;
  for (const auto& [id, session] : m.sessions)
    if (!session->link().ending() && session->client() && m.pending_shutdowns.count(*session->client()) == 0)
      session->link().refuse("the run is over", true, 0);
  const SteadyTime end = m.now() + deadline;
  const auto heard = [&] { return m.pending_shutdowns.empty(); };
  m.sockets->wait(std::min(end, m.now() + kQuietShutdown), heard);
  if (!heard()) {
    m.log("waiting for " + std::to_string(m.pending_shutdowns.size()) +
          " clients to confirm the shutdown, first " + m.name(m.pending_shutdowns.begin()->first));
    m.sockets->wait(end, [&] { return heard() || m.stopped; });
  }
  wire::Relay over;
  over.set_protocol(kWireVersion);
  over.set_over(true);
  for (const auto& [id, session] : m.sessions)
    if (heard() && session->state() == Session::SessionState::kRelay)
      session->link().send(Outgoing::control(control_frame(FrameType::kRelay, over)));
  m.sockets->wait(std::min(end, m.now() + kQuietShutdown),
                  [&] { return m.counts.open == 0; });  // until all peers have disconnected
  return heard();
}

void SessionManager::abandon(const std::string& message, bool fatal, std::uint32_t retry_after_ms) {
  Impl& m = *impl_;
  m.events = nullptr;
  m.ended = true;
  m.sockets->stop_accepting();  // clients that connect now fail and retry
  for (const auto& [id, session] : m.sessions) session->link().refuse(message, fatal, retry_after_ms);
  m.sockets->wait(m.now() + m.options.times.linger, [&] { return m.counts.open == 0; });
}

}  // namespace gradwire
