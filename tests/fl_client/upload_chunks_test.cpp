// Tests of the chunks of an answer that a client sends while it still computes the rest.
#include "fl_client/upload_chunks.h"

#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

#include "base/crc32c.h"

namespace gradwire {
namespace {

constexpr std::size_t kAnswerBytes = 400'000;

// Stores the written chunks at their places in the answer.
struct ArrivedChunks {
  Status write(const Encoded& message) {
    if (fails_after-- == 0) return Error{"the line is cut"};
    const auto head = read_chunk(std::as_bytes(std::span(message.header)));
    EXPECT_TRUE(head);
    EXPECT_EQ(head->request_id, 7u);
    EXPECT_EQ(head->total, kAnswerBytes);
    const auto content = message.sections.at(0);
    std::copy(content.begin(), content.end(), bytes.begin() + static_cast<std::ptrdiff_t>(head->at));
    chunks.push_back({head->at, content.size()});
    return Unit{};
  }

  std::vector<std::byte> bytes = std::vector<std::byte>(kAnswerBytes);
  std::vector<ChunkRange> chunks;
  int fails_after = -1;
};

class UploadChunksTest : public ::testing::Test {
 protected:
  UploadChunksTest() : payload(kAnswerBytes) {
    for (std::size_t j = 0; j < payload.size(); ++j) payload[j] = static_cast<std::byte>(j * j % 251 + 1);
    answer.sections = {payload};
    chunks.begin(7);
    chunks.place(payload);
  }
  void send_all() {
    while (const auto chunk = chunks.take()) ASSERT_TRUE(chunks.send(write, *chunk));
  }
  std::uint64_t sent() {
    std::uint64_t bytes = 0, end = 0;
    for (const ChunkRange& range : chunks.sent_of(answer)) {
      EXPECT_GE(range.at, end) << "they ascend";
      end = range.at + range.bytes;
      bytes += range.bytes;
      EXPECT_EQ(std::memcmp(&link.bytes[range.at], &payload[range.at], range.bytes), 0);
    }
    return bytes;
  }

  std::vector<std::byte> payload;
  Encoded answer;
  UploadChunks chunks;
  ArrivedChunks link;
  const UploadChunks::Write write = [this](const Encoded& message) { return link.write(message); };
};

TEST_F(UploadChunksTest, WaitForALongRunAndAreNeverTooLong) {
  chunks.ready({100'000, 10'000});
  EXPECT_FALSE(chunks.take());
  chunks.ready({130'000, 10'000});
  EXPECT_FALSE(chunks.take()) << "there is a gap";
  chunks.ready({110'000, 20'000});
  send_all();
  EXPECT_EQ(sent(), 40'000u);
  EXPECT_EQ(link.chunks.size(), 1u);
  chunks.ready({200'000, 200'000});
  send_all();
  for (const ChunkRange& chunk : link.chunks) EXPECT_LE(chunk.bytes, UploadChunks::kMostBytes);
  EXPECT_GE(sent(), 240'000 - UploadChunks::kLeastBytes);
}

TEST_F(UploadChunksTest, SendTheFinishedPartsOfABackwardPass) {
  for (std::size_t end = kAnswerBytes; end > 0; end -= 5'000) {
    chunks.ready({end - 5'000, 5'000});
    send_all();
  }
  EXPECT_GT(sent(), kAnswerBytes - UploadChunks::kLeastBytes);
  for (const ChunkRange& chunk : link.chunks) EXPECT_GE(chunk.bytes, UploadChunks::kLeastBytes);
}

TEST_F(UploadChunksTest, AreDroppedForADifferentAnswer) {
  chunks.ready({0, 100'000});
  send_all();
  EXPECT_GT(sent(), 0u);
  payload[50'000] = std::byte{0};
  EXPECT_TRUE(chunks.sent_of(answer).empty());
  answer.sections = {};
  EXPECT_TRUE(chunks.sent_of(answer).empty()) << "it has no payload";
}

TEST_F(UploadChunksTest, AreNotTakenAfterCloseAndStartEmptyForANewAnswer) {
  chunks.ready({0, 100'000});
  chunks.close();
  EXPECT_FALSE(chunks.take());
  EXPECT_FALSE(chunks.wait());
  chunks.begin(8);
  EXPECT_FALSE(chunks.take());
  EXPECT_TRUE(chunks.sent_of(answer).empty());
}

TEST_F(UploadChunksTest, RememberALinkThatFails) {
  link.fails_after = 1;
  chunks.ready({0, 200'000});
  ASSERT_TRUE(chunks.send(write, *chunks.take()));
  EXPECT_FALSE(chunks.send(write, *chunks.take()));
  EXPECT_EQ(chunks.trouble().error().message, "the line is cut");
  chunks.begin(9);
  EXPECT_TRUE(chunks.trouble());
}

TEST_F(UploadChunksTest, AreSentOnAThreadWhileTheAnswerIsComputed) {
  std::uint64_t all = 0;
  for (int round = 0; round < 20; ++round) {
    chunks.begin(7);
    chunks.place(payload);
    link.chunks.clear();
    {
      const ChunkSender sender(write, &chunks);
      for (std::size_t end = kAnswerBytes; end > 0; end -= 20'000) {
        chunks.ready({end - 20'000, 20'000});
        if (end % 100'000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    EXPECT_TRUE(chunks.trouble());
    std::uint64_t bytes = 0;
    for (const ChunkRange& chunk : link.chunks) bytes += chunk.bytes;
    EXPECT_EQ(sent(), bytes);
    all += bytes;
  }
  EXPECT_GT(all, 0u);
  const ChunkSender none(write, nullptr);
}

}  // namespace
}  // namespace gradwire
