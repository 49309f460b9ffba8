#include "proto/wire/frame.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "proto/wire/crc32c.h"

namespace gradwire {
namespace {

std::span<const std::byte> bytes(std::string_view s) { return std::as_bytes(std::span(s)); }

// One bit at a time, from the definition.
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
  EXPECT_EQ(crc32c(bytes("")), 0u);
  EXPECT_EQ(crc32c(bytes("123456789")), 0xE3069283u);
  // RFC 3720, appendix B.4.
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0})), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xFF})), 0x62A8AB43u);
  EXPECT_EQ(crc32c_portable(bytes("123456789")), 0xE3069283u);
}

TEST(Crc32c, EqualsTheDefinitionForAllLengthsAndAlignments) {
  const auto data = random_bytes(20000, 1);
  std::vector<std::size_t> lengths;
  for (std::size_t n = 0; n < 40; ++n) lengths.push_back(n);
  for (const std::size_t n : {1023, 1024, 3071, 3072, 3073, 3080, 6144, 6151, 9999, 19980})
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

TEST(Crc32c, ContinuesOverPieces) {
  const auto data = random_bytes(10000, 2);
  const auto all = std::span(data);
  for (const std::size_t cut : {0, 1, 7, 3072, 9999, 10000}) {
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(data)) << cut;
  }
}

TEST(Frame, PrefixHasTheseBytes) {
  const auto prefix = write_prefix(FrameType::kReply, bytes("header"), 0x0102030405060708, 0xA1B2C3D4);
  const unsigned char expected[kPrefixBytes] = {
      'G',  'W',  'R',  '1',  0x02, 0x06, 0x00, 0x00,  // magic, version, type, reserved
      0x06, 0x00, 0x00, 0x00, 0xBB, 0xC4, 0x63, 0x9F,  // header length and checksum
      0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,  // payload length
      0xD4, 0xC3, 0xB2, 0xA1, 0x00, 0x00, 0x00, 0x00,  // payload checksum, reserved
  };
  for (std::size_t i = 0; i < kPrefixBytes; ++i) {
    EXPECT_EQ(static_cast<unsigned>(prefix[i]), expected[i]) << "byte " << i;
  }
}

TEST(Frame, ReadsWhatItWrote) {
  const auto header = bytes("some header");
  const auto prefix = write_prefix(FrameType::kRound, header, 1000, 77);
  const auto read = read_prefix(prefix, 1000);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->type, FrameType::kRound);
  EXPECT_EQ(read->header_len, header.size());
  EXPECT_EQ(read->payload_len, 1000u);
  EXPECT_EQ(read->payload_crc, 77u);
  EXPECT_TRUE(check_header(prefix, header));
}

TEST(Frame, RefusesEveryFlippedBitOfPrefixAndHeader) {
  const std::string header = "some header";
  const auto prefix = write_prefix(FrameType::kRound, bytes(header), 1000, 77);
  for (std::size_t bit = 0; bit < 8 * kPrefixBytes; ++bit) {
    auto bad = prefix;
    bad[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    EXPECT_FALSE(read_prefix(bad, 1 << 20) && check_header(bad, bytes(header))) << "bit " << bit;
  }
  for (std::size_t bit = 0; bit < 8 * header.size(); ++bit) {
    std::string bad = header;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(check_header(prefix, bytes(bad))) << "bit " << bit;
  }
  EXPECT_FALSE(check_header(prefix, bytes(header).first(header.size() - 1)));
}

TEST(Frame, RefusesLengthsAboveTheLimits) {
  auto prefix = write_prefix(FrameType::kReply, {}, 1001, 0);
  EXPECT_TRUE(read_prefix(prefix, 1001));
  const auto above = read_prefix(prefix, 1000);
  ASSERT_FALSE(above);
  EXPECT_EQ(above.error().message, "a payload of 1001 bytes is above the limit of 1000");
  const std::uint32_t header_len = kMaxHeaderBytes + 1;
  std::memcpy(&prefix[8], &header_len, 4);
  EXPECT_FALSE(read_prefix(prefix, 1001));
}

TEST(Frame, SaysWhatIsWrongWithAStranger) {
  std::array<std::byte, kPrefixBytes> http{};
  std::memcpy(http.data(), "GET / HTTP/1.1\r\n", 16);
  ASSERT_FALSE(read_prefix(http, 1));
  EXPECT_NE(read_prefix(http, 1).error().message.find("does not speak gradwire"), std::string::npos);
  auto later = write_prefix(FrameType::kHello, {}, 0, 0);
  for (const int version : {1, 3}) {
    later[4] = std::byte(version);
    const std::string error = read_prefix(later, 1).error().message;
    EXPECT_NE(error.find("version " + std::to_string(version)), std::string::npos) << error;
    EXPECT_NE(error.find("install the same release on both"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace gradwire
