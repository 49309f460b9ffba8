// Replies in pieces, at a server: they count as one, and nothing that a peer makes of them harms anybody.
#include "base/crc32c.h"
#include "proto/wire/piece.h"
#include "tests/fl_server/tcp_fixture.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kPiecedDim = 40'000;  // 320 KB
constexpr std::uint64_t kPiecedBytes = kPiecedDim * sizeof(double);

class TcpPiecesTest : public TcpTransportTest {
 protected:
  void SetUp() override {
    open(patient(), kPiecedDim);
    begin();
    ask(1);
  }
  void ask(std::uint64_t request_id) {
    transport->send(0, request(request_id));
    ASSERT_TRUE(receive(clients[0]));
  }
  // All values of the reply are `value`.
  static std::string piece(std::uint64_t at, std::uint64_t bytes, std::uint64_t request_id = 1,
                           double value = 5, std::uint64_t total = kPiecedBytes) {
    const Vec<double> values(kPiecedDim, value);
    const auto content = std::as_bytes(std::span(values)).subspan(at % 8, bytes);
    return bytes_of(encode_piece({request_id, at, total}, content, crc32c(content)));
  }
  std::string rest(const std::vector<PieceRange>& came, std::uint64_t request_id = 1, double value = 5) {
    const Vec<double> values(kPiecedDim, value);
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
    EXPECT_EQ(event.bytes, reply(0, request_id, value).size()) << "counted as if it had come at once";
    std::string frame;
    for (const auto part : event.frame) frame.append(reinterpret_cast<const char*>(part.data()), part.size());
    EXPECT_TRUE(frame == reply(0, request_id, value)) << "kept as if it had come at once";
    ASSERT_EQ(event.up.parts.size(), 1u);
    for (const double v : event.up.parts[0].values) ASSERT_EQ(v, value);
  }
  // The server disconnects client 0, says why, and serves it again from the start.
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

TEST_F(TcpPiecesTest, AreCompletedByTheirReply) {
  clients[0].send(piece(200'000, 50'000) + heartbeat_frame() + piece(16'000, 70'000) +
                  piece(250'000, 10'000));
  clients[0].send(rest({{16'000, 70'000}, {200'000, 60'000}}));
  expect_reply();
  EXPECT_EQ(transport->bytes_in_pieces(), 130'000u);
}

TEST_F(TcpPiecesTest, MayBeAllOfIt) {
  clients[0].send(piece(160'000, 160'000) + piece(0, 160'000) + rest({{0, kPiecedBytes}}));
  expect_reply();
}

TEST_F(TcpPiecesTest, AreForgottenWhenTheWholeReplyComes) {
  clients[0].send(piece(0, 160'000, 1, 7) + reply(0, 1, 5));
  expect_reply();
  EXPECT_EQ(transport->bytes_in_pieces(), 0u);
  ask(2);
  clients[0].send(piece(0, 160'000, 2) + rest({{0, 160'000}}, 2));
  expect_reply(2);
}

TEST_F(TcpPiecesTest, OfAReplyThatIsLateAreALateReply) {
  clients[0].send(piece(0, 160'000));
  ask(2);
  clients[0].send(piece(160'000, 100'000) + rest({{0, 260'000}}));
  const Event<double> late = next();
  ASSERT_EQ(late.kind, Kind::kReply);
  EXPECT_EQ(late.up.request_id, 1u);
  EXPECT_EQ(late.bytes, reply(0, 1, 5).size());
  clients[0].send(piece(80'000, 160'000, 2) + rest({{80'000, 160'000}}, 2));
  expect_reply(2);
}

TEST_F(TcpPiecesTest, AreForgottenWhenTheClientStopsInTheMiddle) {
  clients[0].send(piece(0, 160'000));
  ask(2);
  clients[0].send(piece(160'000, 100'000, 2) + rest({{160'000, 100'000}}, 2));
  expect_reply(2);
}

TEST_F(TcpPiecesTest, GoWithTheirConnection) {
  for (const std::string& sent : {piece(0, 160'000), piece(0, 160'000).substr(0, 100'000),
                                  piece(0, 160'000) + rest({{0, 160'000}}).substr(0, 100'000)}) {
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
  clients[0].send(piece(160'000, 160'000) + rest({{160'000, 160'000}}));
  expect_reply();
}

TEST_F(TcpPiecesTest, TheNewConnectionOfAClientBeginsWithNone) {
  clients[0].send(piece(0, 160'000) + piece(160'000, 160'000).substr(0, 100'000));
  turn_for(milliseconds(20));
  FakeClient old = std::move(clients[0]);
  clients[0] = come_back("a");
  while (next(0.05).kind != Kind::kTimeout) {
  }
  ask(1);
  clients[0].send(piece(0, 100'000, 1, 6) + rest({{0, 100'000}}, 1, 6));
  expect_reply(1, 6);
}

TEST_F(TcpPiecesTest, OfAnotherPayloadThanTheReplysAreFoundOut) {
  clients[0].send(piece(0, 160'000, 1, 7) + rest({{0, 160'000}}));
  expect_refused("checksum");
}

TEST_F(TcpPiecesTest, ThatAreNotThoseThatTheReplyNamesAreRefused) {
  clients[0].send(piece(0, 160'000) + rest({{0, 100'000}}));
  expect_refused("bytes are here");
}

TEST_F(TcpPiecesTest, ThatDidNotComeAreRefused) {
  clients[0].send(rest({{0, 100'000}}));
  expect_refused("bytes are here");
}

TEST_F(TcpPiecesTest, OfAnotherReplyThanTheOneThatEndsThemAreRefused) {
  ask(2);
  clients[0].send(piece(0, 160'000, 1) + rest({{0, 160'000}}, 2));
  const auto refusal = clients[0].read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->message().find("another one"), std::string::npos) << refusal->message();
}

TEST_F(TcpPiecesTest, OfALengthThatIsNotTheReplysAreRefused) {
  clients[0].send(piece(0, 160'000, 1, 5, 200'000) + rest({{0, 160'000}}));
  expect_refused("of another length");
}

TEST_F(TcpPiecesTest, ThatNobodyAskedForAreRefused) {
  clients[0].send(piece(0, 160'000, 2));
  expect_refused("nobody has asked for");
}

TEST_F(TcpPiecesTest, ThatOverlapAreRefused) {
  clients[0].send(piece(0, 160'000) + piece(100'000, 100'000));
  expect_refused("came before");
}

TEST_F(TcpPiecesTest, AreNotForThoseWhoHaveNotJoined) {
  FakeClient stranger = connect();
  stranger.send(piece(0, 160'000));
  const auto refusal = stranger.read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->message().find("above the limit of 0"), std::string::npos) << refusal->message();
  expect_served(1, 1);
}

// As long as they are new bytes they are welcome; then the flood has an end.
TEST_F(TcpPiecesTest, AFloodOfThemHasAnEnd) {
  std::string flood;
  for (std::uint64_t at = 0; at + kLeastPieceBytes <= kPiecedBytes; at += kLeastPieceBytes)
    flood += piece(at, kLeastPieceBytes);
  clients[0].send(flood + piece(0, kLeastPieceBytes));
  expect_refused("came before");
}

}  // namespace
}  // namespace gradwire
