// Tests of replies whose connection breaks, and of the acknowledgements of replies.
#include "base/byte_buffer.h"
#include "proto/wire/reply_tail.h"
#include "tests/fl_server/tcp_fixture.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kLongDim = 40'000;  // 320 KB: five chunks

class TcpUploadTest : public TcpTransportTest {
 protected:
  void SetUp() override {
    open(patient(), kLongDim);
    begin();
    transport->send(0, request(1));
    ASSERT_TRUE(receive(clients[0]));
  }
  // Sends this many bytes of client 0's reply and disconnects. Client 0 then reconnects.
  void break_after(std::size_t bytes, std::uint64_t request_id = 1, double value = 5) {
    clients[0].send(reply(0, request_id, value).substr(0, bytes));
    turn_for(milliseconds(20));
    clients[0].hang_up();
    expect(Kind::kLeft);
    clients[0] = come_back("a");
    expect(Kind::kJoined);
  }
  void expect(Kind kind) { ASSERT_EQ(next().kind, kind); }
  // Asks client 0 again. Returns the number of bytes that the server already has.
  std::uint64_t ask_again(std::uint64_t request_id = 1) {
    transport->send(0, request(request_id));
    const auto got = receive(clients[0]);
    EXPECT_TRUE(got);
    return got ? got->have_bytes : 0;
  }
  std::string tail(std::uint64_t from, double value = 5, std::uint64_t request_id = 1) {
    const Vec<double> values(kLongDim, value);
    Uplink<double> uplink;
    uplink.request_id = request_id;
    uplink.parts = {Payload<double>::dense(values)};
    Codec<double> codec(context);
    return bytes_of(reply_tail(codec.encode(uplink), from));
  }
  void expect_reply(double value) {
    const Event<double> event = next();
    ASSERT_EQ(event.kind, Kind::kReply);
    EXPECT_EQ(event.bytes, reply(0, 1, value).size()) << "counted like a reply in one message";
    std::string frame;
    for (const auto segment : event.frame)
      frame.append(reinterpret_cast<const char*>(segment.data()), segment.size());
    EXPECT_TRUE(frame == reply(0, 1, value)) << "kept like a reply in one message";
    ASSERT_EQ(event.up.parts.size(), 1u);
    EXPECT_EQ(event.up.parts[0].values.size(), kLongDim);
    for (const double v : event.up.parts[0].values) ASSERT_EQ(v, value);
  }
};

TEST_F(TcpUploadTest, ResumesAtTheLastWholeChunk) {
  break_after(200'000);
  const std::uint64_t have = ask_again();
  EXPECT_EQ(have, 3 * kChunkBytes);
  clients[0].send(tail(have));
  expect_reply(5);
}

TEST_F(TcpUploadTest, ResumesAfterRepeatedBreaks) {
  break_after(100'000);
  ASSERT_EQ(ask_again(), kChunkBytes);
  clients[0].send(tail(kChunkBytes).substr(0, 150'000));
  turn_for(milliseconds(20));
  clients[0].hang_up();
  expect(Kind::kLeft);
  clients[0] = come_back("a");
  expect(Kind::kJoined);
  ASSERT_EQ(ask_again(), 3 * kChunkBytes);
  clients[0].send(tail(3 * kChunkBytes));
  expect_reply(5);
}

TEST_F(TcpUploadTest, ResumesIfTheClientReturnsBeforeItsOldConnectionIsMissed) {
  clients[0].send(reply(0, 1, 5).substr(0, 150'000));
  turn_for(milliseconds(20));
  FakeClient old = std::move(clients[0]);
  clients[0] = come_back("a");
  while (next(0.05).kind != Kind::kTimeout) {
  }
  ASSERT_EQ(ask_again(), 2 * kChunkBytes);
  clients[0].send(tail(2 * kChunkBytes));
  expect_reply(5);
}

TEST_F(TcpUploadTest, RestartsIfTheClientWantsTo) {
  break_after(200'000);
  EXPECT_GT(ask_again(), 0u);
  clients[0].send(reply(0, 1, 6));
  expect_reply(6);
}

TEST_F(TcpUploadTest, RestartsIfLessThanAChunkArrived) {
  break_after(50'000);
  EXPECT_EQ(ask_again(), 0u);
  clients[0].send(reply(0, 1, 5));
  expect_reply(5);
}

TEST_F(TcpUploadTest, RestartsForANewerRequest) {
  break_after(200'000);
  EXPECT_EQ(ask_again(2), 0u);
}

TEST_F(TcpUploadTest, RefusesARestThatDoesNotFit) {
  for (const std::string& bad : {tail(3 * kChunkBytes, 6), tail(3 * kChunkBytes, 5, 2)}) {
    break_after(200'000);
    ASSERT_EQ(ask_again(), 3 * kChunkBytes);
    clients[0].send(bad);
    turn_for(milliseconds(20));
    EXPECT_EQ(next().kind, Kind::kLeft);
    clients[0] = come_back("a");
    expect(Kind::kJoined);
    EXPECT_EQ(ask_again(), 0u) << "the received bytes are no longer trusted";
  }
  clients[0].send(reply(0, 1, 5));
  expect_reply(5);
}

// A client that was asked twice may send the rest twice, or send a rest that starts too early.
TEST_F(TcpUploadTest, DropsARepeatedOrMisplacedRest) {
  break_after(200'000);
  ASSERT_EQ(ask_again(), 3 * kChunkBytes);
  clients[0].send(tail(kChunkBytes));
  clients[0].send(tail(3 * kChunkBytes));
  expect_reply(5);
  clients[0].send(tail(3 * kChunkBytes));
  transport->send(0, request(2));
  ASSERT_TRUE(receive(clients[0])) << "it is still connected";
}

TEST_F(TcpUploadTest, AcknowledgesAReplyWithTheNextMessage) {
  transport->acknowledge(0, 1, Ack::kAccepted);
  transport->acknowledge(0, 1, Ack::kLate);
  transport->send(0, request(2));
  for (const wire::Ack want : {wire::RECEIPT_ACCEPTED, wire::RECEIPT_LATE}) {
    const auto frame = clients[0].read_message();
    ASSERT_TRUE(frame);
    ASSERT_EQ(frame->prefix.type, FrameType::kReceived);
    wire::Received received;
    ASSERT_TRUE(parse_control(std::as_bytes(std::span(frame->header)), received));
    EXPECT_EQ(received.request_id(), 1u);
    EXPECT_EQ(received.receipt(), want);
  }
  EXPECT_TRUE(receive(clients[0]));
}

TEST_F(TcpUploadTest, AcknowledgesWithinASecondWithoutANextMessage) {
  transport->acknowledge(0, 1, Ack::kLate);
  const auto frame = clients[0].read_message();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->prefix.type, FrameType::kReceived);
}

// ---- the rest of a reply, as bytes ----

Encoded encoded_reply(Codec<double>& codec, const Vec<double>& values) {
  Uplink<double> uplink;
  uplink.request_id = 7;
  uplink.parts = {Payload<double>::dense(values)};
  return codec.encode(uplink);
}
std::string payload_of(const Encoded& message) {
  std::string text;
  for (const auto s : message.sections) text.append(reinterpret_cast<const char*>(s.data()), s.size());
  return text;
}

// Returns a packed reply, larger than the buffers that are reused.
std::string packed_reply(const CodecContext& context, std::uint64_t request_id) {
  const Vec<double> values(context.dim, 0.5);
  Uplink<double> uplink;
  uplink.request_id = request_id;
  Payload<double> packed = Payload<double>::dense(values);
  packed.packing = Packing::kNatural;
  uplink.parts = {packed};
  Codec<double> codec(context);
  return bytes_of(codec.encode(uplink));
}

TEST_F(TcpTransportTest, ReadsAnOldReplyToItsEndWhenANewerRequestIsSent) {
  open(patient(), 400'000);
  begin();
  transport->send(0, request(1));
  ASSERT_TRUE(receive(clients[0]));
  const std::string old = packed_reply(context, 1), newer = packed_reply(context, 2);
  ASSERT_GT(old.size(), ByteBuffer::kKeptBytes);
  clients[0].send(old.substr(0, old.size() / 2));
  turn_for(milliseconds(20));
  transport->send(0, request(2));
  ASSERT_TRUE(receive(clients[0]));
  clients[0].send(old.substr(old.size() / 2));
  const Event<double> late = next();
  ASSERT_EQ(late.kind, Kind::kReply);
  EXPECT_EQ(late.up.request_id, 1u);
  EXPECT_TRUE(late.frame.empty());
  clients[0].send(newer);
  const Event<double> event = next();
  ASSERT_EQ(event.kind, Kind::kReply);
  EXPECT_EQ(event.up.request_id, 2u);
  std::string frame;
  for (const auto segment : event.frame)
    frame.append(reinterpret_cast<const char*>(segment.data()), segment.size());
  EXPECT_TRUE(frame == newer);
}

TEST(ReplyTail, HasTheSameHeaderAndTheRestOfThePayload) {
  Codec<double> codec({1, 3000, 2, parse_compressor("identity", 3000), {ZstdMode::Kind::kOff, 0}});
  Vec<double> values(3000);
  std::iota(values.begin(), values.end(), 0.0);
  const Encoded whole = encoded_reply(codec, values);
  const std::string payload = payload_of(whole);
  for (const std::uint64_t from : {std::uint64_t{1}, std::uint64_t{8}, std::uint64_t{23'999}}) {
    const Encoded tail = reply_tail(whole, from);
    EXPECT_EQ(payload_of(tail), payload.substr(from));
    EXPECT_EQ(tail.bytes, bytes_of(tail).size());
    EXPECT_EQ(tail_start(std::as_bytes(std::span(tail.header)), std::as_bytes(std::span(whole.header))),
              from);
  }
}

TEST(ReplyTail, RejectsAHeaderThatDiffersInAnyByte) {
  Codec<double> codec({1, 30, 2, parse_compressor("identity", 30), {ZstdMode::Kind::kOff, 0}});
  const Vec<double> values(30, 1.0);
  const Encoded whole = encoded_reply(codec, values);
  const auto known = std::as_bytes(std::span(whole.header));
  const std::string good = reply_tail(whole, 64).header;
  for (std::size_t k = 0; k < good.size(); ++k) {
    std::string bad = good;
    bad[k] ^= 1;
    EXPECT_NE(tail_start(std::as_bytes(std::span(bad)), known), 64u) << k;
    EXPECT_FALSE(tail_start(std::as_bytes(std::span(good)).first(k), known)) << k;
  }
  EXPECT_FALSE(tail_start(known, known));
  EXPECT_FALSE(tail_start(std::as_bytes(std::span(good)), {}));
}

TEST(ReplyTail, IsNotAReplyByItself) {
  const CodecContext context{1, 30, 2, parse_compressor("identity", 30), {ZstdMode::Kind::kOff, 0}};
  Codec<double> codec(context);
  const Vec<double> values(30, 1.0);
  const Encoded tail = reply_tail(encoded_reply(codec, values), 64);
  const auto prefix = read_prefix(tail.prefix, 1 << 20);
  ASSERT_TRUE(prefix);
  UplinkSlot<double> slot(context);
  EXPECT_FALSE(slot.prepare(*prefix, std::as_bytes(std::span(tail.header))));
}

}  // namespace
}  // namespace gradwire
