// How large a reply may be: one client with huge numbers must not move the model far.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/core/message.h"
#include "algorithms/core/traits.h"

namespace gradwire {

// What becomes of a reply beyond the limit: it is as good as lost; it is halved until it is within; it is
// used all the same. Each time a line of the log says so.
enum class NormAction : std::uint8_t { kReject = 0, kClip = 1, kWarn = 2 };

struct NormLimit {
  double norm = 0;  // 0: there is none
  NormAction action = NormAction::kReject;
  bool is_set() const { return norm > 0; }
};

// Whether the server may take in less than a client sent: not where the client's own state follows what it
// sent, as the two would part.
constexpr bool may_clip(const AlgorithmTraits& traits) {
  return !has(traits.client_state, ClientState::kMirrored) &&
         !has(traits.client_state, ClientState::kPrivate);
}

// The Euclidean norm of all that the parts hold, of a product of matrices and of a sum of two payloads an
// upper bound: the product of the factors' norms, the sum of the norms. Summed in double in a fixed order.
// May be inf.
template <class Real>
double norm_of(std::span<const Payload<Real>> parts);

// A copy of a reply's parts, halved `times` times: exact but for numbers that leave the range of Real, and as
// many bits on the wire.
template <class Real>
class HalvedParts {
 public:
  HalvedParts(std::span<const Payload<Real>> parts, int times);
  HalvedParts(const HalvedParts&) = delete;  // the views would point into the other one
  HalvedParts& operator=(const HalvedParts&) = delete;
  std::span<const Payload<Real>> parts() const { return parts_; }

 private:
  void take(const Payload<Real>& from, int times, Payload<Real>& to);

  std::array<Vec<Real>, kMaxParts * kMaxLinks> values_;
  std::array<std::vector<std::uint32_t>, kMaxParts * kMaxLinks> indices_;
  std::array<RngKey, kMaxParts * kMaxLinks> keys_;
  std::array<Payload<Real>, kMaxParts> next_;
  std::size_t links_ = 0;
  std::vector<Payload<Real>> parts_;
};

// How often a finite norm must be halved to be at most `limit`. REQUIRES: limit > 0.
int halvings(double norm, double limit);

}  // namespace gradwire
