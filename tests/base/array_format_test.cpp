// The formats of number files, tested in memory: the bytes that gradwire writes, files of other programs, and
// damaged files.
#include "base/array_format.h"

#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "base/crc32c.h"

namespace gradwire {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_from(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Reads the numbers into `x`. Returns the error message, or "" if there is none.
template <class T>
std::string read_into(const Bytes& bytes, std::vector<T>& x) {
  const Status status = numbers_from_bytes<T>(bytes, x);
  return status ? "" : status.error().message;
}

// Returns a .npy file as another program writes it. Pads `header` as NumPy does.
Bytes npy(std::string header, std::string_view numbers, char version = 1) {
  const std::size_t front = version == 1 ? 10 : 12;
  while ((front + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string all = std::string(kNpyMagic) + std::string{version, 0};
  for (std::size_t k = 0; k < front - 8; ++k) all += static_cast<char>(header.size() >> (8 * k));
  return bytes_from(all + header + std::string(numbers));
}

const std::string kTwoFloats("\0\0\x80\x3f\0\0\0\xc0", 8);  // 1 and -2, lowest byte first

template <class T>
class NumbersOf : public ::testing::Test {};
using Saved = ::testing::Types<float, double>;
TYPED_TEST_SUITE(NumbersOf, Saved);

TYPED_TEST(NumbersOf, RoundTripBitForBit) {
  using Limits = std::numeric_limits<TypeParam>;
  const std::vector<TypeParam> x = {
      0, -TypeParam(0), 1, Limits::denorm_min(), Limits::infinity(), Limits::quiet_NaN(), Limits::max()};
  const Bytes bytes = numbers_to_bytes<TypeParam>(x);
  ASSERT_EQ(bytes.size(), 64 + x.size() * sizeof(TypeParam));
  std::vector<TypeParam> y(x.size());
  ASSERT_EQ(read_into(bytes, y), "");
  EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size() * sizeof(TypeParam)), 0);
  std::vector<TypeParam> none;
  EXPECT_EQ(read_into(numbers_to_bytes<TypeParam>(none), none), "");
}

TEST(Numbers, HaveTheBytesOfTheFormat) {
  if (std::endian::native != std::endian::little) GTEST_SKIP();
  const Bytes bytes = numbers_to_bytes<float>(std::vector<float>{1, -2});
  Bytes expected = bytes_from(std::string("GWNUMBER\x01\x01\x01\0\0\0\0\0\x02\0\0\0\0\0\0\0", 24));
  expected.resize(64);
  const Bytes numbers = bytes_from(kTwoFloats);
  expected.insert(expected.end(), numbers.begin(), numbers.end());
  const std::uint32_t crc = crc32c(expected);
  for (std::size_t k = 0; k < 4; ++k) expected[12 + k] = static_cast<std::byte>(crc >> (8 * k));
  EXPECT_EQ(bytes, expected);
}

TEST(Numbers, AreConvertedFromTheOtherByteOrder) {
  if (std::endian::native != std::endian::little) GTEST_SKIP();
  Bytes bytes = bytes_from(std::string("GWNUMBER\x01\x01\x02\0\0\0\0\0\0\0\0\0\0\0\0\x02", 24));
  bytes.resize(64);
  for (const unsigned char b : {0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0}) bytes.push_back(std::byte{b});
  const std::uint32_t crc = crc32c(bytes);
  for (std::size_t k = 0; k < 4; ++k) bytes[12 + k] = static_cast<std::byte>(crc >> (24 - 8 * k));
  std::vector<float> x(2);
  EXPECT_EQ(read_into(bytes, x), "");
  EXPECT_EQ(x, (std::vector<float>{1, -2}));
}

TEST(Numbers, RefuseEveryFlippedBitAndEveryTruncation) {
  const std::vector<double> x = {1, 2, 3};
  const Bytes good = numbers_to_bytes<double>(x);
  const std::vector<double> before = {7, 8, 9};
  for (std::size_t k = 0; k < good.size(); ++k) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[k] ^= static_cast<std::byte>(1 << bit);
      std::vector<double> y = before;
      EXPECT_NE(read_into(bad, y), "") << "byte " << k;
      EXPECT_EQ(y, before);
    }
    std::vector<double> y = before;
    EXPECT_NE(read_into(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(k)), y), "");
    EXPECT_EQ(y, before);
  }
  Bytes longer = good;
  longer.push_back(std::byte{0});
  std::vector<double> y = before;
  EXPECT_NE(read_into(longer, y).find("bytes after its numbers"), std::string::npos);
  EXPECT_EQ(y, before);
}

TEST(Numbers, RefuseAHugeCountWithoutAllocatingForIt) {
  for (const std::uint64_t count :
       {~std::uint64_t{0}, std::uint64_t{1} << 61, (std::uint64_t{1} << 61) + 1}) {
    Bytes bytes = numbers_to_bytes<double>(std::vector<double>{1});
    std::memcpy(&bytes[16], &count, sizeof count);
    std::vector<double> x(1);
    EXPECT_NE(read_into(bytes, x).find("cut short"), std::string::npos) << count;
  }
}

TEST(Numbers, ReportTheError) {
  std::vector<float> x(2);
  const auto refuses = [&](const Bytes& bytes, const std::string& why) {
    EXPECT_NE(read_into(bytes, x).find(why), std::string::npos) << read_into(bytes, x);
  };
  refuses(numbers_to_bytes<double>(std::vector<double>{1, 2}),
          "holds 2 numbers of fp64, but 2 of fp32 are expected");
  refuses(numbers_to_bytes<float>(std::vector<float>{1}), "holds 1 numbers of fp32");
  Bytes bytes = numbers_to_bytes<float>(x);
  bytes[8] = std::byte{2};
  refuses(bytes, "has version 2");
  bytes[8] = std::byte{1};
  bytes[9] = std::byte{77};
  refuses(bytes, "type or byte order");
  refuses({}, "is not a file of numbers");
  refuses(bytes_from("1.5\n2\n"), "is not a file of numbers");
}

TEST(Npy, IsReadInAllVersionsOrdersAndShapes) {
  const std::string big("\x3f\x80\0\0\xc0\0\0\0", 8);
  const std::vector<Bytes> same = {
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", kTwoFloats),
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", kTwoFloats, 2),
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", kTwoFloats, 3),
      npy("{\"shape\": (1, 2, 1), \"descr\": \"<f4\", \"fortran_order\": False}", kTwoFloats),
      npy("{'descr':'>f4','fortran_order':True,'shape':(2,)}", big),
      npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,2)}", kTwoFloats)};
  for (std::size_t k = 0; k < same.size(); ++k) {
    std::vector<float> x(2);
    EXPECT_EQ(read_into(same[k], x), "") << k;
    EXPECT_EQ(x, (std::vector<float>{1, -2})) << k;
  }
  std::vector<float> one(1);
  EXPECT_EQ(
      read_into(npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", kTwoFloats.substr(0, 4)), one),
      "");
  EXPECT_EQ(one[0], 1);
}

TEST(Npy, IsRefusedWithTheReason) {
  std::vector<float> x(2);
  const auto refuses = [&](const std::string& header, const std::string& why, char version = 1) {
    const std::string got = read_into(npy(header, kTwoFloats, version), x);
    EXPECT_NE(got.find(why), std::string::npos) << header << ": " << got;
  };
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "8 bytes of numbers");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "8 bytes of numbers");
  refuses("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", "1 numbers of fp64");
  refuses("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", "type '<i4'");
  refuses("{'descr': '', 'fortran_order': False, 'shape': (2,), }", "type ''");
  refuses("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "not of a plain array");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 3), }",
          "not of a plain array");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "not of a plain array");
  refuses("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1, 3), }", "Fortran order");
  refuses("{'descr': '<f4', 'fortran_order': False}", "not of a plain array");
  refuses("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "not of a plain array");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} + 1", "not of a plain array");
  refuses("", "not of a plain array");
  refuses("{'descr': '<f4", "not of a plain array");
  refuses("{'descr': '<f8\n\33[2J', 'fortran_order': False, 'shape': (2,), }", "not of a plain array");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "version 4.0", 4);
  EXPECT_EQ(x, (std::vector<float>{0, 0}));
}

TEST(Npy, IsRefusedAtEveryTruncationAndSurvivesFlippedBits) {
  const NumbersHeader header = *npy_header(NumberType::kFp32, 2);
  Bytes good(header.span().begin(), header.span().end());
  const Bytes numbers = bytes_from(kTwoFloats);
  good.insert(good.end(), numbers.begin(), numbers.end());
  std::vector<float> x(2);
  ASSERT_EQ(read_into(good, x), "");
  for (std::size_t k = 0; k < good.size(); ++k) {
    EXPECT_NE(read_into(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(k)), x), "") << k;
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[k] ^= static_cast<std::byte>(1 << bit);
      (void)read_into(bad, x);  // the format has no checksum; the sanitizers check the reads
    }
  }
}

TEST(Npy, RefusesTypesThatNumPyLacks) {
  EXPECT_TRUE(npy_header(NumberType::kFp16, 3));
  EXPECT_FALSE(npy_header(NumberType::kBf16, 3));
  EXPECT_FALSE(npy_header(NumberType::kFp128, 3));
}

}  // namespace
}  // namespace gradwire
