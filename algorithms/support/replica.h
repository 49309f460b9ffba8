// A vector that clients hold as a function of the broadcasts. The server sends it whole once, then as
// compressed changes.
#pragma once

#include <cstdint>

#include "algorithms/core/message.h"
#include "algorithms/core/vector_ops.h"
#include "compressors/compressor.h"

namespace gradwire {

template <class Real>
struct Replica {
  Vec<Real> value;
  std::uint32_t round = 0;  // round of `value`

  static void fields(auto& self, auto&& visit) {
    visit(self.value);
    visit(self.round);
  }

  // Applies a broadcast: round 0 sends the whole value, each later round a change. Returns false if this
  // client missed a change. A repeated broadcast changes nothing.
  bool follow(const Downlink<Real>& down, std::size_t part = 0) {
    const Payload<Real>& p = down.parts[part];
    if (!value.empty() && round == down.round) return true;
    if (down.round == 0) {
      value.assign(p.dim, Real(0));
    } else if (value.empty() || round + 1 != down.round) {
      return false;
    }
    add_decoded<Real>(p, Real(1), value);
    round = down.round;
    return true;
  }
  // Takes the whole value of round `resync.round`.
  void adopt(const Downlink<Real>& resync, std::size_t part = 0) {
    value.clear();
    if (resync.parts.size() <= part) return;
    value.assign(resync.parts[part].dim, Real(0));
    add_decoded<Real>(resync.parts[part], Real(1), value);
    round = resync.round;
  }
};

// Returns the key of the random stream for a server's compressed broadcast.
inline RngKey downlink_key(std::uint64_t seed, std::uint32_t t, std::uint32_t part = 0) {
  return {seed, kServerClient, t, RngDomain::kCompressor + part};
}

}  // namespace gradwire
