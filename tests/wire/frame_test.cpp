#include "proto/wire/frame.h"

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace gradwire {
namespace {

std::span<const std::byte> bytes(std::string_view s) { return std::as_bytes(std::span(s)); }

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

TEST(Frame, ExplainsTheErrorOfAForeignPeer) {
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
