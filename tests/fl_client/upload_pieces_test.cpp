// What a client sends of an answer while it computes it.
#include "fl_client/upload_pieces.h"

#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

#include "base/crc32c.h"

namespace gradwire {
namespace {

constexpr std::size_t kAnswerBytes = 400'000;

// Keeps what is written, as bytes of the answer.
class KeepingLink final : public Link {
 public:
  Status read_payload(std::span<const std::span<std::byte>>) override { return Unit{}; }
  Status write(const std::string&) override { return Unit{}; }
  Status write(const Encoded& message) override {
    if (fails_after-- == 0) return Error{"the line is cut"};
    const auto head = read_piece(std::as_bytes(std::span(message.header)));
    EXPECT_TRUE(head);
    EXPECT_EQ(head->request_id, 7u);
    EXPECT_EQ(head->total, kAnswerBytes);
    const auto content = message.sections.at(0);
    std::copy(content.begin(), content.end(), bytes.begin() + static_cast<std::ptrdiff_t>(head->at));
    pieces.push_back({head->at, content.size()});
    return Unit{};
  }
  void start_heartbeats(std::chrono::milliseconds) override {}

  std::vector<std::byte> bytes = std::vector<std::byte>(kAnswerBytes);
  std::vector<PieceRange> pieces;
  int fails_after = -1;
};

class UploadPiecesTest : public ::testing::Test {
 protected:
  UploadPiecesTest() : payload(kAnswerBytes) {
    for (std::size_t j = 0; j < payload.size(); ++j) payload[j] = static_cast<std::byte>(j * j % 251 + 1);
    answer.sections = {payload};
    pieces.begin(7);
    pieces.place(payload);
  }
  void send_all() {
    while (const auto piece = pieces.take()) ASSERT_TRUE(pieces.send(link, *piece));
  }
  std::uint64_t sent() {
    std::uint64_t bytes = 0, end = 0;
    for (const PieceRange& range : pieces.sent_of(answer)) {
      EXPECT_GE(range.at, end) << "they ascend";
      end = range.at + range.bytes;
      bytes += range.bytes;
      EXPECT_EQ(std::memcmp(&link.bytes[range.at], &payload[range.at], range.bytes), 0);
    }
    return bytes;
  }

  std::vector<std::byte> payload;
  Encoded answer;
  UploadPieces pieces;
  KeepingLink link;
};

TEST_F(UploadPiecesTest, WaitsUntilARunIsLongEnoughAndSendsNoPieceThatIsTooLong) {
  pieces.ready({100'000, 10'000});
  EXPECT_FALSE(pieces.take());
  pieces.ready({130'000, 10'000});
  EXPECT_FALSE(pieces.take()) << "there is a gap";
  pieces.ready({110'000, 20'000});
  send_all();
  EXPECT_EQ(sent(), 40'000u);
  EXPECT_EQ(link.pieces.size(), 1u);
  pieces.ready({200'000, 200'000});
  send_all();
  for (const PieceRange& piece : link.pieces) EXPECT_LE(piece.bytes, UploadPieces::kMostBytes);
  EXPECT_GE(sent(), 240'000 - UploadPieces::kLeastBytes);
}

TEST_F(UploadPiecesTest, SendsWhatABackwardSweepFinishes) {
  for (std::size_t end = kAnswerBytes; end > 0; end -= 5'000) {
    pieces.ready({end - 5'000, 5'000});
    send_all();
  }
  EXPECT_GT(sent(), kAnswerBytes - UploadPieces::kLeastBytes);
  for (const PieceRange& piece : link.pieces) EXPECT_GE(piece.bytes, UploadPieces::kLeastBytes);
}

TEST_F(UploadPiecesTest, CountForNothingWhenTheAnswerIsAnother) {
  pieces.ready({0, 100'000});
  send_all();
  EXPECT_GT(sent(), 0u);
  payload[50'000] = std::byte{0};
  EXPECT_TRUE(pieces.sent_of(answer).empty());
  answer.sections = {};
  EXPECT_TRUE(pieces.sent_of(answer).empty()) << "it has no payload";
}

TEST_F(UploadPiecesTest, NothingIsTakenOnceTheyAreClosedAndANewAnswerBeginsWithout) {
  pieces.ready({0, 100'000});
  pieces.close();
  EXPECT_FALSE(pieces.take());
  EXPECT_FALSE(pieces.wait());
  pieces.begin(8);
  EXPECT_FALSE(pieces.take());
  EXPECT_TRUE(pieces.sent_of(answer).empty());
}

TEST_F(UploadPiecesTest, ALinkThatFailsIsRemembered) {
  link.fails_after = 1;
  pieces.ready({0, 200'000});
  ASSERT_TRUE(pieces.send(link, *pieces.take()));
  EXPECT_FALSE(pieces.send(link, *pieces.take()));
  EXPECT_EQ(pieces.trouble().error().message, "the line is cut");
  pieces.begin(9);
  EXPECT_TRUE(pieces.trouble());
}

TEST_F(UploadPiecesTest, GoOutOnAThreadOfTheirOwnWhileTheAnswerIsComputed) {
  std::uint64_t all = 0;
  for (int round = 0; round < 20; ++round) {
    pieces.begin(7);
    pieces.place(payload);
    link.pieces.clear();
    {
      const PieceSender sender(link, &pieces);
      for (std::size_t end = kAnswerBytes; end > 0; end -= 20'000) {
        pieces.ready({end - 20'000, 20'000});
        if (end % 100'000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    EXPECT_TRUE(pieces.trouble());
    std::uint64_t bytes = 0;
    for (const PieceRange& piece : link.pieces) bytes += piece.bytes;
    EXPECT_EQ(sent(), bytes);
    all += bytes;
  }
  EXPECT_GT(all, 0u);
  const PieceSender none(link, nullptr);
}

}  // namespace
}  // namespace gradwire
