#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace gradwire {

// Computes the wait before the next attempt: exponential with full jitter, so that clients that lose the
// connection together do not reconnect together. It affects timing only, never results.
class BackOff {
 public:
  BackOff(std::chrono::milliseconds base, std::chrono::milliseconds cap, std::uint64_t seed)
      : base_(base), cap_(cap), random_(seed) {}

  void reset() { failures_ = 0; }

  // Returns `retry_after`, the shortest wait that the server allows, plus a random wait. The random wait is
  // uniform in [0, min(cap, base * 2^failures)].
  std::chrono::milliseconds next(std::chrono::milliseconds retry_after) {
    std::chrono::milliseconds limit = base_;
    for (std::uint32_t k = 0; k < failures_ && limit < cap_; ++k) limit *= 2;
    failures_ += 1;
    const auto jitter = random_() % (static_cast<std::uint64_t>(std::min(limit, cap_).count()) + 1);
    return retry_after + std::chrono::milliseconds(jitter);
  }

 private:
  std::chrono::milliseconds base_, cap_;
  std::uint32_t failures_ = 0;
  std::mt19937_64 random_;
};

}  // namespace gradwire
