// Tests of sums of replies: their encoding, the bytes that are refused, and the server's use of a sum.
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

#include "rounds/finite.h"
#include "rounds/reply_sum.h"
#include "tests/fl_server/multiplexer_fixture.h"

namespace gradwire {
namespace {

using Covers = std::vector<ClientId>;

// ---- the codec ----

class SumCodecTest : public ::testing::Test {
 protected:
  struct Frame {
    Prefix prefix;
    std::string header, payload;
  };
  Frame frame_of(const Uplink<double>& up, const Covers& covers) {
    Codec<double> codec(context);
    const Encoded& message = codec.encode(up, covers);
    Frame frame;
    frame.prefix = *read_prefix(message.prefix, UINT64_MAX);
    frame.header = message.header;
    for (const auto section : message.sections)
      frame.payload.append(reinterpret_cast<const char*>(section.data()), section.size());
    return frame;
  }
  Uplink<double> dense_uplink(ClientId client) {
    Uplink<double> up;
    up.request_id = 9;
    up.round = 4;
    up.client = client;
    up.loss = 0.5;
    up.grad_calls = 30;
    up.parts = {Payload<double>::dense(values)};
    return up;
  }
  std::string trouble(const Frame& frame, bool as_sum = true) {
    UplinkSlot<double> slot(context);
    const auto header = std::as_bytes(std::span(frame.header));
    const auto places = as_sum ? slot.prepare_sum(frame.prefix, header) : slot.prepare(frame.prefix, header);
    return places ? "" : places.error().message;
  }
  std::string trouble_of(const Covers& covers) { return trouble(frame_of(dense_uplink(1), covers)); }

  CodecContext context{1, 3, 8, parse_compressor("identity", 3), {ZstdMode::Kind::kOff, 0}};
  const Vec<double> values{1, -2, 3.5};
};

TEST_F(SumCodecTest, RoundTripsASumWithItsClients) {
  const Frame frame = frame_of(dense_uplink(1), {1, 4, 7});
  UplinkSlot<double> slot(context);
  const auto places = slot.prepare_sum(frame.prefix, std::as_bytes(std::span(frame.header)));
  ASSERT_TRUE(places) << places.error().message;
  ASSERT_EQ(places->size(), 1u);
  std::memcpy((*places)[0].data(), frame.payload.data(), frame.payload.size());
  const auto up = slot.finish(1);
  ASSERT_TRUE(up) << up.error().message;
  EXPECT_EQ(Covers(slot.covers().begin(), slot.covers().end()), (Covers{1, 4, 7}));
  EXPECT_EQ(up->request_id, 9u);
  EXPECT_EQ(up->round, 4u);
  EXPECT_EQ(up->grad_calls, 30u);
  EXPECT_EQ(Vec<double>(up->parts[0].values.begin(), up->parts[0].values.end()), values);
}

TEST_F(SumCodecTest, FitsThousandsOfClientsIntoOneHeader) {
  context.clients = kMostCovered + 10;
  Covers all(kMostCovered);
  for (std::size_t k = 0; k < all.size(); ++k) all[k] = static_cast<ClientId>(k + 1);
  EXPECT_EQ(trouble_of(all), "");
  all.push_back(all.back() + 1);
  EXPECT_NE(trouble_of(all), "");
}

TEST_F(SumCodecTest, RefusesInvalidListsOfClients) {
  EXPECT_EQ(trouble_of({1, 7}), "");
  EXPECT_NE(trouble_of({}), "");
  EXPECT_EQ(trouble_of({1}), "a sum covers 1 clients");
  EXPECT_EQ(trouble_of({1, 3, 3}), "the clients of a sum are not in ascending order");
  EXPECT_EQ(trouble_of({1, 5, 3}), "the clients of a sum are not in ascending order");
  const std::string strange = "a sum covers an unknown client, or is not named after its first client";
  EXPECT_EQ(trouble_of({1, 8}), strange);
  EXPECT_EQ(trouble_of({1, 0xFFFFFFFF}), strange);
  EXPECT_EQ(trouble_of({2, 3}), strange);
}

TEST_F(SumCodecTest, RefusesSumsThatAreNotOfVectors) {
  Uplink<double> up = dense_uplink(1);
  up.status = ReplyStatus::kNeedsState;
  EXPECT_EQ(trouble(frame_of(up, {1, 2})), "a sum of replies that cannot be added up");
  up = dense_uplink(1);
  const std::vector<std::uint32_t> indices{0, 2};
  Payload<double> sparse;
  sparse.shape = Shape::kSparse;
  sparse.dim = 3;
  sparse.indices = indices;
  sparse.values = std::span(values).first(2);
  up.parts = {sparse};
  EXPECT_EQ(trouble(frame_of(up, {1, 2})), "a sum must consist of whole vectors");
  const Vec<double> longer(4, 1.0);
  up.parts = {Payload<double>::dense(longer)};
  EXPECT_EQ(trouble(frame_of(up, {1, 2})), "part 0: a vector is longer than the dimension of the run");
}

TEST_F(SumCodecTest, RefusesClientsThatReplyForOthers) {
  EXPECT_EQ(trouble(frame_of(dense_uplink(1), {1, 2}), /*as_sum=*/false), "a client answers for others");
  EXPECT_EQ(trouble(frame_of(dense_uplink(1), {}), /*as_sum=*/false), "");
}

TEST_F(SumCodecTest, RefusesDamagedHeaders) {
  const Frame frame = frame_of(dense_uplink(1), {1, 4, 7});
  for (std::size_t at = 0; at < frame.header.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      Frame damaged = frame;
      damaged.header[at] = static_cast<char>(damaged.header[at] ^ (1 << bit));
      trouble(damaged);  // must return, with or without an error
    }
    Frame cut = frame;
    cut.header.resize(at);
    cut.prefix.header_len = static_cast<std::uint32_t>(at);
    EXPECT_NE(trouble(cut), "") << at;
  }
}

// ---- adding ----

TEST(ReplySum, AddsVectorsLossesAndCounts) {
  const Vec<double> a{1, 2, 3}, b{10, 20, 30};
  const std::vector<std::uint32_t> indices{0, 2};
  Uplink<double> first, second, third;
  first.parts = {Payload<double>::dense(a), Payload<double>::nothing(3)};
  first.client = 2;
  first.loss = 1;
  first.grad_calls = 5;
  second = third = first;
  second.client = 3;
  Payload<double> sparse;
  sparse.shape = Shape::kSparse;
  sparse.dim = 3;
  sparse.indices = indices;
  sparse.values = std::span(b).first(2);
  second.parts = {sparse, Payload<double>::nothing(3)};
  ReplySum<double> sum;
  EXPECT_TRUE(sum.add(first));
  EXPECT_TRUE(sum.add(second));
  third.client = 3;
  EXPECT_FALSE(sum.add(third)) << "one client twice";
  third.client = 4;
  third.parts = {Payload<double>::dense(a)};
  EXPECT_FALSE(sum.add(third)) << "other parts";
  third.parts = first.parts;
  third.round = 1;
  EXPECT_FALSE(sum.add(third)) << "another round";
  const Uplink<double> up = sum.sum();
  EXPECT_EQ(up.client, 2u);
  EXPECT_EQ(up.loss, 2);
  EXPECT_EQ(up.grad_calls, 10u);
  EXPECT_EQ(Vec<double>(up.parts[0].values.begin(), up.parts[0].values.end()), (Vec<double>{11, 2, 23}));
  EXPECT_EQ(up.parts[1].shape, Shape::kNothing);
  EXPECT_EQ(sum.covers().size(), 2u);
}

TEST(ReplySum, ReportsWhenFiniteNumbersHaveAnInfiniteSum) {
  const Vec<double> large(2, std::numeric_limits<double>::max());
  Uplink<double> up;
  up.parts = {Payload<double>::dense(large)};
  ReplySum<double> sum;
  ASSERT_TRUE(sum.add(up));
  EXPECT_TRUE(is_finite(sum.sum()));
  sum.clear();
  ASSERT_TRUE(sum.add(up));
  up.client = 1;
  ASSERT_TRUE(sum.add(up));
  EXPECT_FALSE(is_finite(sum.sum()));
}

// ---- the server, with a relay that the test drives by hand ----

class SumMultiplexerTest : public MultiplexerTest {
 protected:
  SumMultiplexerTest() { adds = takes_sums = true; }

  std::string sum_frame(const Covers& covers, std::uint64_t request_id, double value) {
    const Vec<double> values(context.dim, value);
    Uplink<double> up;
    up.request_id = request_id;
    up.client = covers.empty() ? 0 : covers.front();
    up.grad_calls = 20;
    up.parts = {Payload<double>::dense(values)};
    Codec<double> codec(context);
    return bytes_of(codec.encode(up, covers));
  }
  // Asks both clients of the relay, and reads the requests.
  void ask(FakeClient& relay, std::uint64_t request_id) {
    for (const std::uint32_t client : {0, 1}) transport->send(client, request(request_id));
    transport->next(transport->now() + 0.01);
    ASSERT_TRUE(relay.read_message() && relay.read_message());
    const auto told = relay.read_message();
    wire::Relay message;
    ASSERT_TRUE(told && told->prefix.type == FrameType::kRelay && message.ParseFromString(told->header));
    EXPECT_EQ(message.asked(), request_id);
  }
};

TEST_F(SumMultiplexerTest, AcceptsASumOfItsSite) {
  open();
  FakeClient relay = begin_through_relay();
  ask(relay, 1);
  const std::string frame = sum_frame({0, 1}, 1, 3);
  relay.send(frame);
  const Event<double> event = next();
  ASSERT_EQ(event.kind, Kind::kReply);
  EXPECT_EQ(Covers(event.covers.begin(), event.covers.end()), (Covers{0, 1}));
  EXPECT_EQ(event.up.client, 0u);
  EXPECT_EQ(event.up.parts[0].values[2], 3);
  EXPECT_EQ(event.bytes, frame.size());
}

TEST_F(SumMultiplexerTest, DropsASumThatIsLateOrCoversKnownReplies) {
  open();
  FakeClient relay = begin_through_relay();
  ask(relay, 1);
  relay.send(on_channel(reply(1, 1, 5), 2));
  relay.send(sum_frame({0, 1}, 1, 3));
  relay.send(on_channel(reply(0, 1, 4), 1));
  EXPECT_EQ(next().up.client, 1u);
  const Event<double> own = next();
  EXPECT_EQ(own.up.client, 0u);
  EXPECT_TRUE(own.covers.empty());
  EXPECT_EQ(own.up.parts.size(), 1u) << "no reply of client 0 was used yet";
  for (const std::uint32_t client : {0, 1}) transport->send(client, request(7));
  relay.send(sum_frame({0, 1}, 1, 3));
  relay.send(sum_frame({0, 1}, 7, 5));
  EXPECT_EQ(next().up.request_id, 7u);
  std::vector<wire::Ack> acks;
  while (acks.size() < 4) {
    const auto frame = relay.read_message();
    ASSERT_TRUE(frame);
    wire::Received received;
    if (frame->prefix.type != FrameType::kReceived) continue;
    ASSERT_TRUE(received.ParseFromString(frame->header));
    EXPECT_EQ(received.request_id(), 1u);
    acks.push_back(received.receipt());
  }
  EXPECT_EQ(acks, (std::vector<wire::Ack>{wire::RECEIPT_REFUSED, wire::RECEIPT_REFUSED, wire::RECEIPT_LATE,
                                          wire::RECEIPT_LATE}));
}

TEST_F(SumMultiplexerTest, RequestsSeparateRepliesIfASumCoversAClientElsewhere) {
  open();
  FakeClient relay = begin_through_relay();
  clients.push_back(come_back("b"));
  for (const std::uint32_t client : {0, 1}) transport->send(client, request(1));
  relay.send(sum_frame({0, 1}, 1, 3));
  wire::Received received;
  for (auto frame = relay.read_message();; frame = relay.read_message()) {
    ASSERT_TRUE(frame);
    if (frame->prefix.type != FrameType::kReceived) continue;
    ASSERT_TRUE(received.ParseFromString(frame->header));
    EXPECT_EQ(received.receipt(), wire::RECEIPT_REFUSED);
    EXPECT_EQ(frame->prefix.channel, 1u);
    break;
  }
  relay.send(on_channel(reply(0, 1, 4), 1));
  Event<double> event = next();
  while (event.kind == Kind::kLeft || event.kind == Kind::kJoined) event = next();
  ASSERT_EQ(event.kind, Kind::kReply);
  EXPECT_TRUE(event.covers.empty());
}

TEST_F(SumMultiplexerTest, DisconnectsARelayThatCoversOtherClients) {
  for (const Covers& covers : {Covers{0, 2}, Covers{1, 0}, Covers{0, 0}, Covers{0}, Covers{}}) {
    open();
    FakeClient relay = begin_through_relay();
    ask(relay, 1);
    relay.send(sum_frame(covers, 1, 3));
    const auto refusal = relay.read_message();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->prefix.type, FrameType::kError);
    EXPECT_EQ(refusal->prefix.channel, 0u);
    transport.reset();
  }
}

TEST_F(SumMultiplexerTest, UsesARepeatedSumOnce) {
  open();
  FakeClient relay = begin_through_relay();
  ask(relay, 1);
  for (int k = 0; k < 8; ++k) relay.send(sum_frame({0, 1}, 1, 3));
  EXPECT_EQ(next().covers.size(), 2u);
  EXPECT_EQ(transport->next(transport->now() + 0.05).kind, Kind::kTimeout);
  for (const std::uint32_t client : {0, 1}) transport->send(client, request(2));
  relay.send(sum_frame({0, 1}, 2, 3));
  EXPECT_EQ(next().up.request_id, 2u);
}

TEST_F(SumMultiplexerTest, KeepsTheConnectionWhenASumArrivesAfterTheRun) {
  open();
  FakeClient relay = begin_through_relay();
  ask(relay, 1);
  transport.reset();
  lines.clear();
  relay.send(sum_frame({0, 1}, 1, 3));
  turn_for(milliseconds(50));
  EXPECT_TRUE(lines.empty()) << lines.front();
}

TEST_F(SumMultiplexerTest, RefusesSumsFromARelayThatDidNotAnnounceThem) {
  adds = false;
  open();
  FakeClient relay = begin_through_relay();
  relay.send(sum_frame({0, 1}, 1, 3));
  const auto refusal = relay.read_message();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->prefix.type, FrameType::kError);
}

TEST_F(SumMultiplexerTest, RefusesSumsInARunWithoutThem) {
  open();
  {
    const FakeClient relay = begin_through_relay();
    EXPECT_TRUE(told.adds());
  }
  transport.reset();
  takes_sums = false;
  open();
  const FakeClient relay = begin_through_relay();
  EXPECT_FALSE(told.adds());
}

}  // namespace
}  // namespace gradwire
