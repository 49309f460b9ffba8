// Common code of tests of random draws: bounds on the frequency of equal draws. All draws are seeded, so the
// tests are deterministic.
#pragma once

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gradwire::testing {

inline constexpr double kSigmas = 6;

// Expects that the outcomes of a pair are equal about as often as independent outcomes with the same
// distribution.
template <class Outcome>
void expect_agreement_of_chance(const std::vector<std::pair<Outcome, Outcome>>& pairs,
                                const std::string& what) {
  std::map<Outcome, double> count;
  double agree = 0;
  for (const auto& [a, b] : pairs) {
    ++count[a], ++count[b];
    agree += a == b;
  }
  const double n = static_cast<double>(pairs.size());
  double chance = 0;
  for (const auto& [outcome, c] : count) chance += c / (2 * n) * (c / (2 * n));
  EXPECT_NEAR(agree / n, chance, kSigmas * std::sqrt(chance * (1 - chance) / n) + 2 / n) << what;
}

}  // namespace gradwire::testing
