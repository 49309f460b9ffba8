// The parts of a session manager that ban peers and limit connections by origin.
#include <algorithm>
#include <limits>
#include <utility>

#include "fl_server/sessions/session_manager_impl.h"

namespace gradwire {
namespace {

constexpr std::chrono::minutes kLongestOfOrigin{1};
// Handshakes that are allowed in addition to two per client at once, and one per client every kSecondsForAll.
constexpr double kRefusedChannels = 1000;  // refusals at once, for a relay that opens too many channels
constexpr double kExtraHandshakes = 256, kPerAddressAndSecond = 50, kPerSecond = 200, kSecondsForAll = 30;

std::uint32_t milliseconds_of(SteadyTime::duration time) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(ms, 0, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

HandshakeRates handshake_rates(std::uint32_t clients) {
  const double at_once = kExtraHandshakes + 2.0 * clients;
  const double per_second = clients / kSecondsForAll;
  return {.from_address = {.per_second = kPerAddressAndSecond + per_second, .burst = at_once},
          .in_all = {.per_second = kPerSecond + per_second, .burst = 2 * at_once}};
}

// Limits the channels of a relay. Channels over the first limit are refused; over the second the relay is
// closed.
Opening Opening::of(std::uint32_t clients) {
  return {RateLimit(handshake_rates(clients).from_address),
          RateLimit({.per_second = kPerAddressAndSecond, .burst = kRefusedChannels})};
}

BanLimits limits_of_origins(BanLimits limits) {
  limits.longest = std::min<SteadyTime::duration>(limits.longest, kLongestOfOrigin);
  return limits;
}

// Returns the key under which violations of a session count. It is the authenticated name, or else the
// claimed name with the address, or else the address. So a peer cannot ban another one by claiming its name.
std::string SessionManager::Impl::offender_key(const Session& session, const std::string& claims) const {
  if (!session.proven_name().empty()) return "'" + session.proven_name() + "'";
  const std::string& peer = (session.relay() != nullptr ? *session.relay() : session).link().peer();
  return claims.empty() ? origin_of(peer) : "'" + claims + "' at " + origin_of(peer);
}

bool SessionManager::Impl::is_known_origin(const std::string& origin) const {
  return clients_from.contains(origin);
}

void SessionManager::Impl::move_origin(ClientId client, const std::string& origin) {
  const auto left = clients_from.find(std::exchange(last_origins[client], origin));
  if (left != clients_from.end() && --left->second == 0) clients_from.erase(left);
  ++clients_from[origin];
}

std::uint32_t SessionManager::Impl::on_violation(const Session& session) {
  // The session manager ignores all that is sent now.
  if (ended || (events == nullptr && !start.empty())) return 0;
  const std::string claims = session.client() ? table.info(*session.client()).name : std::string();
  const std::string offender = offender_key(session, claims);
  const bool is_origin = session.proven_name().empty() && claims.empty();
  // A channel comes from its relay, and a known address belongs to clients as well. Do not ban either.
  if (is_origin && (session.is_channel() || is_known_origin(offender))) return 0;
  BanList& judge = is_origin ? banned_origins : bans;
  const SteadyTime::duration out = judge.violation(offender, now());
  if (out == SteadyTime::duration::zero()) return 0;
  log(LogLine::warning(offender + " misbehaved " + std::to_string(judge.violations(offender, now())) +
                       " times and is banned for " + std::to_string(milliseconds_of(out)) + " ms"));
  return milliseconds_of(out);
}

std::uint32_t SessionManager::Impl::banned(const Session& session, const std::string& name) const {
  return name.empty() ? 0 : milliseconds_of(bans.left(offender_key(session, name), now()));
}

bool SessionManager::Impl::wants(const std::string& peer) {
  const std::string origin = origin_of(peer);
  if (handshakes.take(origin, is_known_origin(origin), now())) return true;
  server_metrics().end(Ending::kFromOneOrigin);
  log(LogLine::warning("too many new handshakes, the last one from " + origin + "; closing its connection"));
  return false;
}

void SessionManager::Impl::admit_connection(Session& session) {
  const std::string origin = origin_of(session.link().peer());
  const auto left = banned_origins.left(origin, now());
  if (left > SteadyTime::duration::zero() && !is_known_origin(origin))
    session.refuse(Ending::kBanned,
                   origin + " is banned for " + std::to_string(milliseconds_of(left)) +
                       " ms more: it misbehaved repeatedly",
                   false, milliseconds_of(left));
  if (!open_from.add(origin)) return;
  log(LogLine::warning("more than " + std::to_string(options.most_from_address) + " connections come from " +
                       origin + "; closing the oldest unauthenticated one"));
  const std::uint64_t oldest = *unauthenticated.first_from(origin);  // this one if there is no other
  if (oldest == session.id())
    return session.refuse(Ending::kFromOneOrigin, "too many connections come from " + origin, false,
                          kOriginRetryMs);
  unauthenticated.remove(oldest);
  server_metrics().end(Ending::kFromOneOrigin);
  sessions.at(oldest)->link().close("");
}

}  // namespace gradwire
