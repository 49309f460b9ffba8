#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace gradwire {

// Returns and prints a seed that differs in each run, for example for the times at which a test kills a
// process. GRADWIRE_TEST_SEED=17 sets it.
inline std::uint32_t test_seed() {
  const char* const text = std::getenv("GRADWIRE_TEST_SEED");
  const std::uint32_t seed = text != nullptr ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10))
                                             : std::uint32_t{std::random_device{}()};
  std::cout << "draws with GRADWIRE_TEST_SEED=" << seed << std::endl;
  return seed;
}

}  // namespace gradwire
