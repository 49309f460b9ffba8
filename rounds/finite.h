// A check for replies, so that only finite numbers reach the server: one faulty client must not spoil the
// model.
#pragma once

#include <cmath>

#include "algorithms/core/message.h"
#include "compressors/norms.h"

namespace gradwire {

// Returns whether the loss and all values of the parts are finite. Checks each value, because a sum of finite
// numbers may overflow.
template <class Real>
bool is_finite(const Uplink<Real>& up) {
  if (!std::isfinite(up.loss)) return false;
  for (const Payload<Real>& part : up.parts)
    for (const Payload<Real>* p = &part; p != nullptr; p = p->next)
      if (!all_finite(p->values)) return false;
  return true;
}

}  // namespace gradwire
