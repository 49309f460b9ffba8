// The folder of results of a run, and the results that an earlier run left there.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "tests/experiments/small_folder.h"
#include "tests/support/data_files.h"
#include "tests/support/process.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

class EarlierResultsTest : public SmallFolder {};

TEST_F(EarlierResultsTest, NamesTheFolderAfterTheSettingsOfSet) {
  const auto r =
      gradwire({"run", "small.toml", "--set", "run.rounds=3", "--set", "algorithm.compressor=sign"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(r.out.starts_with("results: results/small-compressor=sign-rounds=3, ")) << r.out;
  EXPECT_FALSE(exists("results/small"));
  const auto other = gradwire({"run", "small.toml", "--set", "name=other", "--set", "run.rounds=3"});
  EXPECT_TRUE(other.out.starts_with("results: results/other, ")) << other.out;
}

TEST_F(EarlierResultsTest, ShortensALongNameAndKeepsItUnique) {
  const std::string deep(180, 'd');
  fs::create_directory(path() / deep);
  fs::copy_file(path() / "points.csv", path() / deep / "points.csv");
  for (const char* rounds : {"run.rounds=2", "run.rounds=3"})
    ASSERT_EQ(gradwire({"run", "small.toml", "--quiet", "--set", "problem.data=csv:" + deep + "/points.csv",
                        "--set", rounds})
                  .code,
              0);
  std::size_t folders = 0;
  for (const auto& entry : fs::directory_iterator(path() / "results")) {
    EXPECT_LT(entry.path().filename().string().size(), 200u);
    ++folders;
  }
  EXPECT_EQ(folders, 2u);
}

TEST_F(EarlierResultsTest, RejectsAFolderWithResultsOfOtherSettings) {
  ASSERT_EQ(gradwire({"run", "small.toml", "--quiet"}).code, 0);
  const std::string before = read("results/small/metrics.csv");
  const std::vector<std::string> changed = {"run",          "small.toml", "--quiet",      "--set",
                                            "run.rounds=3", "--out",      "results/small"};
  const auto refused = gradwire(changed);
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(lines_of(refused.err).size(), 1u) << refused.err;
  EXPECT_NE(
      refused.err.find("results/small: has the results of other settings: run.rounds is 3 now and was "),
      std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("; choose another folder with --out, or replace them with --overwrite"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(read("results/small/metrics.csv"), before);
  std::vector<std::string> replacing = changed;
  replacing.push_back("--overwrite");
  ASSERT_EQ(gradwire(replacing).code, 0);
  EXPECT_EQ(lines_of(read("results/small/metrics.csv")).size(), 3u);
}

TEST_F(EarlierResultsTest, ReplacesEqualResultsAndMovesOthersAside) {
  std::string config = kSmallExperiment;
  config.replace(config.find("name = \"ef21\""), 13, "name = \"ef21\"\nstep_size = 0.1");
  folder_.write("small.toml", config);
  for (int k = 0; k < 2; ++k) {
    const auto r = gradwire({"run", "small.toml"});
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.err.find("moved"), std::string::npos) << r.err;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(path() / "results"), {}), 1);
  const std::string model = read("results/small/model.bin");
  std::string points = read("points.csv");
  points.replace(0, points.find('\n'), "0.25,0.5,1");
  folder_.write("points.csv", points);
  for (const char* aside : {"results/small.before", "results/small.before-2"}) {
    const auto r = gradwire({"run", "small.toml"});
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.err.find("warning: the results differ from those that an earlier run left in "),
              std::string::npos)
        << r.err;
    EXPECT_TRUE(exists(std::string(aside) + "/plot.svg"));
    folder_.write("points.csv", points += "0.5,0.25,0\n0.5,1,1\n2,1,0\n");
  }
  EXPECT_EQ(read("results/small.before/model.bin"), model);
}

}  // namespace
}  // namespace gradwire
