#include "rounds/reply_counts.h"

namespace gradwire {

template <class Real>
ReplyCounts counts_of(Replies<Real> replies, const AlgorithmTraits& traits) {
  if (replies.size() == 1) return counts_of(replies[0].parts, replies[0].grad_calls, traits);  // no memory
  ReplyCountSum sum;
  for (const auto& up : replies) sum.add(up.client, counts_of(up.parts, up.grad_calls, traits));
  return sum.sum();
}

template ReplyCounts counts_of(Replies<float>, const AlgorithmTraits&);
template ReplyCounts counts_of(Replies<double>, const AlgorithmTraits&);

}  // namespace gradwire
