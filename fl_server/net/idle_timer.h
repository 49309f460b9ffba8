#pragma once

#include <algorithm>

#include "fl_server/net/socket_layer.h"

namespace gradwire {

// Measures how long this process has waited for a peer.
class IdleTimer {
 public:
  void restart(SteadyTime now) {
    seen_ = now;
    waited_ = {};
  }
  // To be called from time to time. A pause of this process, as in a long round, counts as a third of the
  // limit at most: so the process reads what came meanwhile before it gives up a peer, and yet gives up a
  // silent peer however long the rounds are.
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
