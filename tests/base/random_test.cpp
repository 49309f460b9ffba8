#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <unordered_set>
#include <vector>

#include "base/rng_stream.h"

namespace gradwire {
namespace {

// The reference values of SplitMix64 from the state 0.
TEST(Mix64, MatchesSplitMix64) {
  const std::uint64_t published[] = {0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F,
                                     0xF88BB8A8724C81EC, 0x1B39896A51A8749B};
  std::uint64_t state = 0;
  for (const std::uint64_t value : published) {
    EXPECT_EQ(mix64(state), value);
    state += 0x9E3779B97F4A7C15;
  }
}

// Results on disk and peers of other versions depend on these numbers. A change of them changes the wire
// format.
TEST(StreamOf, FirstDrawsArePinned) {
  const struct {
    RngKey key;
    std::uint64_t draws[3];
  } cases[] = {
      {{}, {0xF9AC6E337C2F0F1E, 0xCFF0E06F1187F3DE, 0x092ADB0D571525D6}},
      {{.seed = 42, .client = 7, .round = 1000, .domain = RngDomain::kCompressor + 1},
       {0x5AB765B92CF2AB75, 0x50B9F58EFDA312D3, 0x6728924BD0535D89}},
      {{.seed = ~std::uint64_t{0},
        .client = kServerClient,
        .round = 0xFFFFFFFF,
        .domain = RngDomain::kMinibatch + 5},
       {0xE3D7CF99A9878926, 0x29E1FB5392C83295, 0x7EEF928700FC87CA}},
  };
  for (const auto& c : cases) {
    RngStream stream(c.key);
    for (const std::uint64_t draw : c.draws) EXPECT_EQ(stream.next(), draw);
  }
  const RngKey key = cases[1].key;
  RngStream uniforms(key), integers(key);
  EXPECT_EQ(uniforms.uniform(), 0.35436092158210875);
  EXPECT_EQ(uniforms.uniform(), 0.31533751240716534);
  EXPECT_EQ(integers.below(123), 43u);
  EXPECT_EQ(integers.below(123), 38u);
}

TEST(StreamOf, BlocksEqualSingleDraws) {
  RngStream one({7, 3, 5, RngDomain::kCoin}), blocks = one;
  for (const std::size_t size : {1u, 0u, 5u, 64u, 3u}) {
    std::vector<std::uint64_t> block(size);
    blocks.fill(block);
    for (const std::uint64_t draw : block) EXPECT_EQ(draw, one.next());
    EXPECT_EQ(blocks.next(), one.next()) << "after a block of " << size;
  }
}

TEST(StreamOf, DifferentKeysShareNoDraw) {
  std::unordered_set<std::uint64_t> seen;
  std::size_t drawn = 0;
  const std::uint32_t numbers[] = {0, 1, 2, 0xFFFF, 0x10000, kServerClient};
  const RngDomain domains[] = {RngDomain::kCoin,           RngDomain::kCohort,
                               RngDomain::kFault,          RngDomain::kCompressor,
                               RngDomain::kCompressor + 1, RngDomain::kMinibatch,
                               RngDomain::kMinibatch + 1,  RngDomain::kMinibatch + 0x1000};
  for (const std::uint64_t seed :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1} << 32}) {
    for (const std::uint32_t client : numbers) {
      for (const std::uint32_t round : numbers) {
        for (const RngDomain domain : domains) {
          RngStream stream({seed, client, round, domain});
          for (int i = 0; i < 50; ++i, ++drawn) seen.insert(stream.next());
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), drawn);
}

TEST(StreamOf, NeighbouringKeysAreUncorrelated) {
  double flipped = 0;
  const int pairs = 4000;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    const RngKey key{.seed = i, .client = i % 7, .round = i % 11};
    RngKey other = key;
    if (i % 4 == 0) ++other.seed;
    if (i % 4 == 1) ++other.client;
    if (i % 4 == 2) ++other.round;
    if (i % 4 == 3) other.domain = RngDomain::kCohort;
    flipped += std::popcount(RngStream(key).next() ^ RngStream(other).next());
  }
  EXPECT_NEAR(flipped / pairs, 32, 5 * 4 / std::sqrt(pairs));
}

TEST(StreamOf, UniformLiesInTheUnitIntervalAndFillsIt) {
  RngStream stream({.seed = 6});
  const int draws = 100'000, bins = 50;
  std::vector<double> hits(bins);
  for (int i = 0; i < draws; ++i) {
    const double u = stream.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    ++hits[static_cast<std::size_t>(u * bins)];
  }
  for (const double h : hits) EXPECT_NEAR(h, draws / bins, 5 * std::sqrt(draws / bins));
}

TEST(StreamOf, BelowReachesEveryNumberEquallyOften) {
  RngStream stream({.seed = 7});
  for (const std::uint32_t k : {1u, 2u, 3u, 10u, 97u}) {
    const double mean = 2000;
    std::vector<double> hits(k);
    for (int i = 0; i < mean * k; ++i) {
      const std::uint32_t j = stream.below(k);
      ASSERT_LT(j, k);
      ++hits[j];
    }
    for (const double h : hits) EXPECT_NEAR(h, mean, 5 * std::sqrt(mean));
  }
  for (int i = 0; i < 1000; ++i) ASSERT_LT(stream.below(0xFFFFFFFF), 0xFFFFFFFF);
}

}  // namespace
}  // namespace gradwire
