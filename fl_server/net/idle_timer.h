#pragma once

#include <algorithm>

#include "fl_server/net/socket_layer.h"

namespace gradwire {

// The time for which this process has waited for a peer.
class IdleTimer {
 public:
  void restart(SteadyTime now) {
    seen_ = now;
    waited_ = {};
  }
  // Returns true if the wait has exceeded the limit; must be called periodically. A pause of this process, as
  // in a long round, counts as at most a third of the limit. So the process reads what arrived meanwhile
  // before it disconnects a peer. It still disconnects a silent peer, however long the rounds are.
  bool is_over(SteadyTime now, SteadyTime::duration limit) {
    waited_ += std::min(now - seen_, limit / 3);
    seen_ = now;
    return waited_ > limit;
  }

 private:
  SteadyTime seen_;
  SteadyTime::duration waited_{};
};

}  // namespace gradwire
