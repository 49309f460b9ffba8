#include "fl_server/sessions/peer_limits.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gradwire {
namespace {

// Bans of an address are short, because correct clients may share the address with an attacker.
constexpr std::chrono::minutes kLongestBanOfOrigin{1};
constexpr double kRefusedChannels = 1000;  // refusals at once, for a relay that opens too many channels
// Limits on handshakes without the share of the clients. Each client adds two handshakes at once, and one
// every kSecondsForAll seconds.
constexpr double kExtraHandshakes = 256, kPerAddressAndSecond = 50, kPerSecond = 200, kSecondsForAll = 30;

std::uint32_t milliseconds_of(SteadyTime::duration time) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(ms, 0, std::numeric_limits<std::uint32_t>::max()));
}

BanLimits limits_of_origins(BanLimits limits) {
  limits.longest = std::min<SteadyTime::duration>(limits.longest, kLongestBanOfOrigin);
  return limits;
}

}  // namespace

HandshakeRates handshake_rates(std::uint32_t clients) {
  const double at_once = kExtraHandshakes + 2.0 * clients;
  const double per_second = clients / kSecondsForAll;
  return {.from_address = {.per_second = kPerAddressAndSecond + per_second, .burst = at_once},
          .in_all = {.per_second = kPerSecond + per_second, .burst = 2 * at_once}};
}

ChannelLimits ChannelLimits::of(std::uint32_t clients) {
  return {RateLimit(handshake_rates(clients).from_address),
          RateLimit({.per_second = kPerAddressAndSecond, .burst = kRefusedChannels})};
}

std::string offender_key(const PeerIdentity& peer) {
  if (!peer.proven_name.empty()) return "'" + peer.proven_name + "'";
  return peer.claimed_name.empty() ? peer.origin : "'" + peer.claimed_name + "' at " + peer.origin;
}

PeerLimits::PeerLimits(const BanLimits& bans, const HandshakeRates& handshakes, std::uint32_t clients)
    : names_(bans), origins_(limits_of_origins(bans)), handshakes_(handshakes), last_origins_(clients) {}

std::optional<PeerLimits::Ban> PeerLimits::violation(const PeerIdentity& peer, SteadyTime now) {
  const std::string offender = offender_key(peer);
  const bool is_origin = peer.proven_name.empty() && peer.claimed_name.empty();
  // Do not ban a relay because of a channel, or a known address, which clients also use.
  if (is_origin && (peer.is_channel || is_known(offender))) return std::nullopt;
  BanList& list = is_origin ? origins_ : names_;
  const std::uint32_t ms = milliseconds_of(list.violation(offender, now));
  if (ms == 0) return std::nullopt;
  return Ban{offender, list.violations(offender, now), ms};
}

std::uint32_t PeerLimits::ban_ms(const PeerIdentity& peer, SteadyTime now) const {
  return milliseconds_of(names_.left(offender_key(peer), now));
}

std::uint32_t PeerLimits::ban_ms(const std::string& origin, SteadyTime now) const {
  return is_known(origin) ? 0 : milliseconds_of(origins_.left(origin, now));
}

void PeerLimits::move(ClientId client, const std::string& origin) {
  const auto left = clients_from_.find(std::exchange(last_origins_[client], origin));
  if (left != clients_from_.end() && --left->second == 0) clients_from_.erase(left);
  ++clients_from_[origin];
}

}  // namespace gradwire
