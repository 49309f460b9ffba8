// RandK and RandSeqK: the entries that they send, their frequency and their values.
#include "compressors/randk.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include "compressors/compressor.h"

namespace gradwire {
namespace {

using Indices = std::vector<std::uint32_t>;

Indices subset(const RngKey& key, std::uint32_t k, std::uint32_t d) {
  Indices out = {7, 7, 7};  // the previous contents do not matter
  draw_subset(key, k, d, out);
  return out;
}

// Draws a subset by its definition: draws until k different indices have occurred. If k is above d / 2, draws
// d - k indices in this way and returns the others.
Indices subset_by_definition(const RngKey& key, std::uint32_t k, std::uint32_t d) {
  RngStream stream(key);
  const bool complement = k > d / 2;
  std::set<std::uint32_t> seen;
  while (seen.size() < (complement ? d - k : k)) seen.insert(stream.below(d));
  if (!complement) return {seen.begin(), seen.end()};
  Indices rest;
  for (std::uint32_t j = 0; j < d; ++j) {
    if (seen.count(j) == 0) rest.push_back(j);
  }
  return rest;
}

TEST(DrawSubset, MatchesTheDefinition) {
  for (const std::uint32_t d :
       {1u, 2u, 3u, 7u, 31u, 32u, 33u, 63u, 64u, 65u, 127u, 128u, 129u, 1000u, 20'000u}) {
    for (const std::uint32_t k : {0u, 1u, 2u, 4u, 5u, d / 3, d / 2, d / 2 + 1, d - 1, d}) {
      if (k > d) continue;
      for (std::uint32_t round = 0; round < 5; ++round) {
        const RngKey key{.seed = 12, .client = d, .round = round};
        ASSERT_EQ(subset(key, k, d), subset_by_definition(key, k, d)) << "k = " << k << ", d = " << d;
      }
    }
  }
}

TEST(DrawSubset, DrawsAgainIfTwoIndicesCoincide) {
  const std::uint32_t k = 48, d = 200'000;
  int repeated = 0;
  for (std::uint32_t round = 0; round < 3000; ++round) {
    const RngKey key{.seed = 13, .round = round};
    ASSERT_EQ(subset(key, k, d), subset_by_definition(key, k, d));
    RngStream stream(key);
    std::set<std::uint32_t> first;
    for (std::uint32_t i = 0; i < k; ++i) first.insert(stream.below(d));
    repeated += first.size() < k;
  }
  EXPECT_GT(repeated, 0);
}

TEST(DrawSubset, ReturnsAllIndicesForKEqualToD) {
  Indices everybody(200);
  std::iota(everybody.begin(), everybody.end(), 0u);
  EXPECT_EQ(subset({.seed = 3}, 200, 200), everybody);
}

TEST(DrawSubset, ThrowsLogicErrorForKAboveD) {
  Indices out;
  EXPECT_THROW(draw_subset({}, 4, 3, out), std::logic_error);
}

TEST(DrawSubset, DrawsEveryIndexEquallyOften) {
  const std::uint32_t draws = 6000;
  const std::pair<std::uint32_t, std::uint32_t> cases[] = {{1, 7},   {3, 7},   {5, 7},
                                                           {10, 65}, {60, 65}, {2, 8192}};
  for (const auto& [k, d] : cases) {
    std::vector<double> hits(d);
    for (std::uint32_t t = 0; t < draws; ++t) {
      for (const std::uint32_t j : subset({.seed = 31, .round = t}, k, d)) ++hits[j];
    }
    const double p = static_cast<double>(k) / d, mean = draws * p;
    double chi_sq = 0;  // about d - 1 on average, with a deviation of sqrt(2 (d - 1))
    for (const double h : hits) chi_sq += (h - mean) * (h - mean) / (mean * (1 - p)) * (d - 1.0) / d;
    EXPECT_NEAR(chi_sq, d - 1.0, 5 * std::sqrt(2.0 * (d - 1)) + 5) << "k = " << k << ", d = " << d;
  }
}

TEST(DrawSubset, DrawsEverySubsetEquallyOften) {
  const std::uint32_t draws = 20'000;
  for (const std::uint32_t k : {2u, 3u}) {  // 2: the drawn indices; 3: the others
    std::map<Indices, double> hits;
    for (std::uint32_t t = 0; t < draws; ++t) ++hits[subset({.seed = 32, .round = t}, k, 5)];
    ASSERT_EQ(hits.size(), 10u);
    for (const auto& [set, count] : hits) EXPECT_NEAR(count, draws * 0.1, 5 * std::sqrt(draws * 0.09));
  }
}

TEST(DrawSubset, DrawsEveryPairEquallyOften) {
  const std::uint32_t draws = 20'000, k = 4, d = 12;
  std::vector<double> hits(d * d);
  for (std::uint32_t t = 0; t < draws; ++t) {
    const Indices s = subset({.seed = 33, .client = t}, k, d);
    for (const std::uint32_t a : s) {
      for (const std::uint32_t b : s) hits[a * d + b] += a < b;
    }
  }
  const double p = k * (k - 1.0) / (d * (d - 1.0));
  for (std::uint32_t a = 0; a < d; ++a) {
    for (std::uint32_t b = a + 1; b < d; ++b)
      EXPECT_NEAR(hits[a * d + b], draws * p, 5 * std::sqrt(draws * p * (1 - p)));
  }
}

template <class C>
class RandomSupport : public ::testing::Test {};
using Compressors = ::testing::Types<RandK, RandSeqK>;
TYPED_TEST_SUITE(RandomSupport, Compressors);

TYPED_TEST(RandomSupport, ValuesAreEntriesTimesDOverK) {
  const std::uint32_t d = 20;
  Vec<double> x(d);
  std::iota(x.begin(), x.end(), 1.0);
  for (const bool scaled : {true, false}) {
    for (const std::uint32_t k : {1u, 7u, 15u, 20u}) {
      for (std::uint32_t round = 0; round < 30; ++round) {
        Vec<double> v = x, decoded(d);
        Scratch<double> scratch;
        PayloadBuffer<double> buffer;
        add_decoded<double>(TypeParam{{k}, scaled}(v, {.round = round}, scratch, buffer), 1, decoded);
        std::uint32_t kept = 0;
        for (std::uint32_t j = 0; j < d; ++j) {
          if (decoded[j] == 0) continue;
          ++kept;
          EXPECT_EQ(decoded[j], scaled ? x[j] * (static_cast<double>(d) / k) : x[j]);
        }
        EXPECT_EQ(kept, k);
      }
    }
  }
}

TYPED_TEST(RandomSupport, MeanSquaredErrorEqualsOmegaTimesTheNorm) {
  const std::uint32_t d = 24, draws = 20'000;
  Vec<double> x(d);
  for (std::uint32_t j = 0; j < d; ++j) x[j] = j % 5 - 1.7 + 0.1 * j;
  double norm_sq = 0;
  for (const double t : x) norm_sq += t * t;
  Scratch<double> scratch;
  PayloadBuffer<double> buffer;
  for (const bool scaled : {true, false}) {
    for (const std::uint32_t k : {1u, 6u, 23u, 24u}) {
      const TypeParam c{{k}, scaled};
      const CompressorConstants q = c.constants(d);
      EXPECT_EQ(q.unbiased, scaled || k == d);
      double sum = 0, sum_sq = 0;
      for (std::uint32_t round = 0; round < draws; ++round) {
        Vec<double> v = x, error = x;
        add_decoded<double>(c(v, {.seed = 1, .round = round}, scratch, buffer), -1, error);
        double error_sq = 0;
        for (const double t : error) error_sq += t * t / norm_sq;
        sum += error_sq;
        sum_sq += error_sq * error_sq;
      }
      const double mean = sum / draws,
                   deviation = std::sqrt(std::max(0.0, sum_sq / draws - mean * mean) / draws);
      EXPECT_NEAR(mean, scaled ? q.omega : 1 - q.alpha, 5 * deviation + 1e-12)
          << "k = " << k << " scaled " << scaled;
    }
  }
}

TEST(RandSeqK, SendsCyclicNeighboursFromAUniformStart) {
  const std::uint32_t d = 9, k = 4, draws = 9000;
  Vec<float> x(d);
  std::iota(x.begin(), x.end(), 1.0f);
  Scratch<float> scratch;
  PayloadBuffer<float> buffer;
  std::vector<double> starts(d);
  for (std::uint32_t round = 0; round < draws; ++round) {
    Vec<float> v = x;
    const auto& p = RandSeqK{{k}, false}(v, {.round = round}, scratch, buffer);
    ASSERT_EQ(p.shape, Shape::kRange);
    ++starts[p.first];
    for (std::uint32_t i = 0; i < k; ++i) ASSERT_EQ(p.values[i], x[(p.first + i) % d]);
  }
  for (const double count : starts) EXPECT_NEAR(count, draws / 9.0, 5 * std::sqrt(draws / 9.0 * 8 / 9));
}

}  // namespace
}  // namespace gradwire
