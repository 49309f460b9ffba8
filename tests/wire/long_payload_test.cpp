// Tests of payloads longer than 2^32 bytes: their length is kept, and announcing one allocates no memory.
#include <cstdint>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

#include "proto/wire/codec.h"
#include "proto/wire/reply_tail.h"
#include "tests/support/sanitized.h"
#include "tests/wire/codec_support.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kLongDim = 1'500'000'000;
constexpr std::uint64_t kLongBytes = std::uint64_t{kLongDim} * sizeof(float);  // 6 GB

CodecContext long_context() {
  CodecContext context;
  context.dim = kLongDim;
  context.clients = 2;
  context.compressor = Identity{};
  return context;
}

// Returns the header of a reply of one dense vector of kLongDim numbers.
std::string long_reply() { return dense_reply_header(kLongDim).SerializeAsString(); }

// Returns the memory that this process has touched, in bytes.
std::uint64_t resident_bytes() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

TEST(LongPayload, KeepsItsLengthInThePrefixAndIsCheckedAgainstTheLimit) {
  const std::string header = long_reply();
  const auto bytes = std::as_bytes(std::span(header));
  const auto raw = write_prefix(FrameType::kReply, bytes, kLongBytes, 0);
  const std::uint64_t limit = max_payload_bytes(long_context(), sizeof(float));
  EXPECT_GT(limit, kLongBytes);
  const auto prefix = read_prefix(raw, limit);
  ASSERT_TRUE(prefix);
  EXPECT_EQ(prefix->payload_len, kLongBytes);
  EXPECT_FALSE(read_prefix(raw, kLongBytes - 1));
  CodecContext longest = long_context();
  longest.dim = kMaxDim;
  EXPECT_GT(max_payload_bytes(longest, sizeof(double)), std::uint64_t{kMaxDim} * sizeof(double));
}

TEST(LongPayload, CostsNoMemoryIfItIsOnlyAnnounced) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer touches what is allocated";
  UplinkSlot<float> slot(long_context(), true);
  const std::string header = long_reply();
  const auto bytes = std::as_bytes(std::span(header));
  Prefix prefix;
  prefix.type = FrameType::kReply;
  prefix.header_len = static_cast<std::uint32_t>(header.size());
  prefix.payload_len = kLongBytes;
  const std::uint64_t before = resident_bytes();
  try {
    const auto places = slot.prepare(prefix, bytes);
    ASSERT_TRUE(places) << places.error().message;
    ASSERT_EQ(places->size(), 1u);
    EXPECT_EQ((*places)[0].size(), kLongBytes);
    // The first and the last byte can be written, as by a socket, and so can the tail of a broken upload.
    (*places)[0].front() = (*places)[0].back() = std::byte{1};
    const auto rest = rest_of(*places, kLongBytes - 3);
    ASSERT_EQ(rest.size(), 1u);
    EXPECT_EQ(rest[0].data() + 3, (*places)[0].data() + kLongBytes);
  } catch (const std::bad_alloc&) {
    GTEST_SKIP() << "this machine does not reserve that much address space";
  }
  EXPECT_LT(resident_bytes(), before + (1 << 20));
}

}  // namespace
}  // namespace gradwire
