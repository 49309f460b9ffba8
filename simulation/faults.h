// Faults that a simulation injects. They are drawn from the seed: with the same seed, the k-th request to a
// client has the same faults in every run.
#pragma once

#include <cstdint>

#include "base/rng_stream.h"

namespace gradwire {

// Probabilities of the faults, per message or request.
struct Faults {
  double lost_replies = 0, lost_requests = 0, duplicates = 0;
  double crashes = 0;     // per request: the client loses its uncommitted proposal
  double state_loss = 0;  // per request: the client restarts without its state
  bool shuffle = false;   // replies arrive in a drawn order instead of client order
  bool any() const {
    return lost_replies > 0 || lost_requests > 0 || duplicates > 0 || crashes > 0 || state_loss > 0 ||
           shuffle;
  }
};

// The faults of one request.
struct InjectedFaults {
  bool crashes = false, state_loss = false, request_lost = false, reply_lost = false, repeated = false;
  double delay = 0;  // key that sorts the replies if the order of arrival is drawn
};

// Draws the faults of one request. `request` counts the client's earlier requests. With `draw_arrival`, the
// order of arrival is drawn as with shuffle.
inline InjectedFaults draw_faults(const Faults& faults, bool draw_arrival, std::uint64_t seed,
                                  std::uint32_t client, std::uint32_t request) {
  InjectedFaults injected;
  if (!faults.any() && !draw_arrival) return injected;
  RngStream stream({seed, client, request, RngDomain::kFault});
  injected.crashes = stream.uniform() < faults.crashes;
  injected.state_loss = stream.uniform() < faults.state_loss;
  injected.request_lost = stream.uniform() < faults.lost_requests;
  injected.reply_lost = stream.uniform() < faults.lost_replies;
  injected.repeated = stream.uniform() < faults.duplicates;
  if (faults.shuffle || draw_arrival) injected.delay = stream.uniform();
  return injected;
}

}  // namespace gradwire
