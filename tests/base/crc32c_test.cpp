#include "base/crc32c.h"

#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace gradwire {
namespace {

std::span<const std::byte> text(std::string_view s) { return std::as_bytes(std::span(s)); }

// Computes the checksum one bit at a time, from the definition.
std::uint32_t naive_crc32c(std::span<const std::byte> data) {
  std::uint32_t state = 0xFFFFFFFF;
  for (const std::byte b : data) {
    state ^= static_cast<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82F63B78u : 0u);
  }
  return ~state;
}

std::vector<std::byte> random_bytes(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> out(n);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

TEST(Crc32c, GivesTheKnownAnswers) {
  EXPECT_EQ(crc32c(text("")), 0u);
  EXPECT_EQ(crc32c(text("123456789")), 0xE3069283u);
  // RFC 3720, appendix B.4.
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0})), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xFF})), 0x62A8AB43u);
  EXPECT_EQ(crc32c_portable(text("123456789")), 0xE3069283u);
}

TEST(Crc32c, EqualsTheDefinitionForAllLengthsAndAlignments) {
  const auto data = random_bytes(20000, 1);
  std::vector<std::size_t> lengths;
  for (std::size_t n = 0; n < 40; ++n) lengths.push_back(n);
  for (const std::size_t n :
       {255, 256, 1023, 1024, 1280, 1535, 3071, 3072, 3073, 3080, 6144, 6151, 9999, 19980})
    lengths.push_back(n);
  for (const std::size_t n : lengths) {
    for (std::size_t offset = 0; offset < 9; ++offset) {
      const auto part = std::span(data).subspan(offset, n);
      const std::uint32_t expected = naive_crc32c(part);
      ASSERT_EQ(crc32c(part), expected) << n << " bytes at " << offset;
      ASSERT_EQ(crc32c_portable(part), expected) << n << " bytes at " << offset;
    }
  }
}

TEST(Crc32c, ContinuesOverSegments) {
  const auto data = random_bytes(10000, 2);
  const auto all = std::span(data);
  for (const std::size_t cut : {0, 1, 7, 3072, 9999, 10000}) {
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(data)) << cut;
  }
}

template <class Real>
class CheckedNumbersTest : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(CheckedNumbersTest, Reals);

// Puts a bad number in each place of every block and of the rest after the blocks.
TYPED_TEST(CheckedNumbersTest, OnePassFindsTheChecksumAndEveryNumberThatIsNotFinite) {
  using Limits = std::numeric_limits<TypeParam>;
  for (const std::size_t n : {0, 1, 5, 127, 128, 256, 300, 1000, 9000}) {
    std::vector<TypeParam> numbers(n);
    for (std::size_t i = 0; i < n; ++i)
      numbers[i] = i % 3 == 0 ? Limits::max() : i % 3 == 1 ? Limits::denorm_min() : -TypeParam(i);
    const auto bytes = std::as_bytes(std::span(numbers));
    CheckedNumbers checked = check_numbers(std::span<const TypeParam>(numbers), 77);
    EXPECT_EQ(checked.crc, crc32c_portable(bytes, 77)) << n;
    EXPECT_TRUE(checked.finite) << n;
    const std::size_t step = n > 1000 ? 61 : 1;
    for (std::size_t i = 0; i < n; i += step) {
      for (const TypeParam bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                                  -Limits::quiet_NaN(), Limits::signaling_NaN()}) {
        const TypeParam good = std::exchange(numbers[i], bad);
        checked = check_numbers(std::span<const TypeParam>(numbers), 77);
        EXPECT_FALSE(checked.finite) << bad << " at " << i << " of " << n;
        EXPECT_EQ(checked.crc, crc32c_portable(bytes, 77)) << n;
        numbers[i] = good;
      }
    }
  }
}

}  // namespace
}  // namespace gradwire
