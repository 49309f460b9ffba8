// Tests of the warnings about rounds that wait for clients.
#include "fl_server/stall_report.h"

#include <gtest/gtest.h>
#include <set>

namespace gradwire {
namespace {

TEST(StallText, NamesTheClientAndTheTimes) {
  EXPECT_EQ(
      stall_text(20139, 9, 21, {"1 'n1' (lost at 03:56:22: it closed the connection)"}, 1),
      "round 20139 has waited 9 s for client 1 'n1' (lost at 03:56:22: it closed the connection); gives up "
      "in 21 s");
  EXPECT_EQ(stall_text(7, 75, 7200, {"1 'a'", "2 'b'", "5 'c'", "6 'd'"}, 6),
            "round 7 has waited 1:15 min for 6 clients: 1 'a', 2 'b', 5 'c' and 3 more; gives up in 2:00 h");
  EXPECT_EQ(stall_text(7, 5, 0, {}, 2), "round 7 has waited 5 s for 2 clients; gives up in 0 s");
}

class StallReportTest : public ::testing::Test {
 protected:
  // Reports a wait of 5 s for clients 0, 1 and 2 of round 4.
  void wait(std::size_t needed, bool past_deadline = false) {
    const std::vector<ClientId> missing = {0, 1, 2};
    report.see({4, 5, 25, needed, missing, past_deadline});
  }

  std::set<ClientId> lost;
  double clock = 1000;
  ServerMetrics metrics;
  std::vector<LogLine> lines;
  StallReport report{{[this](ClientId client) { return lost.count(client) == 0; },
                      [this](ClientId client) {
                        return std::to_string(client) + (lost.count(client) > 0 ? " (lost)" : " (connected)");
                      }},
                     [this] { return clock; },
                     metrics,
                     [this](const LogLine& line) { lines.push_back(line); }};
};

TEST_F(StallReportTest, IsSilentWhileConnectedClientsCanEndTheRound) {
  lost = {1};
  wait(2);
  EXPECT_TRUE(lines.empty());
  EXPECT_EQ(metrics.stalled_since.value(), 0);
}

TEST_F(StallReportTest, WarnsIfLostClientsAreNeeded) {
  lost = {1};
  wait(3);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].level, LogLevel::kWarning);
  EXPECT_EQ(lines[0].text,
            "round 4 has waited 5 s for 3 clients: 1 (lost), 0 (connected), 2 (connected); gives up in 25 s");
  EXPECT_EQ(metrics.stalled_since.value(), 995);
  EXPECT_EQ(metrics.gives_up_at.value(), 1025);
  EXPECT_EQ(metrics.stalled_clients.value(), 3u);
}

TEST_F(StallReportTest, WarnsOfSilentClientsAfterADeadlineAndForgetsTheStallAtItsEnd) {
  wait(1);
  EXPECT_TRUE(lines.empty());
  wait(1, true);
  EXPECT_EQ(lines.size(), 1u);
  EXPECT_GT(metrics.stalled_since.value(), 0);
  report.see({.round = 4});
  EXPECT_EQ(metrics.stalled_since.value(), 0);
  EXPECT_EQ(metrics.stalled_clients.value(), 0u);
  EXPECT_EQ(lines.size(), 1u);
}

}  // namespace
}  // namespace gradwire
