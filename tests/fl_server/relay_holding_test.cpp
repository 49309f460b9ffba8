// Tests of RelaySums: a relay holds the replies of its clients and sends their sum, or forwards each reply.
#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

#include "config/experiment_file.h"
#include "config/settings.h"
#include "fl_server/relay/relay_sums.h"
#include "proto/wire/codec.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kHeldDim = 40;

// A relay with clients 2, 5 and 7 of a run of 8, on channels 12, 15 and 17. The deadline is 1 s.
class RelayHoldingTest : public ::testing::Test {
 protected:
  RelayHoldingTest() {
    context = {1, kHeldDim, 8, parse_compressor("identity", kHeldDim), {ZstdMode::Kind::kOff, 0}};
    sums.allow(true);
    for (const std::uint32_t client : {2, 5, 7}) {
      wire::Welcome welcome;
      welcome.set_client(client);
      EXPECT_TRUE(sums.watch(client + 10, forwarded(control_frame(FrameType::kWelcome, welcome))));
      EXPECT_TRUE(sums.watch(client + 10, forwarded(start("1"))));
    }
    ask();
  }
  static std::string start(const std::string& seed) {
    wire::Start start;
    start.set_dim(kHeldDim);
    start.set_experiment(pack_experiment(
        parse_experiment("seed = " + seed +
                             "\n[problem]\nkind = \"quadratic\"\ndim = 40\n"
                             "[clients]\ncount = 8\n[algorithm]\nname = \"gd\"\n"
                             "step_size = 0.1\n[server]\ndeadline_ms = 1000\nzstd = \"off\"\n",
                         "run.toml")
            .experiment));
    return control_frame(FrameType::kStart, start);
  }
  static ForwardedFrame forwarded(const std::string& frame) {
    const auto bytes = std::as_bytes(std::span(frame));
    const auto prefix = read_prefix(bytes.first<kPrefixBytes>(), UINT64_MAX);
    ForwardedFrame forwarded;
    const auto places = forwarded.begin(*prefix, bytes.subspan(kPrefixBytes, prefix->header_len));
    const auto payload = bytes.subspan(kPrefixBytes + prefix->header_len);
    std::copy(payload.begin(), payload.end(), places[0].begin());
    return forwarded;
  }
  void ask(std::uint64_t request_id = 3) {
    wire::Round round;
    round.set_request(wire::REQUEST_ROUND);
    round.set_request_id(request_id);
    round.mutable_body()->set_round(9);
    for (const std::uint32_t client : {2, 5, 7}) sums.asked(client + 10, round, now);
    sums.asked_all(request_id);
  }
  std::string reply(ClientId client, double value, std::uint64_t request_id = 3,
                    ReplyStatus status = ReplyStatus::kReply, std::uint64_t tested = 0) {
    const Vec<double> values(kHeldDim, value);
    Uplink<double> up;
    up.request_id = request_id;
    up.round = 9;
    up.client = client;
    up.status = status;
    up.tested = tested;
    up.parts = {Payload<double>::dense(values)};
    Codec<double> codec(context);
    const Encoded& message = codec.encode(up);
    std::string bytes(reinterpret_cast<const char*>(message.prefix.data()), kPrefixBytes);
    bytes += message.header;
    for (const auto section : message.sections)
      bytes.append(reinterpret_cast<const char*>(section.data()), section.size());
    return bytes;
  }
  bool take(const std::string& frame, std::uint32_t channel) {
    ForwardedFrame arrived = forwarded(frame);
    return sums.take(channel, arrived);
  }
  bool take(ClientId client, double value) { return take(reply(client, value), client + 10); }
  bool hear(ClientId client, wire::Ack ack) {
    wire::Received received;
    received.set_request_id(3);
    received.set_receipt(ack);
    return sums.watch(client + 10, forwarded(control_frame(FrameType::kReceived, received)));
  }

  // A frame to the server: its channel and the clients that it covers.
  struct Sent {
    std::uint32_t channel = 0;
    std::vector<std::uint32_t> covers;
    double value = 0;  // first value

    bool operator==(const Sent&) const = default;
  };
  static Sent sent_of(const Outgoing& message) {
    const auto head = std::as_bytes(std::span(message.head));
    const auto prefix = read_prefix(head.first<kPrefixBytes>(), UINT64_MAX, true);
    wire::Reply header;
    EXPECT_TRUE(header.ParseFromString(message.head.substr(kPrefixBytes)));
    Sent sent{prefix->channel, {header.covers().begin(), header.covers().end()}, 0};
    if (!message.sections.empty()) std::memcpy(&sent.value, message.sections[0].data(), sizeof sent.value);
    return sent;
  }

  CodecContext context;
  SteadyTime now{};
  std::vector<Sent> sent;
  std::vector<std::string> lines;
  RelaySums sums{[this](const Outgoing& message) { sent.push_back(sent_of(message)); },
                 [this](const std::string& line) { lines.push_back(line); }};
};

TEST_F(RelayHoldingTest, SendsOneSumOnceAllHaveRepliedInAnyOrder) {
  EXPECT_TRUE(take(7, 3));
  EXPECT_TRUE(take(2, 1));
  EXPECT_TRUE(sent.empty());
  EXPECT_TRUE(take(5, 2));
  EXPECT_EQ(sent, (std::vector<Sent>{{0, {2, 5, 7}, 6}}));
  for (const ClientId client : {2, 5, 7}) EXPECT_TRUE(hear(client, wire::RECEIPT_ACCEPTED));
  EXPECT_EQ(sent.size(), 1u);
}

TEST_F(RelayHoldingTest, SendsNothingUntilAllAreKnownToBeAsked) {
  wire::Round round;
  round.set_request(wire::REQUEST_ROUND);
  round.set_request_id(4);
  round.mutable_body()->set_round(9);
  sums.asked(12, round, now);
  EXPECT_TRUE(take(reply(2, 1, 4), 12));
  EXPECT_TRUE(sent.empty()) << "another client may be asked";
  sums.asked_all(4);
  EXPECT_EQ(sent, (std::vector<Sent>{{12, {}, 1}})) << "a single reply is sent as it is";
}

TEST_F(RelayHoldingTest, SendsTheHeldRepliesAfterHalfOfTheDeadline) {
  EXPECT_TRUE(take(5, 2));
  EXPECT_TRUE(take(2, 1));
  sums.check_time(now + milliseconds(499));
  EXPECT_TRUE(sent.empty());
  sums.check_time(now + milliseconds(500));
  EXPECT_EQ(sent, (std::vector<Sent>{{0, {2, 5}, 3}}));
  EXPECT_TRUE(take(7, 3));
  EXPECT_EQ(sent.back(), (Sent{17, {}, 3}));
}

TEST_F(RelayHoldingTest, SendsTheHeldRepliesWhenTheServerAsksAgain) {
  EXPECT_TRUE(take(5, 2));
  EXPECT_TRUE(take(2, 1));
  ask();
  EXPECT_EQ(sent, (std::vector<Sent>{{0, {2, 5}, 3}}));
}

TEST_F(RelayHoldingTest, ForwardsTheReplyOfAClientThatLeaves) {
  EXPECT_TRUE(take(5, 2));
  EXPECT_TRUE(take(2, 1));
  sums.left(15, false);
  EXPECT_EQ(sent, (std::vector<Sent>{{15, {}, 2}}));
  EXPECT_TRUE(take(7, 3));
  EXPECT_EQ(sent.back(), (Sent{0, {2, 7}, 4})) << "the others are added without it";
}

TEST_F(RelayHoldingTest, ExcludesClientsThatTheServerDisconnected) {
  for (const ClientId client : {5, 2}) EXPECT_TRUE(take(client, client));
  sums.left(15, true);
  EXPECT_TRUE(sent.empty());
  EXPECT_TRUE(take(7, 3));
  EXPECT_EQ(sent, (std::vector<Sent>{{0, {2, 7}, 5}}));
}

TEST_F(RelayHoldingTest, AddsRepliesWithEvaluations) {
  EXPECT_TRUE(take(reply(2, 1, 3, ReplyStatus::kReply, 1), 12)) << "the lowest client, which begins the sum";
  EXPECT_TRUE(take(5, 2));
  EXPECT_TRUE(take(7, 3));
  EXPECT_EQ(sent, (std::vector<Sent>{{0, {5, 7}, 5}, {12, {}, 1}}));
}

TEST_F(RelayHoldingTest, KeepsTheHeldReplyWhenADamagedOneFollows) {
  EXPECT_TRUE(take(2, 1));
  EXPECT_FALSE(take(reply(5, 9), 12)) << "under another client's number";
  EXPECT_TRUE(take(5, 2));
  EXPECT_TRUE(take(7, 3));
  EXPECT_EQ(sent, (std::vector<Sent>{{0, {2, 5, 7}, 6}}));
}

TEST_F(RelayHoldingTest, DoesNotWaitForAClientThatLeft) {
  EXPECT_TRUE(take(5, 2));
  EXPECT_TRUE(take(2, 1));
  sums.left(17, false);
  EXPECT_EQ(sent, (std::vector<Sent>{{0, {2, 5}, 3}}));
}

TEST_F(RelayHoldingTest, SendsEachReplyOfARefusedSum) {
  for (const ClientId client : {2, 5, 7}) EXPECT_TRUE(take(client, client));
  sent.clear();
  for (const ClientId client : {2, 5, 7})
    EXPECT_FALSE(hear(client, wire::RECEIPT_REFUSED)) << "the client need not know";
  EXPECT_EQ(sent, (std::vector<Sent>{{12, {}, 2}, {15, {}, 5}, {17, {}, 7}}));
  EXPECT_TRUE(hear(5, wire::RECEIPT_REFUSED)) << "the client is told about its own reply";
}

TEST_F(RelayHoldingTest, ForwardsARepeatedReply) {
  EXPECT_TRUE(take(2, 1));
  EXPECT_TRUE(take(2, 1)) << "held once";
  for (const ClientId client : {5, 7}) EXPECT_TRUE(take(client, 1));
  EXPECT_EQ(sent, (std::vector<Sent>{{0, {2, 5, 7}, 3}}));
  EXPECT_FALSE(take(2, 1));
}

TEST_F(RelayHoldingTest, ForwardsRepliesToOtherRequests) {
  EXPECT_FALSE(take(reply(2, 1, 2), 12)) << "late";
  EXPECT_FALSE(take(reply(2, 1, 3, ReplyStatus::kNeedsState), 12));
  EXPECT_FALSE(take(reply(5, 1), 12)) << "under another client's number";
  EXPECT_FALSE(take(reply(5, 1), 19)) << "from a channel that was not asked";
  EXPECT_TRUE(take(5, 2));
  EXPECT_TRUE(take(7, 3)) << "a client that sent nonsense is not waited for";
  EXPECT_EQ(sent, (std::vector<Sent>{{0, {5, 7}, 5}}));
}

TEST_F(RelayHoldingTest, ForwardsDamagedReplies) {
  std::string damaged = reply(5, 2);
  damaged.back() ^= 1;  // breaks the checksum of the payload
  EXPECT_TRUE(take(2, 1));
  EXPECT_TRUE(take(damaged, 15));
  EXPECT_TRUE(take(7, 3));
  EXPECT_EQ(sent, (std::vector<Sent>{{0, {2, 7}, 4}, {15, {}, 2}}));
}

TEST_F(RelayHoldingTest, ForwardsRepliesWithRandomHeaders) {
  for (std::size_t at = kPrefixBytes; at < reply(2, 1).size() - kHeldDim * sizeof(double); ++at) {
    std::string damaged = reply(2, 1);
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    take(damaged, 12);
    sums.check_time(now + milliseconds(600));
    ask(4 + at);
  }
}

TEST_F(RelayHoldingTest, ForwardsRepliesWhoseSumIsInfinite) {
  for (const ClientId client : {2, 5, 7}) EXPECT_TRUE(take(client, std::numeric_limits<double>::max()));
  EXPECT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[0].channel, 12u);
}

TEST_F(RelayHoldingTest, DropsHeldRepliesOnANewRequest) {
  EXPECT_TRUE(take(2, 1));
  ask(4);
  for (const ClientId client : {2, 5, 7}) EXPECT_TRUE(take(reply(client, 2, 4), client + 10));
  EXPECT_EQ(sent, (std::vector<Sent>{{0, {2, 5, 7}, 6}}));
}

TEST_F(RelayHoldingTest, ForwardsHeldRepliesBeforeAnotherRunBegins) {
  EXPECT_TRUE(take(2, 1));
  EXPECT_TRUE(sums.watch(12, forwarded(start("2"))));
  EXPECT_EQ(sent, (std::vector<Sent>{{12, {}, 1}}));
  EXPECT_FALSE(take(5, 2)) << "no client was asked in this run";
  sums.check_time(now + milliseconds(600));
  EXPECT_EQ(sent.size(), 1u);
}

TEST_F(RelayHoldingTest, ForwardsAllIfTheServerAcceptsNoSumsAndSaysSoOnce) {
  sums.forget();
  sums.allow(false);
  sums.allow(false);
  ask(8);
  EXPECT_FALSE(take(reply(2, 1, 8), 12));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("the server accepts no sums"), std::string::npos);
}

}  // namespace
}  // namespace gradwire
