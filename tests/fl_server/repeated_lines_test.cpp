// Tests of RepeatedLines.
#include "fl_server/sessions/repeated_lines.h"

#include <gtest/gtest.h>

namespace gradwire {
namespace {

using std::chrono::seconds;

TEST(RepeatedLines, LogsEqualLinesOfAPeerOnceAMinuteWithTheirNumber) {
  RepeatedLines lines;
  const SteadyTime start{};
  EXPECT_EQ(lines.see("10.0.0.1", "no token", start), "no token");
  for (int k = 1; k < 60; ++k) EXPECT_EQ(lines.see("10.0.0.1", "no token", start + seconds(k)), "");
  EXPECT_EQ(lines.see("10.0.0.1", "revoked", start + seconds(2)), "revoked");
  EXPECT_EQ(lines.see("10.0.0.2", "no token", start + seconds(2)), "no token");
  EXPECT_EQ(lines.see("10.0.0.1", "no token", start + seconds(60)),
            "no token (59 times more since the last such line)");
  EXPECT_EQ(lines.see("10.0.0.1", "no token", start + seconds(61)), "");
  EXPECT_EQ(lines.see("10.0.0.1", "revoked", start + seconds(90)), "revoked");
}

TEST(RepeatedLines, ForgetsLinesBeforeTheyFillTheMemory) {
  RepeatedLines lines;
  for (int k = 0; k < 1000; ++k) lines.see("a", std::to_string(k), SteadyTime());
  EXPECT_EQ(lines.see("a", "0", SteadyTime()), "0");
}

}  // namespace
}  // namespace gradwire
