#pragma once

#include <algorithm>

#include "fl_server/socket_layer.h"

namespace gradwire {

// How long a peer was waited for.
class Patience {
 public:
  void restart(SteadyTime now) {
    seen_ = now;
    waited_ = {};
  }
  // To be asked from time to time. A pause of this process, as in a long round, counts for a third of the
  // limit at most: what came meanwhile is read before anybody is judged, and no round is so long that nobody
  // ever is.
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
