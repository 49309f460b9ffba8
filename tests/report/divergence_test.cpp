// The advice about a run that diverged, or that ended above its start.
#include <cmath>
#include <gtest/gtest.h>
#include <optional>
#include <string>

#include "config/experiment_spec.h"
#include "report/summary.h"

namespace gradwire {
namespace {

TEST(Divergence, SuggestsARemedyForADivergedRun) {
  ExperimentSpec e;
  e.problem = problem_of("mlp");
  e.algorithm.step_size = "0.5";
  EXPECT_EQ(divergence(e, {}),
            "a loss or a gradient is not finite; try a smaller step (this was algorithm.step_size = 0.5)");
  e.server.norm_limit = 100;
  EXPECT_EQ(divergence(e, {}),
            "a loss or a gradient is not finite, or a reply is beyond server.norm_limit; try a smaller step "
            "(this was algorithm.step_size = 0.5) or a larger server.norm_limit (this was 100)");
}

// A server does not ask its clients for constants if the step is a number.
TEST(Divergence, SuggestsTheStepOfTheoryIfConstantsAreUnknown) {
  ExperimentSpec e;
  const std::string theory = "; or write step_size = \"theory\", and the constants of the clients give it";
  e.problem = problem_of("logistic");
  e.algorithm.name = "gd";
  EXPECT_TRUE(divergence(e, {}).ends_with(theory)) << divergence(e, {});
  RoundRecord last;
  last.loss = 2;
  EXPECT_TRUE(loss_rise(1, last, e, {}).ends_with(theory)) << loss_rise(1, last, e, {});
  e.algorithm.step_size = "0.5";
  Smoothness s;
  s.L = 1;
  s.L_i = {1};
  Theory known;
  known.n = 1;
  known.d = 1;
  known.smoothness = &s;
  EXPECT_FALSE(divergence(e, known).ends_with(theory));
}

TEST(Divergence, NamesTheStepOfTheoryForADivergedRun) {
  ExperimentSpec e;
  e.algorithm.name = "gd";
  e.algorithm.step_size = "0.5";
  Smoothness s;
  s.L = 8;
  s.L_i = {8, 8};
  Theory theory;
  theory.n = 2;
  theory.d = 3;
  theory.smoothness = &s;
  const std::string above = "algorithm.step_size = 0.5 is above theory's 0.125; write step_size = \"theory\"";
  EXPECT_EQ(divergence(e, theory), "a loss or a gradient is not finite; " + above);
  RoundRecord last;
  last.loss = 2;
  EXPECT_EQ(loss_rise(1, last, e, theory),
            "the run ends with a loss of 2, above the 1 at its start; " + above);
  e.algorithm.step_size = "0.125";
  EXPECT_NE(divergence(e, theory).find("try a smaller step (this was algorithm.step_size = 0.125)"),
            std::string::npos)
      << "theory has no smaller step";
  e.algorithm.name = "fedavg";
  e.algorithm.step_size = "1";
  e.algorithm.parameters = {{"local_steps", "2"}, {"local_step_size", "0.5"}};
  EXPECT_NE(divergence(e, theory).find("algorithm.local_step_size = 0.5 is above theory's 0.0625"),
            std::string::npos);
}

TEST(Divergence, ReportsARisenLoss) {
  const auto rise = [](std::optional<double> at_start, double at_end) {
    RoundRecord last;
    last.loss = at_end;
    ExperimentSpec e;
    e.algorithm.name = "gd";
    return loss_rise(at_start, last, e, {});
  };
  EXPECT_NE(rise(0.5, 264.25).find("a loss of 264.25, above the 0.5 at"), std::string::npos);
  EXPECT_NE(rise(1.0 / 3, 1e300 / 3).find("a loss of 3.33333e+299, above the 0.333333 at"),
            std::string::npos);
  EXPECT_NE(rise(0.5, 0.50000001).find("a loss of 0.50000001, above the 0.5 at"), std::string::npos);
  EXPECT_EQ(rise(0.5, 0.5), "");
  EXPECT_EQ(rise(0.5, 0.5 * (1 + 1e-12)), "") << "rounding";
  EXPECT_NE(rise(-0.5, -0.4), "");
  EXPECT_EQ(rise(std::nullopt, 264.25), "") << "nothing was evaluated at the start";
  EXPECT_EQ(rise(0.5, std::nan("")), "") << "a diverged run reports the divergence";
  EXPECT_EQ(loss_rise(0.5, std::nullopt, {}, {}), "") << "nothing was evaluated";
}

}  // namespace
}  // namespace gradwire
