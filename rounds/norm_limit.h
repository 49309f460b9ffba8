// The limit on the norm of a reply, so that one client with huge numbers cannot move the model far.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/core/message.h"
#include "algorithms/core/traits.h"
#include "compressors/payload_copy.h"

namespace gradwire {

// The action on a reply beyond the limit. kReject treats it as lost, kHalve halves it until it is within the
// limit, and kWarn uses it unchanged. Each action writes a line to the log.
enum class NormAction : std::uint8_t { kReject = 0, kHalve = 1, kWarn = 2 };

struct NormLimit {
  double norm = 0;  // 0 means no limit
  NormAction action = NormAction::kReject;
  bool is_set() const { return norm > 0; }
};

// Returns whether replies may be scaled down. False if the client's state depends on the exact reply that it
// sent.
constexpr bool may_halve(const AlgorithmTraits& traits) {
  return !has(traits.client_state, ClientState::kMirrored) &&
         !has(traits.client_state, ClientState::kPrivate);
}

// Returns the Euclidean norm of the decoded parts, summed in double in a fixed order. The norm may be inf. It
// is an upper bound for products of matrices (product of the factors' norms) and for chained payloads (sum of
// the norms).
template <class Real>
double norm_of(std::span<const Payload<Real>> parts);

// A copy of a reply's parts, halved `times` times. Halving is exact unless a number leaves the range of Real.
// The copy takes the same number of bits on the wire.
template <class Real>
class HalvedParts {
 public:
  HalvedParts(std::span<const Payload<Real>> parts, int times);
  HalvedParts(const HalvedParts&) = delete;  // the views would point into the other object
  HalvedParts& operator=(const HalvedParts&) = delete;
  std::span<const Payload<Real>> parts() const { return parts_; }

 private:
  Arena arena_;  // holds what the parts view
  std::vector<Payload<Real>> parts_;
};

// Returns how many halvings bring a finite norm to at most `limit`. REQUIRES: limit > 0.
int halvings(double norm, double limit);

}  // namespace gradwire
