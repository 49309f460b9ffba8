// The axes of a figure that nobody asked for.
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "plotting/plot_figure.h"

namespace gradwire {
namespace {

// A run of five rows, which has the norm in all of them or in the first and the last one.
PlotRun run_with(bool all_norms) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  PlotRun run;
  run.metrics.names = run.metrics.read = {"loss", "grad_norm_sq", "bits_up"};
  run.metrics.columns = {{5, 4, 3, 2, 1}, {9, none, none, none, 1}, {0, 1, 2, 3, 4}};
  if (all_norms) run.metrics.columns[1] = {9, 7, 5, 3, 1};
  run.metrics.rows = 5;
  return run;
}

TEST(UsualAxes, ShowTheLossIfOnlyTwoRowsHaveTheNorm) {
  const auto first_of = [](const std::vector<PlotRun>& runs) {
    return usual_axes(runs, nullptr).front().y.name;
  };
  EXPECT_EQ(first_of({run_with(false)}), "loss");
  EXPECT_EQ(first_of({run_with(true)}), "grad_norm_sq");
  EXPECT_EQ(first_of({run_with(false), run_with(true)}), "grad_norm_sq");
}

}  // namespace
}  // namespace gradwire
