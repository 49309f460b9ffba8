// The seeds of a simulation. GRADWIRE_SEEDS=100000 makes a long run. GRADWIRE_SEED=17 runs only that seed, as
// printed by a failing test.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace gradwire {

struct Seeds {
  std::uint64_t first = 1, last = 0;
  bool one = false;
};

inline Seeds seeds_asked(std::uint64_t otherwise) {
  const auto number_in = [](const char* name, std::uint64_t fallback) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
  };
  if (const std::uint64_t seed = number_in("GRADWIRE_SEED", 0); seed != 0) return {seed, seed, true};
  return {1, number_in("GRADWIRE_SEEDS", otherwise), false};
}

}  // namespace gradwire
