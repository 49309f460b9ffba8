// The few operations on d-vectors that methods are written in.
#pragma once

#include <cstddef>
#include <span>

#include "algorithms/support/context.h"
#include "algorithms/support/message.h"
#include "compressors/payload.h"

namespace gradwire {

// out += a v
template <class Real>
void axpy(Real a, View<Real> v, Out<Real> out) {
  for (std::size_t j = 0; j < out.size(); ++j) out[j] += a * v[j];
}

// out += sum_i weight(i) decode(parts[k] of client i): in client order, split by coordinate range. Methods
// sum replies by this function; the functions below only choose the weights.
template <class Real>
void add_by(const Setup<Real>& setup, std::span<const Uplink<Real>> uplinks, std::size_t k, auto&& weight,
            Vec<Real>& out) {
  setup.ranges(out.size(), [&](std::size_t lo, std::size_t hi) {
    for (const auto& up : uplinks) add_decoded<Real>(up.parts[k], weight(up.client), out, lo, hi);
  });
}

// out += scale * sum_i w_i decode(parts[k] of client i), w_i the client's weight in f.
template <class Real>
void add_weighted(const Setup<Real>& setup, std::span<const Uplink<Real>> uplinks, std::size_t k, Real scale,
                  Vec<Real>& out) {
  add_by<Real>(
      setup, uplinks, k, [&](ClientId i) { return scale * setup.weight(i); }, out);
}

// The same with weights w_i / total, or with equal weights 1 / (their number).
template <class Real>
void add_share_of_total(const Setup<Real>& setup, std::span<const Uplink<Real>> uplinks, std::size_t k,
                        Real scale, Real total, Vec<Real>& out) {
  if (uplinks.empty()) return;
  if (setup.weights.empty()) total = Real(uplinks.size());
  const auto weight = [&](ClientId i) {
    return scale * ((setup.weights.empty() ? Real(1) : setup.weight(i)) / total);
  };
  add_by<Real>(setup, uplinks, k, weight, out);
}

// The same with weights n w_i / |S|, S the clients that replied: for a uniform S of any size, the expectation
// is the sum of w_i decode(...) over all clients.
template <class Real>
void add_mean_of_replies(const Setup<Real>& setup, std::span<const Uplink<Real>> uplinks, std::size_t k,
                         Real scale, Vec<Real>& out) {
  Real all = 0;  // 1 up to rounding
  for (const double w_i : setup.weights) all += Real(w_i);
  add_share_of_total(setup, uplinks, k, scale, all * (Real(uplinks.size()) / Real(setup.n)), out);
}

// The same with weights w_i / sum_{j in S} w_j, the ratio of FedAvg: an average of what was sent, but biased
// when weights are unequal and |S| < n.
template <class Real>
void add_average_of_replies(const Setup<Real>& setup, std::span<const Uplink<Real>> uplinks, std::size_t k,
                            Real scale, Vec<Real>& out) {
  Real total = 0;
  if (!setup.weights.empty())
    for (const auto& up : uplinks) total += setup.weight(up.client);
  add_share_of_total(setup, uplinks, k, scale, total, out);
}

// Whether every part is a whole vector of length d: a peer may send anything.
template <class Real>
bool all_dense(const Parts<Real>& parts, std::size_t d) {
  for (std::size_t k = 0; k < parts.size(); ++k)
    if (parts[k].shape != Shape::kDense || parts[k].dim != d) return false;
  return true;
}
// Whether every part is something of length d.
template <class Real>
bool all_of_length(const Parts<Real>& parts, std::size_t d) {
  for (std::size_t k = 0; k < parts.size(); ++k)
    if (parts[k].dim != d) return false;
  return true;
}

// The reply of a client half to `down`.
template <class Real>
Uplink<Real> reply_of(const Downlink<Real>& down, double loss, const Parts<Real>& parts) {
  Uplink<Real> up;
  up.round = down.round;
  up.loss = loss;
  up.parts = parts;
  return up;
}
template <class Real>
Uplink<Real> reply_of(const Downlink<Real>& down, double loss, const Payload<Real>& part) {
  return reply_of(down, loss, Parts<Real>{part});
}

// The answer of a client that cannot reply: it says what the client lacks.
template <class Real>
Uplink<Real> cannot(Answer lacks, const Downlink<Real>& down) {
  Uplink<Real> up;
  up.round = down.round;
  up.answer = lacks;
  return up;
}

}  // namespace gradwire
