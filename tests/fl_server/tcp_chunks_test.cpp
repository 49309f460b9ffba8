// Tests of chunked replies at a server: they count as one reply, and hostile chunks harm no other client.
#include "base/crc32c.h"
#include "proto/wire/chunk.h"
#include "tests/fl_server/tcp_fixture.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kChunkedDim = 40'000;  // 320 KB
constexpr std::uint64_t kChunkedBytes = kChunkedDim * sizeof(double);

class TcpChunksTest : public TcpTransportTest {
 protected:
  void SetUp() override {
    open(patient(), kChunkedDim);
    begin();
    ask(1);
  }
  void ask(std::uint64_t request_id) {
    transport->send(0, request(request_id));
    ASSERT_TRUE(receive(clients[0]));
  }
  // Returns a chunk of a reply whose values are all `value`.
  static std::string chunk(std::uint64_t at, std::uint64_t bytes, std::uint64_t request_id = 1,
                           double value = 5, std::uint64_t total = kChunkedBytes) {
    const Vec<double> values(kChunkedDim, value);
    const auto content = std::as_bytes(std::span(values)).subspan(at % 8, bytes);
    return bytes_of(encode_chunk({request_id, at, total}, content, crc32c(content)));
  }
  std::string rest(const std::vector<ChunkRange>& came, std::uint64_t request_id = 1, double value = 5) {
    const Vec<double> values(kChunkedDim, value);
    Uplink<double> uplink;
    uplink.request_id = request_id;
    uplink.parts = {Payload<double>::dense(values)};
    Codec<double> codec(context);
    return bytes_of(reply_without(codec.encode(uplink), came));
  }
  void expect_reply(std::uint64_t request_id = 1, double value = 5) {
    const Event<double> event = next();
    ASSERT_EQ(event.kind, Kind::kReply);
    EXPECT_EQ(event.up.request_id, request_id);
    EXPECT_EQ(event.bytes, reply(0, request_id, value).size()) << "counted like a reply in one message";
    std::string frame;
    for (const auto part : event.frame) frame.append(reinterpret_cast<const char*>(part.data()), part.size());
    EXPECT_TRUE(frame == reply(0, request_id, value)) << "kept like a reply in one message";
    ASSERT_EQ(event.up.parts.size(), 1u);
    for (const double v : event.up.parts[0].values) ASSERT_EQ(v, value);
  }
  // Expects that the server disconnects client 0 with this reason, and serves it again from the start.
  void expect_refused(const std::string& why) {
    const auto refusal = clients[0].read_refusal();
    ASSERT_TRUE(refusal);
    EXPECT_NE(refusal->message().find(why), std::string::npos) << refusal->message();
    EXPECT_FALSE(refusal->fatal());
    ASSERT_EQ(next().kind, Kind::kLeft);
    clients[0] = come_back("a");
    ASSERT_EQ(next().kind, Kind::kJoined);
    ask(1);
    clients[0].send(reply(0, 1, 6));
    expect_reply(1, 6);
    expect_served(1, 1);
  }
};

TEST_F(TcpChunksTest, CompletesChunksWithTheirReply) {
  clients[0].send(chunk(200'000, 50'000) + heartbeat_frame() + chunk(16'000, 70'000) +
                  chunk(250'000, 10'000));
  clients[0].send(rest({{16'000, 70'000}, {200'000, 60'000}}));
  expect_reply();
  EXPECT_EQ(transport->bytes_in_chunks(), 130'000u);
}

TEST_F(TcpChunksTest, AcceptsChunksOfTheWholeReply) {
  clients[0].send(chunk(160'000, 160'000) + chunk(0, 160'000) + rest({{0, kChunkedBytes}}));
  expect_reply();
}

TEST_F(TcpChunksTest, DropsChunksWhenTheWholeReplyArrives) {
  clients[0].send(chunk(0, 160'000, 1, 7) + reply(0, 1, 5));
  expect_reply();
  EXPECT_EQ(transport->bytes_in_chunks(), 0u);
  ask(2);
  clients[0].send(chunk(0, 160'000, 2) + rest({{0, 160'000}}, 2));
  expect_reply(2);
}

TEST_F(TcpChunksTest, ReportsALateChunkedReplyAsLate) {
  clients[0].send(chunk(0, 160'000));
  ask(2);
  clients[0].send(chunk(160'000, 100'000) + rest({{0, 260'000}}));
  const Event<double> late = next();
  ASSERT_EQ(late.kind, Kind::kReply);
  EXPECT_EQ(late.up.request_id, 1u);
  EXPECT_EQ(late.bytes, reply(0, 1, 5).size());
  clients[0].send(chunk(80'000, 160'000, 2) + rest({{80'000, 160'000}}, 2));
  expect_reply(2);
}

TEST_F(TcpChunksTest, DropsChunksWhenTheClientStopsInTheMiddle) {
  clients[0].send(chunk(0, 160'000));
  ask(2);
  clients[0].send(chunk(160'000, 100'000, 2) + rest({{160'000, 100'000}}, 2));
  expect_reply(2);
}

TEST_F(TcpChunksTest, DropsChunksWithTheirConnection) {
  for (const std::string& sent : {chunk(0, 160'000), chunk(0, 160'000).substr(0, 100'000),
                                  chunk(0, 160'000) + rest({{0, 160'000}}).substr(0, 100'000)}) {
    clients[0].send(sent);
    turn_for(milliseconds(20));
    clients[0].hang_up();
    ASSERT_EQ(next().kind, Kind::kLeft);
    clients[0] = come_back("a");
    ASSERT_EQ(next().kind, Kind::kJoined);
    transport->send(0, request(1));
    const auto asked = receive(clients[0]);
    ASSERT_TRUE(asked);
    EXPECT_EQ(asked->have_bytes, 0u);
  }
  clients[0].send(chunk(160'000, 160'000) + rest({{160'000, 160'000}}));
  expect_reply();
}

TEST_F(TcpChunksTest, BeginsANewConnectionWithoutChunks) {
  clients[0].send(chunk(0, 160'000) + chunk(160'000, 160'000).substr(0, 100'000));
  turn_for(milliseconds(20));
  FakeClient old = std::move(clients[0]);
  clients[0] = come_back("a");
  while (next(0.05).kind != Kind::kTimeout) {
  }
  ask(1);
  clients[0].send(chunk(0, 100'000, 1, 6) + rest({{0, 100'000}}, 1, 6));
  expect_reply(1, 6);
}

TEST_F(TcpChunksTest, DetectsChunksOfAnotherPayload) {
  clients[0].send(chunk(0, 160'000, 1, 7) + rest({{0, 160'000}}));
  expect_refused("checksum");
}

TEST_F(TcpChunksTest, RefusesChunksThatDifferFromTheReplysCount) {
  clients[0].send(chunk(0, 160'000) + rest({{0, 100'000}}));
  expect_refused("bytes here");
}

TEST_F(TcpChunksTest, RefusesMissingChunks) {
  clients[0].send(rest({{0, 100'000}}));
  expect_refused("bytes here");
}

TEST_F(TcpChunksTest, RefusesChunksOfAnotherReply) {
  ask(2);
  clients[0].send(chunk(0, 160'000, 1) + rest({{0, 160'000}}, 2));
  const auto refusal = clients[0].read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->message().find("another one"), std::string::npos) << refusal->message();
}

TEST_F(TcpChunksTest, RefusesAWrongTotalLength) {
  clients[0].send(chunk(0, 160'000, 1, 5, 200'000) + rest({{0, 160'000}}));
  expect_refused("has the wrong length");
}

TEST_F(TcpChunksTest, RefusesChunksThatWereNotRequested) {
  clients[0].send(chunk(0, 160'000, 2));
  expect_refused("that the server did not request");
}

TEST_F(TcpChunksTest, RefusesOverlappingChunks) {
  clients[0].send(chunk(0, 160'000) + chunk(100'000, 100'000));
  expect_refused("already arrived");
}

TEST_F(TcpChunksTest, RefusesChunksBeforeTheJoin) {
  FakeClient unauthenticated = connect();
  unauthenticated.send(chunk(0, 160'000));
  const auto refusal = unauthenticated.read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->message().find("above the limit of 0"), std::string::npos) << refusal->message();
  expect_served(1, 1);
}

// The server accepts new bytes, and disconnects the client when it repeats some.
TEST_F(TcpChunksTest, EndsAFloodOfChunks) {
  std::string flood;
  for (std::uint64_t at = 0; at + kLeastChunkBytes <= kChunkedBytes; at += kLeastChunkBytes)
    flood += chunk(at, kLeastChunkBytes);
  clients[0].send(flood + chunk(0, kLeastChunkBytes));
  expect_refused("already arrived");
}

}  // namespace
}  // namespace gradwire
