// Keyed RNG streams. Every number depends only on (seed, client, round, purpose) and its position in the
// stream. So both ends of a link, and every restart, draw the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gradwire/random.h"

namespace gradwire {

// The purposes of draws. Different purposes never share a stream. The last two take an index: kCompressor +
// part, kMinibatch + local step.
enum class RngDomain : std::uint32_t {
  kCoin = 1,
  kCohort = 2,
  kFault = 3,
  kStart = 4,            // x0 = "normal"
  kShiftCohort = 5,      // a second sample of clients
  kSpareCohort = 6,      // clients asked in addition to the sample
  kSamples = 7,          // which samples a client holds
  kGradientCode = 8,     // the coefficients of coded gradients
  kEvaluation = 9,       // clients that are evaluated
  kPaths = 10,           // paths through a network, for randomised backpropagation
  kTraining = 11,        // the seed of local training by an oracle
  kCompressor = 0x1000,  // + number of the message part
  kMinibatch = 0x10000,  // + local step
};

constexpr RngDomain operator+(RngDomain domain, std::uint32_t index) {
  return static_cast<RngDomain>(static_cast<std::uint32_t>(domain) + index);
}

inline constexpr std::uint32_t kServerClient = 0xFFFFFFFF;  // the `client` of draws that all clients share

struct RngKey {
  std::uint64_t seed = 0;
  std::uint32_t client = 0;
  std::uint32_t round = 0;
  RngDomain domain = RngDomain::kCoin;
  bool operator==(const RngKey&) const = default;
};

constexpr std::uint64_t mix64(std::uint64_t z) { return RandomStream::mix(z); }

class RngStream : public RandomStream {
 public:
  explicit RngStream(const RngKey& key) : RandomStream(state_of(key)) {}

  static std::uint64_t state_of(const RngKey& key) {
    return mix64(mix64(mix64(mix64(key.seed) ^ static_cast<std::uint64_t>(key.domain)) + key.client) +
                 key.round);
  }
  // Writes the next out.size() results of next(). They do not depend on each other, so the loop is
  // vectorized.
  void fill(std::span<std::uint64_t> out) {
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = mix64(state_ + j * kStep);
    state_ += out.size() * kStep;
  }
};

}  // namespace gradwire
