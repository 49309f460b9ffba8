// A long gradient stops in its middle when another thread says so, and the next one is as it always was.
#include "engine/stop_flag.h"

#include <chrono>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "fl_client/stoppable_oracle.h"
#include "tests/engine/problem_kinds.h"

namespace gradwire {
namespace {

using Clock = std::chrono::steady_clock;

// Samples of two classes; a batch may name them again and again.
Part two_samples() {
  Part part;
  part.train.columns = 2;
  part.train.row_start = {0, 1, 2};
  part.train.column = {0, 1};
  part.train.value = {1, 1};
  part.train.label = {0, 1};
  return part;
}

class StopFlagTest : public ::testing::TestWithParam<const char*> {};

TEST_P(StopFlagTest, StopsAGradientInItsMiddle) {
  const ProblemSpec spec = spec_of_kind(GetParam());
  const Part part = two_samples();
  const Agreement agreement{2, {0, 1}};
  StoppableOracle<double> oracle(make_oracle<double>(spec, agreement, part, 0));
  const std::vector<std::uint32_t> endless(100'000'000, 1);  // a second or more
  const std::vector<double> x(oracle.dim(), 0.5);
  std::vector<double> before(x.size()), stopped(x.size()), after(x.size());
  oracle.loss_and_gradient(x, {}, before);
  const auto begun = Clock::now();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    oracle.stop();
  });
  EXPECT_THROW(oracle.loss_and_gradient(x, endless, stopped), ComputationStopped);
  const auto took = Clock::now() - begun;
  other.join();
  EXPECT_LT(took, std::chrono::milliseconds(300));
  EXPECT_THROW(oracle.loss_and_gradient(x, {}, stopped), ComputationStopped) << "until it may go on";
  oracle.go_on();
  oracle.loss_and_gradient(x, {}, after);
  EXPECT_EQ(after, before);
  StopFlag::check();  // nobody can stop this thread any more
}

INSTANTIATE_TEST_SUITE_P(Kinds, StopFlagTest, ::testing::Values("least_squares", "logistic", "mlp"));

}  // namespace
}  // namespace gradwire
