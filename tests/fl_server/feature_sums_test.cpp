// The handshake of problem.normalize at the server: sums of all clients, then the map, then the Joins.
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "proto/wire/feature_messages.h"
#include "tests/fl_server/tcp_fixture.h"

namespace gradwire {
namespace {

class FeatureSumsHandshake : public TcpTransportTest {
 protected:
  FeatureSumsHandshake() { normalize = Normalize::kStandard; }

  static wire::Join description(std::uint64_t samples = 4, std::uint64_t hash = 1) {
    wire::Join join;
    join.set_columns(3);
    join.set_sample_count(samples);
    join.set_test_count(0);
    join.set_data_hash(hash);
    return join;
  }
  // Sends a Hello. Returns the Welcome.
  static std::optional<wire::Welcome> greet(FakeClient& client, const std::string& name) {
    client.send(FakeClient::hello_frame(name));
    return read_welcome(client);
  }
  static std::optional<wire::Welcome> read_welcome(FakeClient& client) {
    const auto frame = client.read_message();
    wire::Welcome welcome;
    if (!frame || frame->prefix.type != FrameType::kWelcome || !welcome.ParseFromString(frame->header))
      return std::nullopt;
    return welcome;
  }
  // Sends a Hello and sums.
  FakeClient send_sums(const std::string& name, std::vector<FeatureSums> features, std::uint64_t samples = 4,
                       std::uint64_t hash = 1) {
    FakeClient client = connect();
    const auto welcome = greet(client, name);
    EXPECT_TRUE(welcome && welcome->has_asks_sums() && welcome->asks_sums());
    client.send(sums_frames(description(samples, hash), {3, samples, std::move(features)}));
    return client;
  }
  // Serves until the map is computed. gather() then times out, because no client has joined.
  void compute_map() {
    EXPECT_THROW(session_manager->gather(milliseconds(50)), std::runtime_error);
    ASSERT_NE(session_manager->normalization(), nullptr);
  }
  Normalization read_map(FakeClient& client) const {
    Normalization map;
    map.kind = normalize;
    for (bool complete = false; !complete;) {
      const auto welcome = read_welcome(client);
      if (!welcome) {
        ADD_FAILURE() << "no map";
        return map;
      }
      const Result<bool> taken = take_scaling(welcome->scaling(), map);
      EXPECT_TRUE(taken);
      complete = !taken || *taken;
    }
    return map;
  }

  const std::vector<FeatureSums> a_ = {{0, 4, 1, 8}}, b_ = {{0, 2, 7, 2}, {2, 4, 5, 0}};
};

TEST_F(FeatureSumsHandshake, SendsTheMapOnceAllSumsAreThere) {
  const ClientSums a{3, 4, a_}, b{3, 4, b_};
  for (const bool b_first : {false, true}) {
    open();
    std::vector<FakeClient> clients;
    // Numbers follow the Hellos, whichever sums come first.
    FakeClient first = connect(), second = connect();
    ASSERT_EQ(greet(first, "a")->client(), 0u);
    ASSERT_EQ(greet(second, "b")->client(), 1u);
    const auto send = [](FakeClient& client, const ClientSums& sums) {
      client.send(sums_frames(description(), sums));
    };
    b_first ? send(second, b) : send(first, a);
    turn_for(milliseconds(20));
    EXPECT_EQ(session_manager->normalization(), nullptr);
    b_first ? send(first, a) : send(second, b);
    compute_map();
    const Normalization want = normalization_of(std::vector{a, b}, Normalize::kStandard);
    EXPECT_EQ(*session_manager->normalization(), want);
    EXPECT_EQ(read_map(first), want);
    EXPECT_EQ(read_map(second), want);
    first.send(control_frame(FrameType::kJoin, description()));
    second.send(control_frame(FrameType::kJoin, description()));
    EXPECT_TRUE(session_manager->gather(milliseconds(2000)));
  }
}

TEST_F(FeatureSumsHandshake, RefusesHostileSumsAndNamesTheClient) {
  using Lists = std::vector<std::vector<FeatureSums>>;
  const Lists hostile = {{{0, 4, std::nan(""), 1}}, {{0, 4, 1, HUGE_VAL}}, {{0, 5, 1, 1}},
                         {{0, 4, 1, -1}},           {{3, 1, 1, 0}},        {{1, 1, 1, 0}, {0, 1, 1, 0}}};
  for (const auto& features : hostile) {
    bans.longest = std::chrono::seconds(0);
    lines.clear();
    open();
    FakeClient client = send_sums("mallory", features);
    const auto refusal = client.read_refusal();
    ASSERT_TRUE(refusal);
    EXPECT_NE(refusal->message().find("Join: "), std::string::npos) << refusal->message();
    EXPECT_TRUE(std::ranges::any_of(lines, [&](const std::string& line) {
      return line.find("mallory") != std::string::npos && line.find(refusal->message()) != std::string::npos;
    })) << refusal->message();
    EXPECT_THROW(session_manager->gather(milliseconds(1)), std::runtime_error);
  }
}

TEST_F(FeatureSumsHandshake, RefusesAClientOfAReleaseWithoutSums) {
  open();
  FakeClient client = connect();
  ASSERT_TRUE(greet(client, "old"));
  client.send(FakeClient::join_frame());
  const auto refusal = client.read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_TRUE(refusal->fatal());
  EXPECT_NE(refusal->message().find("lacks the sums of its features"), std::string::npos);
}

TEST_F(FeatureSumsHandshake, RefusesSumsThatItDidNotAskFor) {
  normalize = Normalize::kNone;
  open();
  FakeClient client = connect();
  const auto welcome = greet(client, "a");
  ASSERT_TRUE(welcome && !welcome->has_asks_sums());
  client.send(sums_frames(description(), {3, 4, a_}));
  const auto refusal = client.read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->message().find("sums that the server did not ask for"), std::string::npos);
}

TEST_F(FeatureSumsHandshake, ForgetsTheSumsOfAClientThatLeavesBeforeTheMap) {
  open();
  FakeClient a = send_sums("a", a_);
  a.hang_up();
  turn_for(milliseconds(20));
  FakeClient b = send_sums("b", b_);
  turn_for(milliseconds(20));
  EXPECT_THROW(session_manager->gather(milliseconds(20)), std::runtime_error);
  EXPECT_EQ(session_manager->normalization(), nullptr);
  a = send_sums("a", a_);
  compute_map();
}

TEST_F(FeatureSumsHandshake, TakesTheSumsOfTheNewestProcess) {
  open();
  FakeClient former = send_sums("a", b_);
  FakeClient a = send_sums("a", a_), b = send_sums("b", b_);
  EXPECT_TRUE(former.read_refusal());
  compute_map();
  EXPECT_EQ(read_map(a), normalization_of(std::vector<ClientSums>{{3, 4, a_}, {3, 4, b_}}, normalize));
}

TEST_F(FeatureSumsHandshake, TellsALateProcessOfAClientToReconnect) {
  open();
  FakeClient a = send_sums("a", a_), b = send_sums("b", b_);
  turn_for(milliseconds(20));
  FakeClient late = connect();
  ASSERT_TRUE(greet(late, "a"));
  compute_map();
  const auto refusal = late.read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_FALSE(refusal->fatal());
}

TEST_F(FeatureSumsHandshake, LetsAClientWithTheSameSamplesReturnAfterTheMap) {
  open();
  FakeClient a = send_sums("a", a_, 4, 11), b = send_sums("b", b_, 4, 12);
  compute_map();
  b.hang_up();
  a.hang_up();
  turn_for(milliseconds(20));
  // They come back in the other order, and keep their numbers.
  FakeClient again = connect();
  const auto welcome = greet(again, "b");
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->client(), 1u);
  EXPECT_TRUE(welcome->has_asks_sums() && !welcome->asks_sums());
  EXPECT_EQ(read_map(again), *session_manager->normalization());
  again.send(control_frame(FrameType::kJoin, description(4, 12)));
  turn_for(milliseconds(20));
  EXPECT_EQ(session_manager->table().joined_count(), 1u);
  for (const auto& [samples, hash] : {std::pair{4, 13}, std::pair{5, 11}}) {
    FakeClient other = connect();
    ASSERT_TRUE(greet(other, "a"));
    read_map(other);
    other.send(control_frame(FrameType::kJoin, description(samples, hash)));
    const auto refusal = other.read_refusal();
    ASSERT_TRUE(refusal);
    EXPECT_NE(refusal->message().find("client 0 'a' joined with other samples"), std::string::npos)
        << refusal->message();
  }
}

TEST_F(FeatureSumsHandshake, SendsTheMapOfAnEarlierProcess) {
  normalization = std::make_shared<const Normalization>(
      Normalization{Normalize::kStandard, std::vector<double>(5000, 0.5), std::vector<double>(5000, 2), 0});
  open();
  FakeClient client = connect();
  const auto welcome = greet(client, "a");
  ASSERT_TRUE(welcome && welcome->has_asks_sums() && !welcome->asks_sums());
  EXPECT_EQ(read_map(client), *normalization);
}

}  // namespace
}  // namespace gradwire
