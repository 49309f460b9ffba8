// The counts that replies add to the totals of a run, in addition to their bytes.
#pragma once

#include <cstdint>
#include <span>

#include "algorithms/core/message.h"
#include "algorithms/core/traits.h"
#include "algorithms/core/tree_sum.h"

namespace gradwire {

struct ReplyCounts {
  double bits_up = 0, bits_up_paper = 0;  // as in RunTotals
  std::uint64_t grad_calls = 0;

  void add(const ReplyCounts& other) {
    bits_up += other.bits_up;
    bits_up_paper += other.bits_up_paper;
    grad_calls += other.grad_calls;
  }
};

template <class Real>
ReplyCounts counts_of(std::span<const Payload<Real>> parts, std::uint64_t grad_calls,
                      const AlgorithmTraits& traits) {
  ReplyCounts counts;
  for (const Payload<Real>& part : parts) {
    counts.bits_up += wire_bits(part);
    counts.bits_up_paper += paper_bits(part);
  }
  counts.bits_up += traits.flag_bits_up;
  counts.bits_up_paper += traits.flag_bits_up;
  counts.grad_calls = grad_calls;
  return counts;
}

// Adds up counts along the tree over the clients. The numbers of bits may be fractions, and the sum must be
// the same for any number of threads and processes.
class ReplyCountSum {
 public:
  ReplyCountSum(ClientRange mine, std::uint32_t clients) { bits_.begin_part(2, mine, clients); }
  ReplyCountSum() { bits_.begin(2); }
  // Adds the counts of one client, or those of a whole leaf under the leaf's first client. REQUIRES:
  // ascending clients.
  void add(ClientId client, const ReplyCounts& counts) {
    const double bits[] = {counts.bits_up, counts.bits_up_paper};
    bits_.add(client, 1, bits);
    grad_calls_ += counts.grad_calls;
  }
  TreeSum<double>& bits() { return bits_; }  // 2 entries: bits_up, bits_up_paper
  std::uint64_t grad_calls() const { return grad_calls_; }
  // REQUIRES: all clients were added.
  ReplyCounts sum() {
    const View<double> bits = bits_.sum();
    return bits.empty() ? ReplyCounts{} : ReplyCounts{bits[0], bits[1], grad_calls_};
  }

 private:
  TreeSum<double> bits_;
  std::uint64_t grad_calls_ = 0;
};

// Returns the counts of all replies. REQUIRES: ascending clients.
template <class Real>
ReplyCounts counts_of(Replies<Real> replies, const AlgorithmTraits& traits);

}  // namespace gradwire
