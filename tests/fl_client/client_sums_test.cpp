// A client's part in problem.normalize: it sends the sums of its features once, and joins with samples that
// the map of all clients has normalised.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "config/experiment_file.h"
#include "config/settings.h"
#include "fl_client/client.h"
#include "fl_client/client_session.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/feature_messages.h"
#include "proto/wire/wire.pb.h"
#include "tests/support/session_frames.h"

namespace gradwire {
namespace {

class ClientSumsTest : public ::testing::Test {
 protected:
  ClientSumsTest() {
    ClientData data;
    data.load = [this](const ExperimentSpec&, const Log&) {
      ++loads;
      ClientDataset own;
      own.train = {.columns = 2,
                   .row_start = {0, 1, 3, 4},
                   .column = {0, 0, 1, 0},
                   .value = {value, 2, 9, 6},
                   .label = {-1, 1, 1}};
      own.test = {.columns = 2, .row_start = {0, 1}, .column = {1}, .value = {5}, .label = {1}};
      return own;
    };
    session.emplace(ClientIdentity{"name", 1, std::move(data), {}}, nullptr);
  }

  static wire::Welcome welcome(std::optional<bool> asks_sums, const std::string& step_size = "theory") {
    wire::Welcome message;
    message.set_client(0);
    message.set_heartbeat_ms(1000);
    message.set_experiment(pack_experiment(
        parse_experiment("[problem]\nkind = \"logistic\"\ndata = \"csv:x\"\nnormalize = \"standard\"\n"
                         "[clients]\ncount = 2\n[algorithm]\nname = \"gd\"\nstep_size = \"" +
                             step_size + "\"\n",
                         "t.toml")
            .experiment));
    if (asks_sums) message.set_asks_sums(*asks_sums);
    return message;
  }
  // Lets the session take frames. Returns the Joins that it answers.
  std::vector<wire::Join> take(const std::string& frames) {
    for (std::size_t at = 0; at < frames.size();) {
      const auto bytes = std::as_bytes(std::span(frames)).subspan(at);
      const auto prefix = read_prefix(bytes.first<kPrefixBytes>(), 0);
      ending = session->take_head(*prefix, bytes.subspan(kPrefixBytes, prefix->header_len));
      at += kPrefixBytes + prefix->header_len;
    }
    std::vector<std::string> sent;
    send_outgoing(*session, sent);
    std::string all;
    for (const std::string& messages : sent) all += messages;
    std::vector<wire::Join> joins;
    for (std::size_t at = 0; at < all.size();) {
      const auto bytes = std::as_bytes(std::span(all)).subspan(at);
      const auto prefix = read_prefix(bytes.first<kPrefixBytes>(), 0);
      EXPECT_EQ(prefix->type, FrameType::kJoin);
      EXPECT_TRUE(parse_control(bytes.subspan(kPrefixBytes, prefix->header_len), joins.emplace_back()));
      at += kPrefixBytes + prefix->header_len;
    }
    return joins;
  }
  std::vector<wire::Join> take(const wire::Welcome& message) {
    session->begin_connection({});
    std::vector<std::string> hello;
    send_outgoing(*session, hello);
    return take(control_frame(FrameType::kWelcome, message));
  }

  double value = 1;  // of the first sample
  int loads = 0;
  std::optional<ClientSession> session;
  std::optional<ClientEnding> ending;
  const Normalization map{Normalize::kStandard, {1, 0, 0}, {2, 3, 1}, 0};
};

TEST_F(ClientSumsTest, SendsSumsAndThenJoinsWithNormalizedSamples) {
  const auto sums = take(welcome(true));
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].columns(), 2u);
  EXPECT_FALSE(sums[0].has_smoothness()) << "the constants depend on the map";
  ClientSums told{.columns = 2, .samples = 3, .features = {}};
  for (const wire::Join& piece : sums) ASSERT_TRUE(take_sums(piece.sums(), told));
  EXPECT_EQ(told.features, (std::vector<FeatureSums>{{0, 3, 3, 14}, {1, 1, 9, 0}}));

  const auto joins = take(scaling_frames(map, 0));
  ASSERT_EQ(joins.size(), 1u);
  EXPECT_FALSE(joins[0].has_sums());
  EXPECT_EQ(joins[0].columns(), 3u) << "all features of the map";
  EXPECT_EQ(joins[0].data_hash(), sums[0].data_hash());
  // The largest sample is ((2 - 1) / 2, 9 / 3); a quarter of its squared norm bounds its curvature.
  EXPECT_NEAR(joins[0].sample_smoothness_max(), (0.25 + 9) / 4, 1e-12);
  EXPECT_EQ(loads, 1);
}

TEST_F(ClientSumsTest, SendsNoSumsToAServerThatHasTheMap) {
  EXPECT_TRUE(take(welcome(false)).empty());
  EXPECT_EQ(take(scaling_frames(map, 0)).size(), 1u);
  // The same process on another connection.
  EXPECT_TRUE(take(welcome(false)).empty());
  EXPECT_EQ(take(scaling_frames(map, 0)).size(), 1u);
  EXPECT_EQ(loads, 1);
}

TEST_F(ClientSumsTest, SendsTheSumsOfTheOriginalSamplesToAServerThatHasLostTheMap) {
  const auto sums = take(welcome(true));
  const auto first = take(scaling_frames(map, 0));
  const auto again = take(welcome(true));
  ASSERT_EQ(again.size(), 2u);
  for (std::size_t k = 0; k < 2; ++k) EXPECT_EQ(again[k].SerializeAsString(), sums[k].SerializeAsString());
  const auto joins = take(scaling_frames(map, 0));
  ASSERT_EQ(joins.size(), 1u);
  EXPECT_EQ(joins[0].SerializeAsString(), first.at(0).SerializeAsString());
}

TEST_F(ClientSumsTest, JoinsAgainIfTheMapIsAnother) {
  take(welcome(true));
  const auto first = take(scaling_frames(map, 0));
  take(welcome(false));
  Normalization other = map;
  other.scale[1] = 1;
  const auto joins = take(scaling_frames(other, 0));
  ASSERT_EQ(joins.size(), 1u);
  EXPECT_NEAR(joins[0].sample_smoothness_max(), (0.25 + 81) / 4, 1e-12);
}

TEST_F(ClientSumsTest, RefusesAServerOfAReleaseWithoutSums) {
  try {
    take(welcome(std::nullopt));
    FAIL();
  } catch (const ClientRefused& error) {
    EXPECT_NE(
        std::string(error.what()).find("problem.normalize = \"standard\" needs: install the same release"),
        std::string::npos)
        << error.what();
  }
}

TEST_F(ClientSumsTest, RefusesADamagedOrMissingMap) {
  take(welcome(false));
  wire::Welcome piece;
  piece.mutable_scaling()->add_shift(1);
  EXPECT_TRUE(take(control_frame(FrameType::kWelcome, piece)).empty());
  ASSERT_TRUE(ending);
  EXPECT_NE(ending->why.find("are damaged"), std::string::npos) << ending->why;
  take(welcome(false));
  EXPECT_TRUE(take(control_frame(FrameType::kWelcome, welcome(false))).empty());
  ASSERT_TRUE(ending);
  EXPECT_NE(ending->why.find("the map of the features is missing"), std::string::npos) << ending->why;
  Normalization narrow = map;
  narrow.shift.resize(1), narrow.scale.resize(1);
  take(welcome(false));
  EXPECT_TRUE(take(scaling_frames(narrow, 0)).empty());
  ASSERT_TRUE(ending);
  EXPECT_NE(ending->why.find("lacks features"), std::string::npos) << ending->why;
}

TEST_F(ClientSumsTest, RefusesValuesThatCannotBeAddedUp) {
  value = 1e200;
  try {
    take(welcome(true));
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()),
              "problem.normalize = \"standard\": the sums of feature 1 are not finite, or too large; divide "
              "its values by a constant");
  }
}

}  // namespace
}  // namespace gradwire
