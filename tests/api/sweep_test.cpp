// sweep() and plot(): many runs of a program, and their figure.
#include "gradwire/sweep.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <string>

#include "gradwire/plot.h"
#include "gradwire/train.h"
#include "tests/api/api_support.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

Experiment quadratics() {
  return Experiment::from({{"problem.kind", "quadratic"},
                           {"problem.dim", 10},
                           {"clients.count", 3},
                           {"algorithm.name", "gd"},
                           {"algorithm.step_size", 0.01},
                           {"run.rounds", 20}});
}

TEST(SweepApi, RunsAllCombinationsAndFindsTheBestStep) {
  const TemporaryFolder folder;
  const Grid grid = {{"algorithm.step_size", {0.001, 0.1, "theory"}}, {"seed", {1, 2}}};
  const SweepOptions options{.out = folder.path() / "sweep", .jobs = 2};
  const SweepResult result = sweep(quadratics(), grid, options);
  ASSERT_EQ(result.runs.size(), 6u);
  EXPECT_TRUE(result.failed.empty());
  ASSERT_EQ(result.best.size(), 1u);
  EXPECT_EQ(result.best[0].runs.size(), 2u);
  EXPECT_FALSE(result.table.empty());
  EXPECT_TRUE(std::filesystem::exists(result.folder / "runs.csv"));
  for (const SweptRun& run : result.runs) {
    ASSERT_EQ(run.values.size(), 2u);
    EXPECT_EQ(run.values[0].first, "seed");  // in the order of the file
    EXPECT_EQ(run.values[1].first, "algorithm.step_size");
    EXPECT_TRUE(std::filesystem::exists(run.folder / "model.bin")) << run.folder;
  }
  // A second call finds them all.
  std::string log;
  SweepOptions again = options;
  again.log = [&](std::string_view line) { log += line; };
  EXPECT_EQ(sweep(quadratics(), grid, again).table, result.table);

  const auto figure = folder.path() / "figure.svg";
  const auto files = plot({result.runs[0].folder, result.runs[2].folder}, figure,
                          {.x = "rounds", .y = "loss", .labels = {{result.runs[0].folder, "small steps"}}});
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files[0], figure);
  std::ifstream in(figure);
  const std::string svg{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(svg.find("small steps"), std::string::npos);

  const auto script_of = [&](bool embeds) {
    const auto file = folder.path() / "figure.py";
    plot({result.folder}, file, {.x = "rounds", .y = "loss", .by = "seed", .embeds = embeds});
    std::ifstream script(file);
    return std::string{std::istreambuf_iterator<char>(script), {}};
  };
  EXPECT_NE(script_of(false).find("metrics.csv\","), std::string::npos);
  EXPECT_EQ(script_of(true).find("metrics.csv\","), std::string::npos) << "it does not read the folder";
  EXPECT_NE(script_of(true).find("loss,round\n"), std::string::npos);
  EXPECT_NE(script_of(true).find("\"seed = 2\""), std::string::npos) << "the title of a panel";
}

TEST(SweepApi, RefusesUnknownKeysAndColumns) {
  const TemporaryFolder folder;
  const auto error = [&](const Experiment& experiment, const Grid& grid) {
    return error_of([&] { sweep(experiment, grid, {.out = folder.path() / "sweep"}); });
  };
  const Grid unknown = {{"algorithm.step_sizes", {1}}};
  EXPECT_EQ(error(quadratics(), unknown), "gd has no parameter 'step_sizes'; did you mean 'step_size'?");
  EXPECT_EQ(error(Experiment::load("quadratics").with("algorithm.name", "ef21"), unknown),
            "ef21 has no parameter 'step_sizes'; did you mean 'step_size'?");
  EXPECT_EQ(error(quadratics(), {{"seed", {}}}), "seed is an empty list; list a value");
  EXPECT_NE(error_of([&] { plot({folder.path()}, folder.path() / "a.svg"); }), "");
}

}  // namespace
}  // namespace gradwire
