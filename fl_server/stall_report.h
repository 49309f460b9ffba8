// Reports rounds that wait for clients which are lost or silent: a warning in the log, and the state that
// gradwire-server status shows.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "fl_server/net/server_metrics.h"
#include "rounds/round_loop.h"

namespace gradwire {

// Returns "round 20139 has waited 9 s for client 1 'n1' (lost at 03:56:22: ...); gives up in 21 s". `named`
// has some of the `count` clients.
std::string stall_text(std::uint64_t round, double waited_seconds, double left_seconds,
                       const std::vector<std::string>& named, std::size_t count);
inline constexpr std::size_t kNamedInStall = 3;  // clients in such a text

class StallReport {
 public:
  struct Peers {
    std::function<bool(ClientId)> connected;
    std::function<std::string(ClientId)> describe;  // as in "1 'n1' (lost at 03:56:22: ...)"
  };
  // `now` returns the seconds since 1970.
  StallReport(Peers peers, std::function<double()> now, ServerMetrics& metrics, Log log);

  // A wait is a stall if lost clients keep the round from its quorum, or after a deadline. Slow clients alone
  // are not one.
  void see(const StalledRound& wait);

 private:
  void clear();

  const Peers peers_;
  const std::function<double()> now_;
  ServerMetrics& metrics_;
  const Log log_;
};

}  // namespace gradwire
