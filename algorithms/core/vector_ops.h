// The operations on d-vectors that algorithms use.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "algorithms/core/context.h"
#include "algorithms/core/many_replies.h"
#include "algorithms/core/message.h"
#include "algorithms/core/tree_sum.h"
#include "compressors/payload.h"

namespace gradwire {

// Computes out += a v.
template <class Real>
void axpy(Real a, View<Real> v, Out<Real> out) {
  for (std::size_t j = 0; j < out.size(); ++j) out[j] += a * v[j];
}

// The number of coordinates that are added along the tree at a time, so that its vectors stay in the cache.
inline constexpr std::size_t kTreeReals = 8192;

// Returns the replies of the clients in the range. REQUIRES: clients ascend.
template <class Real>
Replies<Real> of_clients(Replies<Real> replies, ClientRange range) {
  const auto at = [&](ClientId client) {
    return std::ranges::lower_bound(replies, client, {},
                                    [](const UplinkView<Real>& up) { return up.client; });
  };
  return {at(range.first), at(range.end)};
}

// Computes out += scale * sum_i weight(i) decode(parts first, ..., last(reply) - 1 of client i).
//
// Splits the work by coordinate ranges. Adds dense summands along a tree (tree_sum.h) and their sum to `out`,
// then the other summands in the order of clients. Algorithms sum replies only through this function, or
// through those below, which choose parts and weights for it.
template <class Real>
void add_parts_by(const RunContext<Real>& run_context, Replies<Real> uplinks, std::size_t first, auto&& last,
                  Real scale, auto&& weight, Vec<Real>& out) {
  const Replies<Real> mine = of_clients(uplinks, run_context.mine());
  const auto each_of = [&](std::size_t begin, std::size_t end, const auto& use) {
    for (const auto& up : mine.subspan(begin, end - begin))
      for (std::size_t k = first; k < last(up); ++k)
        for (const Payload<Real>* p = &up.parts[k]; p != nullptr; p = p->next)
          if (p->shape != Shape::kNothing) use(up.client, *p);
  };
  const auto each = [&](const auto& use) { each_of(0, mine.size(), use); };
  if (run_context.communicator != nullptr) {
    std::vector<typename Communicator<Real>::Summand> summands;
    each([&](ClientId i, const Payload<Real>& p) { summands.push_back({i, weight(i), &p}); });
    return run_context.communicator->add(summands, scale, run_context.ranges, out);
  }
  if (run_context.items && mine.size() >= kManyReplies && !out.empty())
    return ManyReplies(run_context, mine.size(), each_of, scale, weight).add_to(out);
  std::size_t others = 0;
  std::vector<typename TreeSum<Real>::Term> dense;
  each([&](ClientId i, const Payload<Real>& p) {
    if (p.shape != Shape::kDense) return void(++others);
    dense.push_back({i, weight(i), p.values.data()});
  });
  const auto add_links = [&](bool of_dense, std::size_t lo, std::size_t hi) {
    each([&](ClientId i, const Payload<Real>& p) {
      if ((p.shape == Shape::kDense) == of_dense) add_link<Real>(p, scale * weight(i), out, lo, hi);
    });
  };
  run_context.ranges(out.size(), [&](std::size_t lo, std::size_t hi) {
    if (dense.size() == 1) {
      add_links(true, lo, hi);
    } else if (!dense.empty()) {
      TreeSum<Real> tree;
      std::vector<typename TreeSum<Real>::Term> terms(dense);
      for (std::size_t at = lo; at < hi; at += kTreeReals) {
        const std::size_t end = std::min(hi, at + kTreeReals);
        for (std::size_t k = 0; k < terms.size(); ++k) terms[k].v = dense[k].v + at;
        tree.begin(end - at);
        tree.add_all(terms);
        axpy<Real>(scale, tree.sum(), std::span(out).subspan(at, end - at));
      }
    }
    if (others > 0) add_links(false, lo, hi);
  });
}

// Computes out += scale * sum_i weight(i) decode(parts[k] of client i).
template <class Real>
void add_scaled_by(const RunContext<Real>& run_context, Replies<Real> uplinks, std::size_t k, Real scale,
                   auto&& weight, Vec<Real>& out) {
  add_parts_by<Real>(
      run_context, uplinks, k, [k](const auto&) { return k + 1; }, scale, weight, out);
}

template <class Real>
void add_by(const RunContext<Real>& run_context, Replies<Real> uplinks, std::size_t k, auto&& weight,
            Vec<Real>& out) {
  add_scaled_by<Real>(run_context, uplinks, k, Real(1), weight, out);
}

// Returns value(reply) for each reply, in the order of the replies.
template <class Real>
std::vector<double> values_of(const RunContext<Real>& run_context, Replies<Real> uplinks, auto&& value) {
  std::vector<double> values;
  for (const auto& up : of_clients(uplinks, run_context.mine())) values.push_back(value(up));
  return run_context.communicator == nullptr ? values : run_context.communicator->gather(values);
}

// Adds part k of each reply with the same weight, and scales the sum once.
template <class Real>
void add_equally(const RunContext<Real>& run_context, Replies<Real> uplinks, std::size_t k, Real scale,
                 Vec<Real>& out) {
  add_scaled_by<Real>(
      run_context, uplinks, k, scale, [](ClientId) { return Real(1); }, out);
}

// Computes out += scale * sum_i w_i decode(parts[k] of client i), where w_i is the client's weight in f.
template <class Real>
void add_weighted(const RunContext<Real>& run_context, Replies<Real> uplinks, std::size_t k, Real scale,
                  Vec<Real>& out) {
  if (run_context.weights.empty())
    return add_equally(run_context, uplinks, k, scale * run_context.weight(0), out);
  add_by<Real>(
      run_context, uplinks, k, [&](ClientId i) { return scale * run_context.weight(i); }, out);
}

// Adds with weights w_i / total, or 1 / (number of replies) if weights are equal.
template <class Real>
void add_share_of_total(const RunContext<Real>& run_context, Replies<Real> uplinks, std::size_t k, Real scale,
                        Real total, Vec<Real>& out) {
  if (uplinks.empty()) return;
  if (run_context.weights.empty())
    return add_equally(run_context, uplinks, k, scale * (Real(1) / Real(uplinks.size())), out);
  add_by<Real>(
      run_context, uplinks, k, [&](ClientId i) { return scale * (run_context.weight(i) / total); }, out);
}

// Adds with weights n w_i / |S|, where S are the clients that replied. For a uniform S of any size, the
// expectation is the sum of w_i decode(...) over all clients.
template <class Real>
void add_mean_of_replies(const RunContext<Real>& run_context, Replies<Real> uplinks, std::size_t k,
                         Real scale, Vec<Real>& out) {
  Real all = 0;  // 1 up to rounding
  for (const double w_i : run_context.weights) all += Real(w_i);
  add_share_of_total(run_context, uplinks, k, scale, all * (Real(uplinks.size()) / Real(run_context.n)), out);
}

// Adds with weights w_i / sum_{j in S} w_j, the ratio of FedAvg. This average is biased if weights are
// unequal and |S| < n.
template <class Real>
void add_average_of_replies(const RunContext<Real>& run_context, Replies<Real> uplinks, std::size_t k,
                            Real scale, Vec<Real>& out) {
  Real total = 0;
  if (!run_context.weights.empty())
    for (const auto& up : uplinks) total += run_context.weight(up.client);
  add_share_of_total(run_context, uplinks, k, scale, total, out);
}

// Returns whether every part is a dense vector of length d. A peer may send anything.
bool all_dense(const auto& parts, std::size_t d) {
  for (const auto& part : parts)
    if (part.shape != Shape::kDense || part.dim != d) return false;
  return true;
}
// Returns whether every part has length d.
bool all_of_length(const auto& parts, std::size_t d) {
  for (const auto& part : parts)
    if (part.dim != d) return false;
  return true;
}

// Returns the reply of a client algorithm to `down`.
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

// Returns the reply of a client that cannot compute one; `lacks` says why.
template <class Real>
Uplink<Real> cannot(ReplyStatus lacks, const Downlink<Real>& down) {
  Uplink<Real> up;
  up.round = down.round;
  up.status = lacks;
  return up;
}

}  // namespace gradwire
