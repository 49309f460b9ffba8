// Tests of replies in chunks: chunks of correct clients are put together, and anything else is an error.
#include "proto/wire/chunk.h"

#include <gtest/gtest.h>
#include <numeric>

#include "base/crc32c.h"
#include "base/random.h"
#include "proto/wire/reply_tail.h"
#include "proto/wire/wire.pb.h"
#include "tests/wire/codec_support.h"

namespace gradwire {
namespace {

constexpr std::size_t kChunkedValues = 20'000;
constexpr std::uint64_t kChunkedBytes = kChunkedValues * sizeof(double), kMostChunked = 4 * kChunkedBytes;

class ChunkTest : public ::testing::Test {
 protected:
  ChunkTest()
      : codec(
            {1, kChunkedValues, 2, parse_compressor("identity", kChunkedValues), {ZstdMode::Kind::kOff, 0}}) {
    values.resize(kChunkedValues);
    std::iota(values.begin(), values.end(), 1.0);
    reply.request_id = 7;
    reply.parts = {Payload<double>::dense(values)};
    whole = codec.encode(reply);
    payload = whole.sections.at(0);
  }
  // Hands a chunk to the assembly, as a peer sends it. Returns the error, or nothing.
  std::string give(std::uint64_t at, std::uint64_t bytes, std::uint64_t request_id = 7,
                   std::uint64_t total = kChunkedBytes, bool damaged = false) {
    const std::vector<std::byte> some(static_cast<std::size_t>(std::min(bytes, kMostChunked)), std::byte{9});
    const auto content = at <= kChunkedBytes && bytes <= kChunkedBytes - at
                             ? payload.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(bytes))
                             : std::span<const std::byte>(some);
    const Encoded message =
        encode_chunk({request_id, at, total}, content, crc32c(content) + (damaged ? 1 : 0));
    const auto prefix = read_prefix(message.prefix, kMostChunked);
    if (!prefix) return prefix.error().message;
    const auto head = read_chunk(std::as_bytes(std::span(message.header)));
    if (!head) return head.error().message;
    const auto places = assembly.prepare(*head, *prefix, kMostChunked);
    if (!places) return places.error().message;
    std::copy(content.begin(), content.end(), places->front().begin());
    const Status status = assembly.finish();
    return status ? "" : status.error().message;
  }
  // Returns the payload that the chunks and the rest of a reply make.
  std::vector<std::byte> completed(const Encoded& rest) const {
    std::vector<std::byte> all(kChunkedBytes);
    std::span<std::byte> first = std::span(all).first(12'345), second = std::span(all).subspan(12'345);
    const std::array<std::span<std::byte>, 2> targets{first, second};
    Bytes sent;
    for (const auto section : rest.sections) sent.insert(sent.end(), section.begin(), section.end());
    std::size_t at = 0;
    for (const std::span<std::byte> gap : assembly.spread(targets)) {
      std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(at), gap.size(), gap.begin());
      at += gap.size();
    }
    EXPECT_EQ(at, sent.size());
    return all;
  }
  void expect_whole(const Encoded& rest) const {
    const auto all = completed(rest);
    EXPECT_TRUE(std::equal(all.begin(), all.end(), payload.begin(), payload.end()));
    const auto prefix = read_prefix(rest.prefix, kMostChunked);
    ASSERT_TRUE(prefix);
    EXPECT_EQ(prefix->payload_crc, crc32c(payload)) << "the checksum is that of the whole";
    EXPECT_EQ(prefix->payload_len, kChunkedBytes - assembly.came());
  }

  Codec<double> codec;
  Vec<double> values;
  Uplink<double> reply;
  Encoded whole;
  std::span<const std::byte> payload;
  Assembly assembly;
};

TEST_F(ChunkTest, AssemblesAReplyFromChunksInAnyOrderAndTheRest) {
  Random random(3, "pieces");
  for (int trial = 0; trial < 200; ++trial) {
    assembly.clear();
    std::vector<ChunkRange> cut, came;
    for (std::uint64_t at = random.below(3) * 1000; at + kLeastChunkBytes <= kChunkedBytes;) {
      const std::uint64_t bytes =
          std::min<std::uint64_t>(kChunkedBytes - at, kLeastChunkBytes + random.below(3) * 9999);
      if (random.below(3) != 0) cut.push_back({at, bytes});
      at += bytes + random.below(2) * random.below(5000);
    }
    came = cut;
    for (std::size_t k = cut.size(); k > 1; --k)
      std::swap(cut[k - 1], cut[random.below(static_cast<std::uint32_t>(k))]);
    for (const ChunkRange& chunk : cut) ASSERT_EQ(give(chunk.at, chunk.bytes), "");
    expect_whole(reply_without(whole, came));
  }
}

TEST_F(ChunkTest, LeavesNoPayloadIfChunksHoldTheWholeReply) {
  ASSERT_EQ(give(0, kChunkedBytes), "");
  const ChunkRange all{0, kChunkedBytes};
  const Encoded rest = reply_without(whole, {&all, 1});
  EXPECT_TRUE(rest.sections.empty());
  expect_whole(rest);
}

TEST_F(ChunkTest, RejectsChunksOfIncorrectClients) {
  ASSERT_EQ(give(40'000, 8'000), "");
  EXPECT_EQ(give(36'000, 8'000), "a chunk of bytes that have already arrived");
  EXPECT_EQ(give(47'999, 8'000), "a chunk of bytes that have already arrived");
  EXPECT_EQ(give(40'000, 8'000), "a chunk of bytes that have already arrived");
  EXPECT_EQ(give(30'000, 30'000), "a chunk of bytes that have already arrived");
  EXPECT_EQ(give(42'000, 4'100), "a chunk of bytes that have already arrived");
  EXPECT_EQ(give(kChunkedBytes - 5'000, 5'001), "a chunk outside its payload");
  EXPECT_EQ(give(kChunkedBytes, 5'000), "a chunk outside its payload");
  EXPECT_EQ(give(UINT64_MAX - 10, 5'000), "a chunk outside its payload");
  EXPECT_EQ(give(0, kChunkedBytes + 1), "a chunk outside its payload");
  EXPECT_EQ(give(0, kLeastChunkBytes - 1), "a chunk of only 4095 bytes");
  EXPECT_EQ(give(0, 8'000, 7, kChunkedBytes + 8), "chunks of one reply disagree about its length");
  EXPECT_EQ(give(0, 8'000, 6), "a chunk of an earlier reply than the chunk before it");
  EXPECT_EQ(give(0, 8'000, 7, kMostChunked + 1),
            "a chunk of a payload of 640001 bytes, above the limit of 640000");
  EXPECT_EQ(give(0, 8'000, 7, kChunkedBytes, true), "a chunk is damaged (wrong checksum)");
  EXPECT_EQ(assembly.came(), 8'000u) << "nothing of all this counts";
  EXPECT_EQ(assembly.finish().error().message, "no chunk was announced");
  EXPECT_EQ(give(0, 40'000), "") << "an adjacent chunk is accepted";
}

TEST_F(ChunkTest, DropsOlderChunksForAChunkOfANewerReply) {
  ASSERT_EQ(give(0, 50'000), "");
  ASSERT_EQ(give(10'000, 5'000, 8), "");
  EXPECT_EQ(assembly.request_id(), 8u);
  EXPECT_EQ(assembly.came(), 5'000u);
}

TEST_F(ChunkTest, RejectsAChunkWithoutOneOfItsFields) {
  wire::Piece chunk;
  chunk.set_request_id(7);
  chunk.set_at_byte(0);
  const std::string header = chunk.SerializeAsString();
  EXPECT_FALSE(read_chunk(std::as_bytes(std::span(header))));
  EXPECT_FALSE(read_chunk(std::as_bytes(std::span("nonsense"))));
}

TEST_F(ChunkTest, AddsOneFieldToTheHeaderOfAReply) {
  const ChunkRange came{8'000, 16'000};
  const std::string header = reply_without(whole, {&came, 1}).header;
  const auto chunked = chunked_header(std::as_bytes(std::span(header)));
  ASSERT_TRUE(chunked);
  EXPECT_EQ(chunked->in_chunks, 16'000u);
  EXPECT_TRUE(std::equal(chunked->header.begin(), chunked->header.end(),
                         std::as_bytes(std::span(whole.header)).begin()));
  EXPECT_EQ(chunked->header.size(), whole.header.size());
  EXPECT_FALSE(chunked_header(std::as_bytes(std::span(whole.header))));
  const std::string tail = reply_tail(whole, 64).header;
  EXPECT_FALSE(chunked_header(std::as_bytes(std::span(tail))));
  EXPECT_FALSE(chunked_header({}));
  for (std::size_t k = 0; k < header.size(); ++k)
    EXPECT_FALSE(chunked_header(std::as_bytes(std::span(header)).first(k))) << k;
}

TEST_F(ChunkTest, DoesNotTakeASimilarValueForTheField) {
  wire::Reply header;
  header.set_request_id(0x6161616161616161);
  header.set_tested(0x6161616161616161);
  const std::string text = header.SerializeAsString();
  EXPECT_FALSE(chunked_header(std::as_bytes(std::span(text))));
}

TEST_F(ChunkTest, CannotBeReadAsAReply) {
  const ChunkRange came{0, 8'000};
  const Encoded rest = reply_without(whole, {&came, 1});
  const auto prefix = read_prefix(rest.prefix, kMostChunked);
  ASSERT_TRUE(prefix);
  UplinkSlot<double> slot(codec.context());
  const auto places = slot.prepare(*prefix, std::as_bytes(std::span(rest.header)));
  ASSERT_FALSE(places);
  EXPECT_EQ(places.error().message, "its chunks are missing");
}

}  // namespace
}  // namespace gradwire
