// Random numbers that depend on nothing but their key, so every restart, thread and machine draws the same.
#pragma once

#include <cstdint>

namespace gradwire {

// The generator SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t state) : state_(state) {}

  // Returns the hash of a number that the generator is based on.
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z += kStep;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  std::uint64_t next() {
    const std::uint64_t out = mix(state_);
    state_ += kStep;
    return out;
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // in [0, 1)
  // Returns a uniform number in [0, k), k > 0. Its bias is below k / 2^64.
  std::uint32_t below(std::uint32_t k) {
    const std::uint64_t x = next();
#ifdef __SIZEOF_INT128__  // one multiplication
    return static_cast<std::uint32_t>((static_cast<unsigned __int128>(x) * k) >> 64);
#else
    return static_cast<std::uint32_t>(((((x & 0xFFFFFFFFu) * k) >> 32) + (x >> 32) * k) >> 32);
#endif
  }

 protected:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15u;
  std::uint64_t state_;
};

}  // namespace gradwire
