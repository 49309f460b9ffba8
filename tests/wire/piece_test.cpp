// Replies in pieces, as bytes: what honest clients send is put together, anything else is an error.
#include "proto/wire/piece.h"

#include <gtest/gtest.h>
#include <numeric>

#include "base/crc32c.h"
#include "base/random.h"
#include "proto/wire/reply_tail.h"
#include "proto/wire/wire.pb.h"
#include "tests/wire/codec_support.h"

namespace gradwire {
namespace {

constexpr std::size_t kPiecedValues = 20'000;
constexpr std::uint64_t kPiecedBytes = kPiecedValues * sizeof(double), kMostPieced = 4 * kPiecedBytes;

class PiecesTest : public ::testing::Test {
 protected:
  PiecesTest()
      : codec({1, kPiecedValues, 2, parse_compressor("identity", kPiecedValues), {ZstdMode::Kind::kOff, 0}}) {
    values.resize(kPiecedValues);
    std::iota(values.begin(), values.end(), 1.0);
    reply.request_id = 7;
    reply.parts = {Payload<double>::dense(values)};
    whole = codec.encode(reply);
    payload = whole.sections.at(0);
  }
  // Hands a piece to the assembly, as a peer sends it. The error, or nothing.
  std::string give(std::uint64_t at, std::uint64_t bytes, std::uint64_t request_id = 7,
                   std::uint64_t total = kPiecedBytes, bool damaged = false) {
    const std::vector<std::byte> some(static_cast<std::size_t>(std::min(bytes, kMostPieced)), std::byte{9});
    const auto content = at <= kPiecedBytes && bytes <= kPiecedBytes - at
                             ? payload.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(bytes))
                             : std::span<const std::byte>(some);
    const Encoded message =
        encode_piece({request_id, at, total}, content, crc32c(content) + (damaged ? 1 : 0));
    const auto prefix = read_prefix(message.prefix, kMostPieced);
    if (!prefix) return prefix.error().message;
    const auto head = read_piece(std::as_bytes(std::span(message.header)));
    if (!head) return head.error().message;
    const auto places = assembly.prepare(*head, *prefix, kMostPieced);
    if (!places) return places.error().message;
    std::copy(content.begin(), content.end(), places->front().begin());
    const Status status = assembly.finish();
    return status ? "" : status.error().message;
  }
  // The payload that the pieces and the rest of a reply make.
  std::vector<std::byte> completed(const Encoded& rest) const {
    std::vector<std::byte> all(kPiecedBytes);
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
    const auto prefix = read_prefix(rest.prefix, kMostPieced);
    ASSERT_TRUE(prefix);
    EXPECT_EQ(prefix->payload_crc, crc32c(payload)) << "the checksum is that of the whole";
    EXPECT_EQ(prefix->payload_len, kPiecedBytes - assembly.came());
  }

  Codec<double> codec;
  Vec<double> values;
  Uplink<double> reply;
  Encoded whole;
  std::span<const std::byte> payload;
  Assembly assembly;
};

TEST_F(PiecesTest, AnyPiecesInAnyOrderAndTheRestAreTheReply) {
  Random random(3, "pieces");
  for (int trial = 0; trial < 200; ++trial) {
    assembly.clear();
    std::vector<PieceRange> cut, came;
    for (std::uint64_t at = random.below(3) * 1000; at + kLeastPieceBytes <= kPiecedBytes;) {
      const std::uint64_t bytes =
          std::min<std::uint64_t>(kPiecedBytes - at, kLeastPieceBytes + random.below(3) * 9999);
      if (random.below(3) != 0) cut.push_back({at, bytes});
      at += bytes + random.below(2) * random.below(5000);
    }
    came = cut;
    for (std::size_t k = cut.size(); k > 1; --k)
      std::swap(cut[k - 1], cut[random.below(static_cast<std::uint32_t>(k))]);
    for (const PieceRange& piece : cut) ASSERT_EQ(give(piece.at, piece.bytes), "");
    expect_whole(reply_without(whole, came));
  }
}

TEST_F(PiecesTest, AReplyOfPiecesAloneHasNoPayload) {
  ASSERT_EQ(give(0, kPiecedBytes), "");
  const PieceRange all{0, kPiecedBytes};
  const Encoded rest = reply_without(whole, {&all, 1});
  EXPECT_TRUE(rest.sections.empty());
  expect_whole(rest);
}

TEST_F(PiecesTest, RefusesWhatNoHonestClientSends) {
  ASSERT_EQ(give(40'000, 8'000), "");
  EXPECT_EQ(give(36'000, 8'000), "a piece of bytes that came before");
  EXPECT_EQ(give(47'999, 8'000), "a piece of bytes that came before");
  EXPECT_EQ(give(40'000, 8'000), "a piece of bytes that came before");
  EXPECT_EQ(give(30'000, 30'000), "a piece of bytes that came before");
  EXPECT_EQ(give(42'000, 4'100), "a piece of bytes that came before");
  EXPECT_EQ(give(kPiecedBytes - 5'000, 5'001), "a piece outside of its payload");
  EXPECT_EQ(give(kPiecedBytes, 5'000), "a piece outside of its payload");
  EXPECT_EQ(give(UINT64_MAX - 10, 5'000), "a piece outside of its payload");
  EXPECT_EQ(give(0, kPiecedBytes + 1), "a piece outside of its payload");
  EXPECT_EQ(give(0, kLeastPieceBytes - 1), "a piece of only 4095 bytes");
  EXPECT_EQ(give(0, 8'000, 7, kPiecedBytes + 8), "pieces of one reply disagree about its length");
  EXPECT_EQ(give(0, 8'000, 6), "a piece of an earlier reply than the piece before it");
  EXPECT_EQ(give(0, 8'000, 7, kMostPieced + 1),
            "a piece of a payload of 640001 bytes, above the limit of 640000");
  EXPECT_EQ(give(0, 8'000, 7, kPiecedBytes, true), "a piece was damaged on its way (checksum)");
  EXPECT_EQ(assembly.came(), 8'000u) << "nothing of all this counts";
  EXPECT_EQ(assembly.finish().error().message, "no piece was announced");
  EXPECT_EQ(give(0, 40'000), "") << "what is beside the others is welcome";
}

TEST_F(PiecesTest, APieceOfANewerReplyBeginsAnew) {
  ASSERT_EQ(give(0, 50'000), "");
  ASSERT_EQ(give(10'000, 5'000, 8), "");
  EXPECT_EQ(assembly.request_id(), 8u);
  EXPECT_EQ(assembly.came(), 5'000u);
}

TEST_F(PiecesTest, APieceWithoutOneOfItsFieldsIsAnError) {
  wire::Piece piece;
  piece.set_request_id(7);
  piece.set_at_byte(0);
  const std::string header = piece.SerializeAsString();
  EXPECT_FALSE(read_piece(std::as_bytes(std::span(header))));
  EXPECT_FALSE(read_piece(std::as_bytes(std::span("nonsense"))));
}

TEST_F(PiecesTest, TheHeaderOfAReplyInPiecesIsItsOwnAndOneField) {
  const PieceRange came{8'000, 16'000};
  const std::string header = reply_without(whole, {&came, 1}).header;
  const auto pieced = pieced_header(std::as_bytes(std::span(header)));
  ASSERT_TRUE(pieced);
  EXPECT_EQ(pieced->in_pieces, 16'000u);
  EXPECT_TRUE(std::equal(pieced->header.begin(), pieced->header.end(),
                         std::as_bytes(std::span(whole.header)).begin()));
  EXPECT_EQ(pieced->header.size(), whole.header.size());
  EXPECT_FALSE(pieced_header(std::as_bytes(std::span(whole.header))));
  const std::string tail = reply_tail(whole, 64).header;
  EXPECT_FALSE(pieced_header(std::as_bytes(std::span(tail))));
  EXPECT_FALSE(pieced_header({}));
  for (std::size_t k = 0; k < header.size(); ++k)
    EXPECT_FALSE(pieced_header(std::as_bytes(std::span(header)).first(k))) << k;
}

TEST_F(PiecesTest, AValueThatLooksLikeTheFieldIsNotTheField) {
  wire::Reply header;
  header.set_request_id(0x6161616161616161);
  header.set_tested(0x6161616161616161);
  const std::string text = header.SerializeAsString();
  EXPECT_FALSE(pieced_header(std::as_bytes(std::span(text))));
}

TEST_F(PiecesTest, IsNoReplyByItself) {
  const PieceRange came{0, 8'000};
  const Encoded rest = reply_without(whole, {&came, 1});
  const auto prefix = read_prefix(rest.prefix, kMostPieced);
  ASSERT_TRUE(prefix);
  UplinkSlot<double> slot(codec.context());
  const auto places = slot.prepare(*prefix, std::as_bytes(std::span(rest.header)));
  ASSERT_FALSE(places);
  EXPECT_EQ(places.error().message, "its pieces are not here");
}

}  // namespace
}  // namespace gradwire
