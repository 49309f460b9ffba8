// What replies add to the totals of a run, beside their bytes.
#pragma once

#include <cstdint>
#include <span>

#include "algorithms/support/facts.h"
#include "algorithms/support/message.h"
#include "algorithms/support/tree_sum.h"

namespace gradwire {

struct ReplyCounts {
  double bits_up = 0, bits_up_paper = 0;  // as in Totals
  std::uint64_t grad_calls = 0;

  void add(const ReplyCounts& other) {
    bits_up += other.bits_up;
    bits_up_paper += other.bits_up_paper;
    grad_calls += other.grad_calls;
  }
};

template <class Real>
ReplyCounts counts_of(std::span<const Payload<Real>> parts, std::uint64_t grad_calls, const Facts& facts) {
  ReplyCounts counts;
  for (const Payload<Real>& part : parts) {
    counts.bits_up += wire_bits(part);
    counts.bits_up_paper += paper_bits(part);
  }
  counts.bits_up += facts.flag_bits_up;
  counts.bits_up_paper += facts.flag_bits_up;
  counts.grad_calls = grad_calls;
  return counts;
}

// Of all replies (ascending clients): those of a leaf first, then the leaves in their order. Bits need not be
// whole numbers, so threads that share the leaves give the same sum.
template <class Real>
ReplyCounts counts_of(Replies<Real> replies, const Facts& facts) {
  ReplyCounts all, leaf;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (i > 0 && leaf_of(replies[i].client) != leaf_of(replies[i - 1].client)) {
      all.add(leaf);
      leaf = {};
    }
    leaf.add(counts_of(replies[i].parts, replies[i].grad_calls, facts));
  }
  all.add(leaf);
  return all;
}

}  // namespace gradwire
