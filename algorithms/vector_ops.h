// The few operations on d-vectors that methods are written in.
#pragma once

#include <cstddef>
#include <span>

#include "algorithms/context.h"
#include "algorithms/message.h"
#include "compressors/payload.h"

namespace gradwire {

// out += a v
template <class Real>
void axpy(Real a, View<Real> v, Out<Real> out) {
  for (std::size_t j = 0; j < out.size(); ++j) out[j] += a * v[j];
}

// out += scale * sum_i w_i decode(parts[k] of client i), w_i the client's weight in f. The only ways to sum
// replies are this and add_mean_of_replies: in client order, split by coordinate range.
template <class Real>
void add_weighted(const Setup<Real>& setup, std::span<const Uplink<Real>> uplinks, std::size_t k, Real scale,
                  Vec<Real>& out) {
  setup.ranges(out.size(), [&](std::size_t lo, std::size_t hi) {
    for (const auto& up : uplinks)
      add_decoded<Real>(up.parts[k], scale * setup.weight(up.client), out, lo, hi);
  });
}

// The same with weights w_i / sum_{those who replied} w_j: a mean over the cohort.
template <class Real>
void add_mean_of_replies(const Setup<Real>& setup, std::span<const Uplink<Real>> uplinks, std::size_t k,
                         Real scale, Vec<Real>& out) {
  if (uplinks.empty()) return;
  Real total = Real(uplinks.size());
  if (!setup.weights.empty()) {
    total = 0;
    for (const auto& up : uplinks) total += setup.weight(up.client);
  }
  setup.ranges(out.size(), [&](std::size_t lo, std::size_t hi) {
    for (const auto& up : uplinks) {
      const Real w = setup.weights.empty() ? Real(1) : setup.weight(up.client);
      add_decoded<Real>(up.parts[k], scale * (w / total), out, lo, hi);
    }
  });
}

// The reply of a client half to `down`.
template <class Real>
Uplink<Real> reply_of(const Downlink<Real>& down, double loss, const Payload<Real>& part) {
  Uplink<Real> up;
  up.round = down.round;
  up.loss = loss;
  up.parts = {part};
  return up;
}

// "I cannot answer": what is lacking.
template <class Real>
Uplink<Real> cannot(Answer lacks, const Downlink<Real>& down) {
  Uplink<Real> up;
  up.round = down.round;
  up.answer = lacks;
  return up;
}

}  // namespace gradwire
