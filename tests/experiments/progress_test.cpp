// Tests of the lines that show the progress of a run.
#include "experiments/cli/run/progress.h"

#include <gtest/gtest.h>

namespace gradwire {
namespace {

TEST(Progress, SaysOfWhichRoundItsLossIs) {
  ::testing::internal::CaptureStderr();  // so that it is not a terminal
  std::string last;
  {
    Progress progress("fed", 1000, Verbosity::kNormal, [&](const LogLine& line) { last = line.text; });
    RoundRecord record;
    record.loss = 5e10;
    progress.record(record);
    EXPECT_TRUE(last.starts_with("fed  0/1000  loss 5e+10  up ")) << last;
    progress.round(572);
    progress.finish();
  }
  ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(last.starts_with("fed  572/1000  round 0: loss 5e+10  up ")) << last;
}

}  // namespace
}  // namespace gradwire
