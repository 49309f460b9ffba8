#include "compressors/topk.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "compressors/compressor.h"

namespace gradwire {
namespace {

using Indices = std::vector<std::uint32_t>;

// Selects the largest entries by the definition: a stable sort by descending absolute value.
template <class Real>
Indices largest_by_sorting(const Vec<Real>& v, std::uint32_t k) {
  Indices order(v.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return std::abs(v[a]) > std::abs(v[b]); });
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

template <class Real>
class TopKOf : public ::testing::Test {
 protected:
  void expect_as_sorted(const Vec<Real>& v, std::initializer_list<std::size_t> ks) {
    for (const std::size_t k : ks) {
      if (k < 1 || k > v.size()) continue;
      select_largest<Real>(v, static_cast<std::uint32_t>(k), scratch_, out_);
      ASSERT_EQ(out_, largest_by_sorting(v, static_cast<std::uint32_t>(k)))
          << "k = " << k << ", d = " << v.size();
    }
  }
  static Vec<Real> random(std::size_t d, std::uint64_t seed) {
    RngStream stream({.seed = seed});
    Vec<Real> v(d);
    for (Real& t : v) t = static_cast<Real>(stream.uniform() + stream.uniform() + stream.uniform() - 1.5);
    return v;
  }
  Scratch<Real> scratch_;  // shared by all checks, so an earlier call could affect the next
  Indices out_;
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(TopKOf, Reals);

TYPED_TEST(TopKOf, MatchesASortOnRandomVectors) {
  std::uint64_t seed = 1;
  for (const std::size_t d : {1, 2, 3, 7, 16, 64, 65, 123, 1000, 4096}) {
    for (int repeat = 0; repeat < 5; ++repeat)
      this->expect_as_sorted(this->random(d, ++seed), {1, 2, 3, 10, d / 10, d / 2, d - 1, d});
  }
}

TYPED_TEST(TopKOf, MatchesASortForEveryKOfASmallVectorWithTies) {
  RngStream stream({.seed = 9});
  for (std::size_t d = 1; d <= 24; ++d) {
    Vec<TypeParam> v(d);
    for (TypeParam& t : v)
      t = static_cast<TypeParam>(stream.below(3)) * (stream.below(2) == 0 ? TypeParam(1) : TypeParam(-1));
    for (std::size_t k = 1; k <= d; ++k) this->expect_as_sorted(v, {k});
  }
}

TYPED_TEST(TopKOf, PrefersSmallerIndicesOfEqualEntries) {
  const Vec<TypeParam> v = {1, -2, 2, 0, -2, 2};
  select_largest<TypeParam>(v, 2, this->scratch_, this->out_);
  EXPECT_EQ(this->out_, (Indices{1, 2}));
  select_largest<TypeParam>(v, 5, this->scratch_, this->out_);
  EXPECT_EQ(this->out_, (Indices{0, 1, 2, 4, 5}));
  const Vec<TypeParam> zeros = {TypeParam(0.0), TypeParam(-0.0), TypeParam(0.0)};
  select_largest<TypeParam>(zeros, 2, this->scratch_, this->out_);
  EXPECT_EQ(this->out_, (Indices{0, 1}));
}

TYPED_TEST(TopKOf, KeepsTheOrderOfExtremeMagnitudes) {
  using Limits = std::numeric_limits<TypeParam>;
  const Vec<TypeParam> v = {Limits::denorm_min(), -Limits::min(),        Limits::max(),  TypeParam(0),
                            -Limits::infinity(),  -Limits::denorm_min(), TypeParam(1),   TypeParam(-0.0),
                            Limits::infinity(),   -Limits::max(),        TypeParam(1e-9)};
  for (std::size_t k = 1; k <= v.size(); ++k) this->expect_as_sorted(v, {k});
}

// The vectors are so long that TopK first selects by a sample of the entries.
TYPED_TEST(TopKOf, MatchesASortOnLongVectors) {
  const std::size_t d = 50'000;
  this->expect_as_sorted(this->random(d, 3), {1, 2, 10, 500, d / 16, d / 16 + 1, d / 2, d});
  Vec<TypeParam> v = this->random(d, 4);
  for (TypeParam& t : v) t = std::round(t * 20);  // about thirty different magnitudes
  this->expect_as_sorted(v, {1, 10, 500, 3000, d / 3});
  for (TypeParam& t : v) t = std::exp(40 * t / 30);  // spread over many binades
  this->expect_as_sorted(v, {2, 500, 3000});
}

TYPED_TEST(TopKOf, MatchesASortOnVectorsThatMisleadTheSample) {
  const std::size_t d = 50'000;
  const Vec<TypeParam> constant(d, TypeParam(-2));
  this->expect_as_sorted(constant, {2, 500, 3000});
  Vec<TypeParam> spikes(d);  // fewer than k entries are nonzero
  for (std::size_t j = 0; j < 40; ++j) spikes[j * 997 % d] = static_cast<TypeParam>(j % 7);
  this->expect_as_sorted(spikes, {2, 30, 100, 3000});
  Vec<TypeParam> rising(d);
  std::iota(rising.begin(), rising.end(), TypeParam(0));
  this->expect_as_sorted(rising, {2, 500, 3000});
  std::reverse(rising.begin(), rising.end());
  this->expect_as_sorted(rising, {2, 500, 3000});
  Vec<TypeParam> flattered(d);  // large only at the sampled places: the sample overestimates
  std::uint64_t place = 0;
  for (int i = 0; i < 2048; ++i, place += 0x9E3779B97F4A7C15)
    flattered[((place >> 32) * d) >> 32] = static_cast<TypeParam>(i + 1);
  this->expect_as_sorted(flattered, {2, 500, 2000, 3000});
  Vec<TypeParam> block(d);  // all large entries are adjacent
  std::fill_n(block.begin() + 20'000, 600, TypeParam(5));
  this->expect_as_sorted(block, {2, 500, 600, 601, 3000});
}

TYPED_TEST(TopKOf, SendsExactlyKUnchangedValues) {
  const Vec<TypeParam> x = this->random(123, 8);
  for (const std::uint32_t k : {1u, 10u, 123u}) {
    Vec<TypeParam> v = x;
    PayloadBuffer<TypeParam> buffer;
    const auto& p = TopK{{k}}(v, {}, this->scratch_, buffer);
    ASSERT_EQ(p.values.size(), k);
    EXPECT_EQ(p.key, nullptr);
    for (std::size_t i = 0; i < k; ++i) EXPECT_EQ(p.values[i], x[p.indices[i]]);
  }
}

TYPED_TEST(TopKOf, ErrorIsAtMostTheBoundAndReachesItForEqualMagnitudes) {
  const std::size_t d = 65;
  for (const std::uint32_t k : {1u, 3u, 32u, 64u, 65u}) {
    const double share_lost = 1 - constants(Compressor(TopK{{k}}), d).alpha;
    const auto lost = [&](Vec<TypeParam> v) {
      double norm_sq = 0, kept_sq = 0;
      for (const double t : v) norm_sq += t * t;
      PayloadBuffer<TypeParam> buffer;
      for (const double t : TopK{{k}}(v, {}, this->scratch_, buffer).values) kept_sq += t * t;
      return (norm_sq - kept_sq) / norm_sq;
    };
    for (std::uint64_t seed = 0; seed < 50; ++seed)
      EXPECT_LE(lost(this->random(d, seed)), share_lost + 1e-12);
    Vec<TypeParam> equal(d, TypeParam(0.5));
    for (std::size_t j = 0; j < d; j += 3) equal[j] = TypeParam(-0.5);
    EXPECT_NEAR(lost(equal), share_lost, 1e-12);
  }
}

TYPED_TEST(TopKOf, ThrowsLogicErrorForKOutsideOneToD) {
  const Vec<TypeParam> v = {1, 2};
  EXPECT_THROW(select_largest<TypeParam>(v, 0, this->scratch_, this->out_), std::logic_error);
  EXPECT_THROW(select_largest<TypeParam>(v, 3, this->scratch_, this->out_), std::logic_error);
}

}  // namespace
}  // namespace gradwire
