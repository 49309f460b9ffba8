// gradwire sweep when runs fail, when it is split, and when it is killed.
#include <chrono>
#include <gtest/gtest.h>
#include <signal.h>
#include <thread>

#include "experiments/cli/support/child_process.h"
#include "tests/sweeps/sweep_fixture.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

TEST_F(Sweep, NamesAFailedRunAndFinishesTheOthers) {
  folder_.write("points.csv", "1,2,0\n2,1,1\n3,1,0\n4,4,1\n");
  write("[sweep]\nclients.count = [2, 5, 4]\n", kSweptLogistic);
  const auto r = gradwire({"sweep", "sweep.toml", "--jobs", "1"});
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("1 of 3 runs failed (see results/steps/runs.csv); the first: clients.count = 5: "),
            std::string::npos)
      << r.err;
  const std::vector<std::string> runs = lines_of(read("results/steps/runs.csv"));
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_NE(runs[2].find(",5,failed,inf,"), std::string::npos) << runs[2];
  EXPECT_NE(r.out.find("clients.count = 4"), std::string::npos) << r.out;
}

TEST_F(Sweep, PrintsACommonReasonOnceAndNamesEachFailedRun) {
  write("[sweep]\nclients.count = [2, 4]\nseed = [1, 2]\n", kSweptLogistic);
  const auto r = gradwire({"sweep", "sweep.toml", "--jobs", "1"});
  EXPECT_EQ(r.code, 1);
  const auto times = [&](const std::string& words) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = r.err.find(words, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(times("warning: failed: seed = 1, clients.count = 2: data 'points.csv' not found"), 1u) << r.err;
  EXPECT_EQ(times("failed for a reason given above: seed = "), 3u) << r.err;
  std::size_t failed = 0;
  for (const std::string& line : lines_of(read("results/steps/runs.csv")))
    failed += line.find(",failed,") != std::string::npos;
  EXPECT_EQ(failed, 4u);
  const auto joined = gradwire({"sweep", "sweep.toml", "--out", "joined", "--merge", "results/steps"});
  EXPECT_EQ(joined.code, 1);
  EXPECT_NE(
      joined.err.find("4 of 4 runs failed (see joined/runs.csv); the first: seed = 1, clients.count = 2: "),
      std::string::npos)
      << joined.err;
  folder_.write("points.csv", "1,2,0\n2,1,1\n3,1,0\n4,4,1\n");
  EXPECT_EQ(gradwire({"sweep", "sweep.toml", "--quiet"}).code, 0);
  EXPECT_EQ(read("results/steps/runs.csv").find("failed"), std::string::npos);
}

TEST_F(Sweep, JoinsShardsToTheWholeSweep) {
  write("[sweep]\nalgorithm.step_size = [\"theory\", \"theory*2\", \"theory*4\"]\nseed = [1, 2, 3]\n");
  ASSERT_EQ(gradwire({"sweep", "sweep.toml", "--out", "whole", "--quiet"}).code, 0);
  const auto first = gradwire({"sweep", "sweep.toml", "--out", "one", "--shard", "1/2"});
  EXPECT_EQ(first.code, 0);
  EXPECT_NE(
      first.out.find("4 of 9 runs belong to other shards; join them with gradwire sweep sweep.toml --merge"),
      std::string::npos)
      << first.out;
  const auto early = gradwire({"sweep", "sweep.toml", "--out", "joined", "--merge", "one"});
  EXPECT_EQ(early.code, 1);
  EXPECT_NE(early.err.find("4 of 9 runs are in none of the folders"), std::string::npos) << early.err;
  ASSERT_EQ(gradwire({"sweep", "sweep.toml", "--out", "two", "--shard", "2/2", "--quiet"}).code, 0);
  ASSERT_EQ(gradwire({"sweep", "sweep.toml", "--out", "joined", "--merge", "one", "--merge", "two"}).code, 0);
  EXPECT_EQ(read("joined/best.csv"), read("whole/best.csv"));
  EXPECT_EQ(lines_of(read("joined/runs.csv")).size(), 10u);
  EXPECT_EQ(gradwire({"sweep", "sweep.toml", "--shard", "3/2"}).code, 2);
  EXPECT_EQ(gradwire({"sweep", "sweep.toml", "--merge", "nowhere"}).code, 2);
}

TEST_F(Sweep, RunsOnlyNewRunsTheSecondTime) {
  write("[sweep]\nseed = [1, 2]\n");
  ASSERT_EQ(gradwire({"sweep", "sweep.toml", "--quiet"}).code, 0);
  std::vector<std::pair<fs::path, fs::file_time_type>> written;
  for (const auto& run : fs::directory_iterator(path() / "results/steps/runs"))
    written.emplace_back(run.path(), fs::last_write_time(run.path() / "summary.json"));
  write("[sweep]\nseed = [1, 2, 3]\n");
  const auto r = gradwire({"sweep", "sweep.toml"});
  EXPECT_EQ(r.code, 0);
  EXPECT_NE(r.err.find("2 of 3 runs have results already"), std::string::npos) << r.err;
  for (const auto& [run, time] : written) EXPECT_EQ(fs::last_write_time(run / "summary.json"), time);
  EXPECT_EQ(lines_of(read("results/steps/runs.csv")).size(), 4u);
  EXPECT_FALSE(fs::exists(path() / "results/steps/plot.tex"));
  const auto drawn = gradwire({"sweep", "sweep.toml", "--tikz"});
  EXPECT_EQ(drawn.code, 0);
  EXPECT_NE(drawn.err.find("3 of 3 runs have results already"), std::string::npos) << drawn.err;
  EXPECT_NE(read("results/steps/plot.tex").find("\\begin{groupplot}"), std::string::npos);
  const auto fresh = gradwire({"sweep", "sweep.toml", "--fresh"});
  EXPECT_EQ(fresh.code, 0);
  EXPECT_NE(fresh.err.find("moved the earlier sweep to results/steps.before"), std::string::npos)
      << fresh.err;
  EXPECT_EQ(fresh.err.find("have results already"), std::string::npos) << fresh.err;
  EXPECT_EQ(read("results/steps/best.csv"), read("results/steps.before/best.csv"));
}

TEST_F(Sweep, HasTheSameTableAfterAKillAndARestart) {
  std::string sweep =
      "[sweep]\nalgorithm.step_size = [\"theory\", \"theory*2\"]\nrun.rounds = [3000]\nseed = [1";
  constexpr std::size_t kSeeds = 20;
  for (std::size_t k = 2; k <= kSeeds; ++k) sweep += ", " + std::to_string(k);
  write(sweep + "]\n");
  ASSERT_EQ(gradwire({"sweep", "sweep.toml", "--out", "whole", "--quiet"}).code, 0);
  const fs::path runs = path() / "killed/runs";
  const auto finished = [&] {
    std::size_t count = 0;
    std::error_code ignored;
    for (fs::directory_iterator at(runs, ignored), end; at != end; at.increment(ignored))
      count += fs::exists(at->path() / "summary.json") && at->path().filename().string().front() != '.';
    return count;
  };
  {
    ChildProcess child(
        "sweep", program("gradwire"),
        {"sweep", (path() / "sweep.toml").string(), "--out", (path() / "killed").string(), "--jobs", "1"},
        path() / "log");
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (finished() < 5 && !child.ended() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    child.signal(SIGKILL);
    while (!child.ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::size_t before = finished();
  ASSERT_GE(before, 5u);
  const auto r = gradwire({"sweep", "sweep.toml", "--out", "killed"});
  EXPECT_EQ(r.code, 0) << r.err;
  if (before < 2 * kSeeds) {
    EXPECT_NE(r.err.find(std::to_string(before) + " of " + std::to_string(2 * kSeeds) +
                         " runs have results already"),
              std::string::npos)
        << r.err;
  }
  EXPECT_EQ(read("killed/best.csv"), read("whole/best.csv"));
  for (const auto& entry : fs::directory_iterator(runs))
    EXPECT_NE(entry.path().filename().string().front(), '.')
        << entry.path() << ": a folder of a killed run is left";
}
}  // namespace
}  // namespace gradwire
