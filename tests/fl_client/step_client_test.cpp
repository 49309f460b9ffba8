// The waits of a client without threads, with a clock of the test. tests/c_api has whole runs.
#include "fl_client/step_client.h"

#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "proto/wire/control_frame.h"

namespace gradwire {
namespace {

using namespace std::chrono_literals;

class StepWaits : public ::testing::Test {
 protected:
  StepWaits() {
    settings.server = "127.0.0.1:7000";
    settings.name = "c";
    settings.log = [this](const LogLine& line) { log += line.text + "\n"; };
    settings.back_off_base = settings.back_off_cap = 0ms;
  }
  ~StepWaits() override { hang_up(); }
  void hang_up() {
    if (server >= 0) ::close(std::exchange(server, -1));
  }

  std::unique_ptr<StepClient> make() {
    return std::make_unique<StepClient>(
        settings,
        [this](const std::string&) {
          ++attempts;
          std::array<int, 2> ends{-1, -1};
          if (refuses || ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return -1;
          hang_up();
          server = ends[1];
          return ends[0];
        },
        [this] { return now; });
  }
  // Calls step() until it would wait.
  static StepClient::Wait wait_of(StepClient& client) {
    StepClient::Wait next;
    do {
      EXPECT_TRUE(client.step(next));
    } while (next.at_most == 0ms);
    return next;
  }
  // Says how long the client would wait, and lets nearly that time pass, and then the rest.
  void expect_deadline(StepClient& client, std::chrono::milliseconds limit, const std::string& line) {
    EXPECT_EQ(wait_of(client).at_most, limit);
    now += limit - 1ms;
    EXPECT_EQ(wait_of(client).at_most, 1ms);
    EXPECT_EQ(log, "");
    now += 1ms;
    StepClient::Wait next;
    EXPECT_TRUE(client.step(next));
    EXPECT_EQ(log, line + "; trying again in 0 ms\n");
  }
  void send(std::string_view bytes) {
    EXPECT_EQ(::send(server, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  ClientSettings settings;
  StepClient::Time now{1000s};
  std::string log;
  int server = -1, attempts = 0;
  bool refuses = false;
};

TEST_F(StepWaits, ConnectsAgainAfterTheServerWasSilent) {
  auto client = make();
  expect_deadline(*client, 60s, "the connection to the server is lost: it was silent for 60000 ms");
  EXPECT_EQ(attempts, 1);
  EXPECT_GE(wait_of(*client).fd, 0);
  EXPECT_EQ(attempts, 2);
}

TEST_F(StepWaits, LimitTheTimeOfAMessage) {
  auto client = make();
  wait_of(*client);
  send(heartbeat_frame().substr(0, 20));
  expect_deadline(*client, 30s, "the connection to the server is lost: a message took too long to arrive");
}

TEST_F(StepWaits, BeginAnewWithEachMessage) {
  auto client = make();
  wait_of(*client);
  now += 59s;
  send(heartbeat_frame());
  EXPECT_EQ(wait_of(*client).at_most, 60s);
  EXPECT_EQ(log, "");
}

TEST_F(StepWaits, AreThoseOfTheBackOffAfterAFailure) {
  settings.back_off_base = settings.back_off_cap = 1000ms;
  settings.give_up_after = 1h;
  refuses = true;
  auto client = make();
  const StepClient::Wait next = wait_of(*client);
  EXPECT_EQ(next.fd, -1);
  EXPECT_LE(next.at_most, 1000ms);
  EXPECT_TRUE(
      log.starts_with("cannot connect to 127.0.0.1:7000: the program gave no connection; trying again in "))
      << log;
  const int before = attempts;
  now += next.at_most;
  wait_of(*client);
  EXPECT_GT(attempts, before);
}

TEST_F(StepWaits, EndWhenTheClientGivesUp) {
  settings.give_up_after = 10ms;
  refuses = true;
  auto client = make();
  now += 11ms;
  StepClient::Wait next;
  EXPECT_THROW(client->step(next), ClientError);
  EXPECT_FALSE(client->step(next));
  EXPECT_EQ(client->progress().stage, StepClient::Stage::kOver);
}

TEST_F(StepWaits, EndWithAMessageOfWrongShape) {
  auto client = make();
  wait_of(*client);
  send("GET / HTTP/1.1\r\nHost: example\r\n\r\n");
  StepClient::Wait next;
  while (log.empty()) EXPECT_TRUE(client->step(next));
  EXPECT_NE(log.find("trying again"), std::string::npos) << log;
}

}  // namespace
}  // namespace gradwire
