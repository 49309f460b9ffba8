// Cohorts of independent clients with one common probability.
#include "algorithms/core/sampling.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace gradwire {
namespace {

std::vector<ClientId> tossed(std::uint32_t round, std::uint32_t n, double p) {
  std::vector<ClientId> out = {7};
  toss_cohort(1, round, n, {&p, 1}, out);
  return out;
}

TEST(TossCohort, SelectsClientsIndependentlyWithProbabilityP) {
  constexpr std::uint32_t kN = 12, kTosses = 20000;
  for (const double p : {0.03, 0.3, 0.5, 0.9}) {
    std::vector<double> alone(kN), with_next(kN);
    for (std::uint32_t t = 0; t < kTosses; ++t) {
      const std::vector<ClientId> out = tossed(t, kN, p);
      EXPECT_TRUE(std::is_sorted(out.begin(), out.end()));
      for (const ClientId i : out) {
        ASSERT_LT(i, kN);
        alone[i] += 1.0 / kTosses;
        if (std::binary_search(out.begin(), out.end(), i + 1)) with_next[i] += 1.0 / kTosses;
      }
    }
    const auto deviation = [](double q) { return 5 * std::sqrt(q * (1 - q) / kTosses); };
    for (std::uint32_t i = 0; i < kN; ++i) {
      EXPECT_NEAR(alone[i], p, deviation(p)) << p << " " << i;
      if (i + 1 < kN) {
        EXPECT_NEAR(with_next[i], p * p, deviation(p * p)) << p << " " << i;
      }
    }
  }
}

TEST(TossCohort, HasExpectedSizeForAMillionClients) {
  constexpr std::uint32_t kMillion = 1'000'000;
  const double size = static_cast<double>(tossed(3, kMillion, 0.001).size());
  EXPECT_NEAR(size, 1000, 5 * std::sqrt(1000.0));
  EXPECT_EQ(tossed(3, kMillion, 1).size(), kMillion);
}

TEST(TossCohort, MayBeEmptyForSmallestP) {
  for (const double p : {1e-12, 1e-17, 5e-324}) EXPECT_TRUE(tossed(3, 1'000'000, p).empty()) << p;
}

}  // namespace
}  // namespace gradwire
