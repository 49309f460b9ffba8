// Values that are known before the whole vector is known. They have the bits of those of compress(), and each
// is returned once.
#include "compressors/scaled_entries.h"

#include <cstring>
#include <gtest/gtest.h>

#include "base/random.h"

namespace gradwire {
namespace {

template <class Real>
void expect_early_values_of(const std::string& spec, std::size_t d, std::uint32_t n) {
  const Compressor c = parse_compressor(spec, d, n);
  Random random(d, "scaled entries");
  for (std::uint32_t round = 0; round < 20; ++round) {
    SCOPED_TRACE(spec + " d=" + std::to_string(d) + " round " + std::to_string(round));
    const RngKey key{7, round % n, round, RngDomain::kCompressor};
    Vec<Real> v(d);
    for (Real& x : v) x = static_cast<Real>(random.normal());
    ScaledEntries<Real> entries;
    BlockMemo memo;
    ASSERT_TRUE(entries.draw(c, key, d, memo));
    const View<Real> values = entries.place(v);
    // Passes the vector in segments, in any order.
    std::vector<std::size_t> cuts = {0, d};
    for (int k = 0; k < 5; ++k) cuts.push_back(random.below(static_cast<std::uint32_t>(d) + 1));
    std::sort(cuts.begin(), cuts.end());
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k + 1 < cuts.size(); ++k) order.push_back(k);
    for (std::size_t k = order.size(); k > 1; --k)
      std::swap(order[k - 1], order[random.below(static_cast<std::uint32_t>(k))]);
    std::vector<int> told(values.size());
    Vec<Real> seen(values.size());
    for (const std::size_t k : order)
      entries.take(v, cuts[k], cuts[k + 1], [&](std::size_t first, std::size_t count) {
        for (std::size_t j = first; j < first + count; ++j) {
          ++told.at(j);
          seen[j] = values[j];
        }
      });
    EXPECT_EQ(told, std::vector<int>(values.size(), 1));
    Scratch<Real> scratch;
    PayloadBuffer<Real> to;
    const Payload<Real>& payload = compress(c, v, key, scratch, to);
    ASSERT_EQ(payload.values.size(), seen.size());
    EXPECT_EQ(std::memcmp(payload.values.data(), seen.data(), seen.size() * sizeof(Real)), 0);
  }
}

TEST(ScaledEntries, MatchTheValuesOfTheCompressor) {
  for (const char* spec : {"identity", "randk:k=5", "randk:k=5,scaled=false", "randseqk:k=9", "randk:k=100%",
                           "randseqk:k=3,scaled=false", "randseqk:k=100%", "permk"})
    for (const std::size_t d : {11, 23}) {
      expect_early_values_of<float>(spec, d, 4);
      expect_early_values_of<double>(spec, d, 4);
    }
  expect_early_values_of<double>("permk", 5, 12);  // more clients than coordinates
}

TEST(ScaledEntries, DoNotExistForOtherCompressors) {
  for (const char* spec :
       {"topk:k=2", "natural", "natural(randk:k=3)", "scaled(randk:k=3)", "sign", "bernoulli:p=0.5"}) {
    ScaledEntries<float> entries;
    BlockMemo memo;
    EXPECT_FALSE(entries.draw(parse_compressor(spec, 12), {1, 0, 0, RngDomain::kCompressor}, 12, memo))
        << spec;
  }
}

}  // namespace
}  // namespace gradwire
