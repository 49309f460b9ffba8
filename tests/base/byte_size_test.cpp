#include "base/byte_size.h"

#include <gtest/gtest.h>

namespace gradwire {
namespace {

TEST(ByteSize, IsReadWithItsUnit) {
  EXPECT_EQ(read_byte_size("512MB"), 512u << 20);
  EXPECT_EQ(read_byte_size("3GB"), std::uint64_t{3} << 30);
  EXPECT_EQ(read_byte_size("1KB"), 1024u);
  EXPECT_EQ(read_byte_size("7B"), 7u);
  EXPECT_EQ(read_byte_size("8589934591GB"), std::uint64_t{8589934591} << 30) << "the largest";
}

TEST(ByteSize, RefusesOtherText) {
  for (const char* text : {"", "MB", "512", "512 MB", "-1MB", "+1MB", "1.5MB", "0B", "1mb", "1MBs",
                           "8589934592GB", "99999999999999999999B"})
    EXPECT_EQ(read_byte_size(text), std::nullopt) << text;
}

TEST(ByteSize, IsWrittenInTheLargestUnitThatDividesIt) {
  for (const char* text : {"512MB", "3GB", "1025KB", "1MB", "1023B", "1537B"})
    EXPECT_EQ(byte_size_text(*read_byte_size(text)), text);
  EXPECT_EQ(byte_size_text(2048 << 10), "2MB");
}

}  // namespace
}  // namespace gradwire
