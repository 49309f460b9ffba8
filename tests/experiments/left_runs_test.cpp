// The work folders of runs that were killed, or that failed, before they had results.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <signal.h>

#include "experiments/cli/support/child_process.h"
#include "report/results_dir.h"
#include "tests/support/data_files.h"
#include "tests/support/process.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

class LeftRuns : public ::testing::Test {
 protected:
  // Makes the folder of an ended run, with two rows of metrics. With `lock` it looks as after a kill.
  fs::path leave(const std::string& name, bool lock) {
    fs::create_directories(folder_.path() / "results");
    const fs::path made = folder_.path() / "results" / name;
    fs::create_directory(made);
    std::ofstream(made / "metrics.csv") << "round,loss\n0,1\n1,0.5\n";
    if (lock) std::ofstream(made / "lock") << "3";
    return made;
  }
  fs::path results() const { return folder_.path() / "results"; }

  TemporaryFolder folder_;
};

TEST_F(LeftRuns, AreRemovedIfTheyWereKilledUnderAnotherName) {
  const fs::path same = leave(".mine.unfinished-1", true), other = leave(".other.run.unfinished-22", true);
  const fs::path kept = leave(".other.unfinished-3", false), alive = leave(".third.unfinished-4", true);
  const FolderLock living(alive);
  std::vector<fs::path> foreign;
  for (const char* name : {"other.unfinished-1", ".unfinished-1", ".other.unfinished-",
                           ".other.unfinished-1x", ".other.checkpoint", "other"})
    foreign.push_back(leave(name, true));
  {
    const ResultsDir mine(results() / "mine", "mine");
    ASSERT_EQ(mine.cleared().size(), 2u);
    EXPECT_EQ(mine.cleared()[0].folder, same);
    EXPECT_EQ(mine.cleared()[0].run, "mine");
    EXPECT_FALSE(mine.cleared()[0].has_checkpoint);
    EXPECT_EQ(mine.cleared()[1].folder, other);
    EXPECT_EQ(mine.cleared()[1].run, "other.run");
  }
  EXPECT_FALSE(fs::exists(same));
  EXPECT_FALSE(fs::exists(other));
  EXPECT_TRUE(fs::exists(kept / "metrics.csv"));
  EXPECT_TRUE(fs::exists(alive / "metrics.csv"));
  for (const fs::path& folder : foreign) EXPECT_TRUE(fs::exists(folder / "metrics.csv")) << folder;
}

TEST_F(LeftRuns, AreNotFollowedThroughASymbolicLink) {
  const fs::path target = leave("precious", true);
  fs::create_directory_symlink(target, results() / ".other.unfinished-7");
  const fs::path inside = leave(".other.unfinished-8", true);
  fs::create_directory_symlink(target, inside / "link");
  const ResultsDir mine(results() / "mine", "mine");
  EXPECT_FALSE(fs::exists(inside));
  EXPECT_TRUE(fs::exists(target / "metrics.csv"));
  EXPECT_TRUE(fs::exists(target / "lock"));
  EXPECT_TRUE(fs::is_symlink(results() / ".other.unfinished-7"));
}

TEST_F(LeftRuns, StayIfTheyFailedAndALaterRunHasTheirProcessNumber) {
  const fs::path kept = leave(".mine.unfinished-" + std::to_string(::getpid()), false);
  const ResultsDir mine(results() / "mine", "mine");
  EXPECT_NE(mine.work(), kept);
  EXPECT_TRUE(fs::exists(kept / "metrics.csv"));
}

TEST_F(LeftRuns, AreListedWithTheirContents) {
  EXPECT_EQ(run_gradwire(folder_.path(), {"list", "runs"}).out, "No run in results ended without results\n");
  leave(".killed.unfinished-1", true);
  leave(".failed.unfinished-2", false);
  std::ofstream(leave(".early.unfinished-3", true) / "metrics.csv") << "round,loss\n";
  fs::create_directory(results() / ".killed.checkpoint");
  const auto said = run_gradwire(folder_.path(), {"list", "runs"});
  EXPECT_EQ(said.code, 0) << said.err;
  const auto lines = lines_of(said.out);
  ASSERT_GE(lines.size(), 3u) << said.out;
  EXPECT_EQ(lines[0], "Runs that ended without results");
  EXPECT_NE(lines[1].find("results/.failed.unfinished-2  metrics.csv with 2 rows, of a run that failed"),
            std::string::npos)
      << said.out;
  EXPECT_NE(said.out.find("results/.killed.unfinished-1  metrics.csv with 2 rows, of a run that was killed"),
            std::string::npos)
      << said.out;
  EXPECT_NE(said.out.find("the same gradwire run resumes it"), std::string::npos) << said.out;
  EXPECT_EQ(said.out.find(".early."), std::string::npos) << said.out;
  const std::string all = run_gradwire(folder_.path(), {"list"}).out;
  EXPECT_TRUE(all.ends_with("\n" + said.out)) << all;
}

TEST_F(LeftRuns, DoNotDisturbEachOtherIfTheyBeginTogether) {
  folder_.write("short.toml",
                "[problem]\nkind = \"quadratic\"\ndim = 3\n[clients]\ncount = 2\n[algorithm]\nname = \"gd\"\n"
                "step_size = 0.001\n[run]\nrounds = 2\n");
  for (int turn = 0; turn < 5; ++turn) {
    std::vector<std::pair<std::string, ChildProcess>> runs;
    for (int k = 0; k < 8; ++k) {
      const std::string name = "run" + std::to_string(8 * turn + k);
      runs.emplace_back(name, ChildProcess("gradwire", program("gradwire"),
                                           {"run", (folder_.path() / "short.toml").string(), "--out",
                                            (results() / name).string(), "--set", "name=" + name},
                                           folder_.path() / (name + ".log")));
    }
    for (auto& [name, run] : runs) {
      ASSERT_TRUE(eventually([&] { return run.ended().has_value(); }));
      EXPECT_TRUE(fs::exists(results() / name / "summary.json")) << run.last_line();
    }
  }
}

constexpr const char* kLongRun = R"([problem]
kind = "quadratic"
dim = 10
[clients]
count = 3
[algorithm]
name = "gd"
step_size = 0.001
[run]
rounds = 1000000000
evaluate_every = 10
)";

// A run is killed while a run with another name is alive. Then a third run begins in the same folder.
TEST_F(LeftRuns, AreRemovedWhileAnotherRunLives) {
  folder_.write("long.toml", kLongRun);
  const auto start = [&](const std::string& name) {
    return ChildProcess("gradwire", program("gradwire"),
                        {"run", (folder_.path() / "long.toml").string(), "--out", (results() / name).string(),
                         "--set", "name=" + name, "--checkpoint-every", "0.01"},
                        folder_.path() / (name + ".log"));
  };
  // Finds the work folder of a run. If the other run takes it for an abandoned one before it is locked, the
  // run makes another, with a larger number.
  const auto work_of = [&](const std::string& name) {
    const std::string start = "." + name + ".unfinished-";
    std::error_code none_yet;
    for (const auto& entry : fs::directory_iterator(results(), none_yet))
      if (entry.path().filename().string().starts_with(start)) return entry.path();
    return fs::path();
  };
  ChildProcess killed = start("killed"), alive = start("alive");
  for (const std::string name : {"killed", "alive"})
    ASSERT_TRUE(eventually([&] {
      const fs::path folder = work_of(name);
      return fs::exists(folder / "metrics.csv") && lines_of(read_file(folder / "metrics.csv")).size() > 3 &&
             fs::exists(results() / ("." + name + ".checkpoint") / "metrics.csv");
    })) << name;
  const fs::path left = work_of("killed"), used = work_of("alive");
  killed.signal(SIGKILL);
  ASSERT_TRUE(eventually([&] { return killed.ended().has_value(); }));
  EXPECT_TRUE(fs::exists(left));
  const auto listed = run_gradwire(folder_.path(), {"list", "runs"});
  EXPECT_NE(listed.out.find(left.filename().string()), std::string::npos) << listed.out;
  EXPECT_EQ(listed.out.find(used.filename().string()), std::string::npos) << listed.out;

  const auto third =
      run_gradwire(folder_.path(), {"run", "long.toml", "--set", "name=third", "--set", "run.rounds=5"});
  EXPECT_EQ(third.code, 0) << third.err;
  EXPECT_NE(
      third.err.find("removed " + left.string() + ", which a killed run had left; its checkpoint stays"),
      std::string::npos)
      << third.err;
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(results() / ".killed.checkpoint"));
  EXPECT_TRUE(fs::exists(used / "metrics.csv"));
  alive.signal(SIGINT);
  ASSERT_TRUE(eventually([&] { return alive.ended().has_value(); }));
  EXPECT_TRUE(fs::exists(results() / "alive/summary.json")) << alive.last_line();
}

}  // namespace
}  // namespace gradwire
