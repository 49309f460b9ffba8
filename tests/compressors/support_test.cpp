// Compressors that read only some entries, and draw which ones before they read the vector.
#include "compressors/support.h"

#include <gtest/gtest.h>
#include <limits>

namespace gradwire {
namespace {

constexpr std::size_t kDim = 50;
constexpr RngKey kKey{7, 3, 5, RngDomain::kCompressor};

Vec<double> numbers() {
  Vec<double> v(kDim);
  for (std::size_t j = 0; j < kDim; ++j) v[j] = 0.25 + static_cast<double>((j * 37) % 50) - 20;
  return v;
}
Vec<double> decoded(const Payload<double>& p) {
  Vec<double> out(kDim);
  add_decoded<double>(p, 1.0, out);
  return out;
}
std::vector<bool> members(const DrawnSupport& support) {
  std::vector<bool> in(kDim);
  if (support.is_range)
    for (std::uint32_t k = 0; k < support.count; ++k) in[(support.first + k) % kDim] = true;
  else
    for (const std::uint32_t j : support.indices) in[j] = true;
  return in;
}

TEST(DrawnSupports, HoldAllEntriesThatTheCompressorReads) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const char* spec : {"randk:k=7", "randk:k=50", "randk:k=7,scaled=false", "randseqk:k=9",
                           "randseqk:k=50", "natural(randk:k=7)", "terngrad(randseqk:k=9)"}) {
    SCOPED_TRACE(spec);
    const Compressor c = parse_compressor(spec, kDim);
    ASSERT_TRUE(draws_support(c));
    for (std::uint32_t round = 0; round < 40; ++round) {  // also covers ranges that wrap around
      RngKey key = kKey;
      key.round = round;
      DrawnSupport support;
      ASSERT_TRUE(draw_support(c, key, kDim, support));
      const std::vector<bool> in = members(support);
      Vec<double> v = numbers(), poisoned = v;
      for (std::size_t j = 0; j < kDim; ++j)
        if (!in[j]) poisoned[j] = kNan;
      Scratch<double> scratch;
      PayloadBuffer<double> one, other;
      EXPECT_EQ(decoded(compress<double>(c, v, key, scratch, one)),
                decoded(compress_at<double>(c, support, poisoned, key, scratch, other)));
      EXPECT_EQ(one.view().shape, other.view().shape);
    }
  }
}

TEST(DrawnSupports, DoNotExistForCompressorsThatReadAllEntries) {
  for (const char* spec :
       {"identity", "topk:k=5", "natural", "permk", "natural(topk:k=5)", "bernoulli:p=0.5"}) {
    DrawnSupport support;
    EXPECT_FALSE(draws_support(parse_compressor(spec, kDim))) << spec;
    EXPECT_FALSE(draw_support(parse_compressor(spec, kDim), kKey, kDim, support)) << spec;
  }
}

TEST(DrawnSupports, DoNotHideAnEntryThatIsNotFinite) {
  for (const char* spec : {"randk:k=7", "randseqk:k=9", "natural(randk:k=7)"}) {
    const Compressor c = parse_compressor(spec, kDim);
    DrawnSupport support;
    ASSERT_TRUE(draw_support(c, kKey, kDim, support));
    Vec<double> v = numbers();
    const std::size_t bad = support.is_range ? support.first : support.indices.front();
    v[bad] = std::numeric_limits<double>::infinity();
    Scratch<double> scratch;
    PayloadBuffer<double> buffer;
    const Payload<double>& p = compress_at<double>(c, support, v, kKey, scratch, buffer);
    ASSERT_EQ(p.shape, Shape::kDense) << spec;
    EXPECT_EQ(p.values[bad], v[bad]) << spec;
  }
}

}  // namespace
}  // namespace gradwire
