// The few operations on d-vectors that methods are written in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "algorithms/support/context.h"
#include "algorithms/support/message.h"
#include "algorithms/support/tree_sum.h"
#include "compressors/payload.h"

namespace gradwire {

// out += a v
template <class Real>
void axpy(Real a, View<Real> v, Out<Real> out) {
  for (std::size_t j = 0; j < out.size(); ++j) out[j] += a * v[j];
}

// Coordinates that are added along the tree at a time: its vectors stay in the cache.
inline constexpr std::size_t kTreeReals = 8192;

// out += scale * sum_i weight(i) decode(parts[k] of client i), split by coordinate range. Dense summands are
// added along a tree (tree_sum.h), and their sum to `out`; then the others in the order of clients. Methods
// sum replies by this function; the functions below only choose the weights.
template <class Real>
void add_scaled_by(const Setup<Real>& setup, Replies<Real> uplinks, std::size_t k, Real scale, auto&& weight,
                   Vec<Real>& out) {
  std::size_t dense = 0, others = 0;
  for (const auto& up : uplinks)
    for (const Payload<Real>* p = &up.parts[k]; p != nullptr; p = p->next)
      if (p->shape != Shape::kNothing) ++(p->shape == Shape::kDense ? dense : others);
  const auto each = [&](bool of_dense, const auto& add) {
    for (const auto& up : uplinks)
      for (const Payload<Real>* p = &up.parts[k]; p != nullptr; p = p->next)
        if ((p->shape == Shape::kDense) == of_dense) add(up.client, *p);
  };
  setup.ranges(out.size(), [&](std::size_t lo, std::size_t hi) {
    if (dense == 1) {
      each(true,
           [&](ClientId i, const Payload<Real>& p) { add_link<Real>(p, scale * weight(i), out, lo, hi); });
    } else if (dense > 1) {
      TreeSum<Real> tree;
      std::vector<typename TreeSum<Real>::Term> terms;  // of one leaf
      for (std::size_t at = lo; at < hi; at += kTreeReals) {
        const std::size_t end = std::min(hi, at + kTreeReals);
        tree.begin(end - at);
        std::uint32_t leaf = 0;
        const auto add_leaf = [&] {
          if (!terms.empty()) tree.add_leaf(leaf, terms);
          terms.clear();
        };
        each(true, [&](ClientId i, const Payload<Real>& p) {
          if (leaf_of(i) != leaf) add_leaf();
          leaf = leaf_of(i);
          terms.push_back({weight(i), p.values.data() + at});
        });
        add_leaf();
        axpy<Real>(scale, tree.sum(), std::span(out).subspan(at, end - at));
      }
    }
    if (others > 0)
      each(false,
           [&](ClientId i, const Payload<Real>& p) { add_link<Real>(p, scale * weight(i), out, lo, hi); });
  });
}

template <class Real>
void add_by(const Setup<Real>& setup, Replies<Real> uplinks, std::size_t k, auto&& weight, Vec<Real>& out) {
  add_scaled_by<Real>(setup, uplinks, k, Real(1), weight, out);
}

// The same weight for all: the sum is scaled once.
template <class Real>
void add_equally(const Setup<Real>& setup, Replies<Real> uplinks, std::size_t k, Real scale, Vec<Real>& out) {
  add_scaled_by<Real>(
      setup, uplinks, k, scale, [](ClientId) { return Real(1); }, out);
}

// out += scale * sum_i w_i decode(parts[k] of client i), w_i the client's weight in f.
template <class Real>
void add_weighted(const Setup<Real>& setup, Replies<Real> uplinks, std::size_t k, Real scale,
                  Vec<Real>& out) {
  if (setup.weights.empty()) return add_equally(setup, uplinks, k, scale * setup.weight(0), out);
  add_by<Real>(
      setup, uplinks, k, [&](ClientId i) { return scale * setup.weight(i); }, out);
}

// The same with weights w_i / total, or with equal weights 1 / (their number).
template <class Real>
void add_share_of_total(const Setup<Real>& setup, Replies<Real> uplinks, std::size_t k, Real scale,
                        Real total, Vec<Real>& out) {
  if (uplinks.empty()) return;
  if (setup.weights.empty())
    return add_equally(setup, uplinks, k, scale * (Real(1) / Real(uplinks.size())), out);
  add_by<Real>(
      setup, uplinks, k, [&](ClientId i) { return scale * (setup.weight(i) / total); }, out);
}

// The same with weights n w_i / |S|, S the clients that replied: for a uniform S of any size, the expectation
// is the sum of w_i decode(...) over all clients.
template <class Real>
void add_mean_of_replies(const Setup<Real>& setup, Replies<Real> uplinks, std::size_t k, Real scale,
                         Vec<Real>& out) {
  Real all = 0;  // 1 up to rounding
  for (const double w_i : setup.weights) all += Real(w_i);
  add_share_of_total(setup, uplinks, k, scale, all * (Real(uplinks.size()) / Real(setup.n)), out);
}

// The same with weights w_i / sum_{j in S} w_j, the ratio of FedAvg: an average of what was sent, but biased
// when weights are unequal and |S| < n.
template <class Real>
void add_average_of_replies(const Setup<Real>& setup, Replies<Real> uplinks, std::size_t k, Real scale,
                            Vec<Real>& out) {
  Real total = 0;
  if (!setup.weights.empty())
    for (const auto& up : uplinks) total += setup.weight(up.client);
  add_share_of_total(setup, uplinks, k, scale, total, out);
}

// Whether every part is a whole vector of length d: a peer may send anything.
bool all_dense(const auto& parts, std::size_t d) {
  for (const auto& part : parts)
    if (part.shape != Shape::kDense || part.dim != d) return false;
  return true;
}
// Whether every part is something of length d.
bool all_of_length(const auto& parts, std::size_t d) {
  for (const auto& part : parts)
    if (part.dim != d) return false;
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
