// Limits on peers: bans, and the rates of handshakes and channels. Pure: the caller passes the time, no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/core/message.h"
#include "fl_server/sessions/ban_list.h"
#include "fl_server/sessions/rate_limit.h"
#include "fl_server/sessions/unauthenticated_peers.h"

namespace gradwire {

// Returns limits that do not delay clients, even if all of them connect at once from one address, and do so
// again later.
HandshakeRates handshake_rates(std::uint32_t clients);

// Limits on the rate at which a relay opens channels. Channels beyond the first limit are refused. A relay
// beyond the second limit is disconnected.
struct ChannelLimits {
  RateLimit permitted, refused;
  static ChannelLimits of(std::uint32_t clients);
};

// The names and the address under which violations of a peer count.
struct PeerIdentity {
  std::string proven_name;   // empty before authentication
  std::string claimed_name;  // may be false; may be empty
  std::string origin;        // origin of the socket: for a channel, of its relay
  bool is_channel = false;
};

// Returns the key under which violations count. It is the authenticated name, or else the claimed name with
// the address, or else the address. So a peer cannot ban another one by claiming its name.
std::string offender_key(const PeerIdentity& peer);

class PeerLimits {
 public:
  struct Ban {
    std::string offender;
    std::uint32_t violations = 0;
    std::uint32_t ms = 0;
  };

  PeerLimits(const BanLimits& bans, const HandshakeRates& handshakes, std::uint32_t clients);

  // Takes a token for a new handshake. Returns false if there are too many.
  bool take_handshake(const std::string& origin, SteadyTime now) {
    return handshakes_.take(origin, is_known(origin), now);
  }
  // Records a violation. Returns its ban, or nullopt if there is none.
  std::optional<Ban> violation(const PeerIdentity& peer, SteadyTime now);
  // Returns the remaining ban of a named peer in milliseconds, or 0.
  std::uint32_t ban_ms(const PeerIdentity& peer, SteadyTime now) const;
  // Returns the remaining ban of an origin in milliseconds, or 0. Known origins are not banned.
  std::uint32_t ban_ms(const std::string& origin, SteadyTime now) const;
  // Records the origin of a client. An origin is known while it is the last one of a client.
  void move(ClientId client, const std::string& origin);

 private:
  bool is_known(const std::string& origin) const { return clients_from_.contains(origin); }

  BanList names_;
  BanList origins_;
  HandshakeLimit handshakes_;
  std::vector<std::string> last_origins_;            // by client
  std::map<std::string, std::size_t> clients_from_;  // number of clients by last origin
};

}  // namespace gradwire
