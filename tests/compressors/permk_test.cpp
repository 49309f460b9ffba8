// PermK: the coordinates of each client, and the AB inequality of the family.
#include "compressors/permk.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "compressors/compressor.h"
#include "tests/compressors/compressor_support.h"

namespace gradwire {
namespace {

using Indices = std::vector<std::uint32_t>;

Indices block(std::uint32_t client, std::uint32_t round, std::uint32_t n, std::uint32_t d, BlockMemo& memo) {
  const auto drawn = draw_block({.seed = 3, .client = client, .round = round}, n, d, memo);
  return {drawn.begin(), drawn.end()};
}

TEST(DrawBlock, SharesOutAllCoordinates) {
  BlockMemo memo;
  for (const std::uint32_t d : {1u, 2u, 7u, 12u, 100u}) {
    for (const std::uint32_t n : {1u, 2u, 3u, 5u, 7u, 12u, 30u, 250u}) {
      std::vector<std::uint32_t> owners(d);
      std::size_t least = d, most = 0;
      for (std::uint32_t i = 0; i < n; ++i) {
        const Indices mine = block(i, n, n, d, memo);
        ASSERT_TRUE(std::is_sorted(mine.begin(), mine.end()));
        least = std::min(least, mine.size());
        most = std::max(most, mine.size());
        for (const std::uint32_t j : mine) ++owners.at(j);
      }
      const auto [few, many] = std::minmax_element(owners.begin(), owners.end());
      EXPECT_EQ(*few, std::max(n / d, 1u)) << n << " clients, d = " << d;
      EXPECT_EQ(*many, n > d ? (n + d - 1) / d : 1) << n << " clients, d = " << d;
      EXPECT_EQ(least, std::max(d / n, 1u));
      EXPECT_EQ(most, n > d ? 1 : (d + n - 1) / n);
    }
  }
}

TEST(DrawBlock, KeepsTheDrawnBlocks) {
  BlockMemo kept;
  for (std::uint32_t t = 0; t < 60; ++t) {
    BlockMemo fresh;
    const std::uint32_t client = t % 4, round = t / 8, n = 4 + t / 30, d = 30;
    ASSERT_EQ(block(client, round, n, d, kept), block(client, round, n, d, fresh));
  }
  // The blocks of all n clients of a round are drawn once, and are adjacent in one array that is kept.
  const auto first = draw_block({.seed = 9, .client = 0}, 4, 30, kept);
  const auto second = draw_block({.seed = 9, .client = 1}, 4, 30, kept);
  EXPECT_EQ(first.data() + first.size(), second.data());
}

TEST(DrawBlock, GivesEachClientEachCoordinateAndTheExtraOnesEquallyOften) {
  const std::uint32_t n = 4, d = 10, rounds = 6000;
  std::vector<double> hits(n * d), extra(n);
  BlockMemo memo;
  for (std::uint32_t t = 0; t < rounds; ++t) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const Indices mine = block(i, t, n, d, memo);
      for (const std::uint32_t j : mine) ++hits[i * d + j];
      extra[i] += mine.size() == 3;
    }
  }
  for (const double h : hits) EXPECT_NEAR(h / rounds, 0.25, 5.5 * std::sqrt(0.25 * 0.75 / rounds));
  for (const double e : extra) EXPECT_NEAR(e / rounds, 0.5, 5.5 * std::sqrt(0.25 / rounds));
}

// Returns the mean of n compressed vectors.
Vec<double> mean_of(const Compressor& c, const std::vector<Vec<double>>& a, std::uint32_t round,
                    Scratch<double>& scratch) {
  Vec<double> mean(a[0].size());
  for (std::uint32_t i = 0; i < a.size(); ++i) {
    Vec<double> v = a[i];
    PayloadBuffer<double> buffer;
    add_decoded<double>(compress(c, v, {.seed = 8, .client = i, .round = round}, scratch, buffer),
                        1.0 / static_cast<double>(a.size()), mean);
  }
  return mean;
}

double norm_sq(const Vec<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return sum;
}

TEST(PermKFamily, ReproducesEqualVectorsIfAllCoordinatesHaveEquallyManyOwners) {
  Scratch<double> scratch;
  for (const auto& [n, d] : {std::pair{3u, 7u}, {7u, 7u}, {8u, 4u}, {1u, 5u}}) {
    const Vec<double> x = ordinary_inputs<double>(d)[0].x;
    const Vec<double> mean = mean_of(parse_compressor("permk", d, n), {n, x}, 1, scratch);
    for (std::size_t j = 0; j < d; ++j) EXPECT_NEAR(mean[j], x[j], 1e-15) << n << " " << d;
  }
}

// Compares the joint error over many draws with A mean ||a_i||^2 - B ||mean a_i||^2. This is an equality for
// PermK alone and for independent RandK, and otherwise an upper bound.
TEST(PermKFamily, JointErrorMatchesAAndB) {
  constexpr int kDraws = 4000;
  Scratch<double> scratch;
  RngStream stream({.seed = 4});
  for (const auto& [n, d] : {std::pair{3u, 7u}, {7u, 7u}, {5u, 4u}, {8u, 4u}, {2u, 9u}}) {
    std::vector<Vec<double>> a(n, Vec<double>(d));
    Vec<double> mean(d);
    double mean_sq = 0;
    for (auto& v : a) {
      for (std::size_t j = 0; j < d; ++j) {
        v[j] = 1 + stream.uniform() - stream.uniform();
        mean[j] += v[j] / n;
      }
      mean_sq += norm_sq(v) / n;
    }
    for (const std::string spec : {"permk", "randk:k=2", "natural(permk)", "induced(topk:k=1,permk)"}) {
      const Compressor c = parse_compressor(spec, d, n);
      const CompressorConstants q = constants(c, d, n);
      double sum = 0, sum_sq = 0;
      for (std::uint32_t t = 0; t < kDraws; ++t) {
        Vec<double> error = mean_of(c, a, t, scratch);
        for (std::size_t j = 0; j < d; ++j) error[j] -= mean[j];
        const double e = norm_sq(error);
        sum += e / kDraws;
        sum_sq += e * e / kDraws;
      }
      const double bound = q.A * mean_sq - q.B * norm_sq(mean);
      const double slack = 5.5 * std::sqrt(std::max(0.0, sum_sq - sum * sum) / kDraws) + 1e-12;
      EXPECT_LE(sum, bound + slack) << spec << ", n = " << n << ", d = " << d;
      if (spec == "permk" || spec == "randk:k=2") {
        EXPECT_NEAR(sum, bound, slack) << spec << ", n = " << n << ", d = " << d;
      }
    }
  }
}

TEST(PermKFamily, ConstantsMatchThePaper) {
  const auto of = [](std::uint32_t n, std::size_t d) {
    return constants(parse_compressor("permk", d, n), d, n);
  };
  EXPECT_EQ(of(4, 10).omega, 3);
  EXPECT_EQ(of(4, 10).A, 1);
  EXPECT_EQ(of(4, 10).B, 1);
  EXPECT_EQ(of(4, 10).zeta, 2.5);
  EXPECT_EQ(of(20, 10).omega, 9);
  EXPECT_DOUBLE_EQ(of(20, 10).A, 9.0 / 19);
  EXPECT_DOUBLE_EQ(of(20, 10).B, 9.0 / 19);
  const CompressorConstants independent = constants(parse_compressor("randk:k=2", 10), 10, 20);
  EXPECT_DOUBLE_EQ(independent.A, 4.0 / 20);
  EXPECT_EQ(independent.B, 0);
}

}  // namespace
}  // namespace gradwire
