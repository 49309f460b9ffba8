// clients.csv and the keys that end a run, as users of the program see them.
#include <cmath>
#include <gtest/gtest.h>
#include <map>

#include "report/json.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFewDigits = R"(name = "digits"
[problem]
kind = "mlp"
data = "digits"
test_share = 0.2
hidden = [6]
[clients]
count = 5
partition = "by_label"
[algorithm]
name = "gd"
step_size = 0.1
[run]
rounds = 6
evaluate_every = 2
)";

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',')
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

class ClientMetricsRun : public ::testing::Test {
 protected:
  ClientMetricsRun() { folder_.write("digits.toml", kFewDigits); }

  // Runs with these keys. Returns the lines of clients.csv without the header and without names.
  std::vector<std::string> lines(const std::vector<std::string>& keys,
                                 const std::vector<std::string>& options = {"--threads", "1"}) {
    std::vector<std::string> arguments = {"run", "digits.toml", "--quiet", "--overwrite", "--out", "out"};
    for (const std::string& key : keys) arguments.insert(arguments.end(), {"--set", key});
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProgramResult r = run_gradwire(folder_.path(), arguments);
    EXPECT_EQ(r.code, 0) << r.err;
    std::vector<std::string> all = lines_of(read_file(out() / "clients.csv"));
    if (all.empty()) return all;
    EXPECT_EQ(all[0], "round,client,name,samples,loss,accuracy");
    all.erase(all.begin());
    for (std::string& line : all) {
      const auto cells = cells_of(line);
      EXPECT_EQ(cells.size(), 6u) << line;
      line = cells[0] + "," + cells[1] + "," + cells[3] + "," + cells[4] + "," + cells[5];
    }
    return all;
  }
  fs::path out() const { return folder_.path() / "out"; }
  std::vector<std::vector<std::string>> metrics() const {
    std::vector<std::vector<std::string>> rows;
    for (const std::string& line : lines_of(read_file(out() / "metrics.csv"))) rows.push_back(cells_of(line));
    rows.erase(rows.begin());
    return rows;
  }
  Json summary() const { return Json::parse(read_file(out() / "summary.json")); }

  TemporaryFolder folder_;
};

TEST_F(ClientMetricsRun, HasTheLossesWhoseMeanIsTheRowOfMetrics) {
  const auto all = lines({"run.client_metrics=all"});
  ASSERT_EQ(all.size(), 4u * 5);
  std::map<std::string, double> sums, samples;
  for (const std::string& line : all) {
    const auto cells = cells_of(line);
    samples[cells[0]] += std::stod(cells[2]);
    sums[cells[0]] += std::stod(cells[3]) / 5;
    EXPECT_TRUE(std::stod(cells[4]) >= 0 && std::stod(cells[4]) <= 1) << line;
  }
  ASSERT_EQ(metrics().size(), 4u);
  for (const auto& row : metrics()) {
    EXPECT_NEAR(sums[row[0]], std::stod(row[1]), 1e-12) << row[0];
    EXPECT_GE(samples[row[0]], 1430);
  }
  EXPECT_NE(cells_of(all[0])[3], cells_of(all[1])[3]) << "clients of other labels have other losses";
  const std::vector<std::string> of_last_row(all.end() - 5, all.end());
  EXPECT_EQ(lines({}), of_last_row);
  EXPECT_EQ(lines({"run.client_metrics=last"}), of_last_row);
}

TEST_F(ClientMetricsRun, IsTheSameWithThreadsMessagesSocketsAndAVirtualClock) {
  const std::vector<std::string> all = {"run.client_metrics=all"};
  const auto expected = lines(all);
  const std::string rows = without_seconds(read_file(out() / "metrics.csv"));
  EXPECT_EQ(lines(all, {"--threads", "3"}), expected);
  EXPECT_EQ(lines(all, {"--transport", "encoded"}), expected);
  EXPECT_EQ(lines({all[0], "faults.lost_replies=0.2"}), expected);
  EXPECT_EQ(lines({all[0], "clients.latency=linear"}), expected);
  EXPECT_EQ(lines(all, {"--transport", "tcp"}), expected);
  lines({"run.client_metrics=none"});
  EXPECT_EQ(without_seconds(read_file(out() / "metrics.csv")), rows) << "metrics do not depend on it";
}

TEST_F(ClientMetricsRun, HasARowForEachClientThatAnEvaluationAsks) {
  EXPECT_EQ(lines({"evaluation.clients=0.4"}).size(), 2u);
  EXPECT_EQ(lines({"algorithm.name=ringmaster", "run.client_metrics=all"}).size(), 4u * 5);
}

TEST_F(ClientMetricsRun, HasNoAccuracyWithoutTestSamples) {
  const auto all = lines({"problem.test_share=0"});
  ASSERT_EQ(all.size(), 5u);
  for (const std::string& line : all) EXPECT_TRUE(line.ends_with(",")) << line;
}

TEST_F(ClientMetricsRun, IsNotThatOfAnEarlierRun) {
  EXPECT_FALSE(lines({}).empty());
  EXPECT_TRUE(lines({"run.client_metrics=none"}).empty());
  EXPECT_FALSE(fs::exists(out() / "clients.csv"));
  EXPECT_TRUE(lines({"run.evaluate_every=0"}).empty());
}

TEST_F(ClientMetricsRun, IsNotMadeByDefaultForManyClients) {
  folder_.write("digits.toml",
                "[problem]\nkind = \"quadratic\"\ndim = 2\n[clients]\ncount = 10001\n[algorithm]\nname = "
                "\"gd\"\n[run]\nrounds = 1\n");
  EXPECT_TRUE(lines({}).empty());
  EXPECT_EQ(lines({"run.client_metrics=last"}).size(), 10'001u);
}

TEST_F(ClientMetricsRun, EndsAtATargetLossOrAccuracyOrAtAStandstill) {
  lines({"run.rounds=40"});
  const auto rows = metrics();
  ASSERT_EQ(rows.size(), 21u);
  const auto ended = [&](const std::string& key) {
    lines({"run.rounds=40", key});
    return std::pair{summary()["outcome"].get<std::string>(), summary()["rounds"].get<int>()};
  };
  EXPECT_EQ(ended("run.stop_at_loss=" + rows[7][1]), std::pair(std::string("reached_target"), 14));
  EXPECT_EQ(summary()["reason"].get<std::string>().find("the loss "), 0u);
  std::size_t first = 0;
  const double accuracy = std::stod(rows.back()[3]);
  while (std::stod(rows[first][3]) < accuracy) ++first;
  EXPECT_EQ(ended("run.stop_at_accuracy=" + rows.back()[3]),
            std::pair(std::string("reached_target"), static_cast<int>(2 * first)));
  EXPECT_EQ(summary()["reason"].get<std::string>().find("the accuracy "), 0u);
  EXPECT_EQ(ended("run.patience=3"), std::pair(std::string("finished"), 40)) << "the loss falls";
  EXPECT_EQ(summary()["reason"], "");
  lines({"run.rounds=40", "run.patience=3", "algorithm.step_size=1e-300"});
  EXPECT_EQ(summary()["outcome"], "stalled");
  EXPECT_EQ(summary()["rounds"], 6) << "rows 2, 4 and 6 are not below row 0";
  EXPECT_EQ(summary()["reason"], "the loss has had no new minimum in 3 evaluations (run.patience)");
  lines({"run.rounds=40", "run.patience=3", "algorithm.step_size=1e-300"}, {"--transport", "tcp"});
  EXPECT_EQ(summary()["outcome"], "stalled");
  EXPECT_EQ(summary()["rounds"], 6);
}

TEST_F(ClientMetricsRun, SaysThatAnAccuracyCannotBeReachedWithoutTestSamples) {
  const ProgramResult r =
      run_gradwire(folder_.path(), {"run", "digits.toml", "--overwrite", "--set", "problem.test_share=0",
                                    "--set", "run.stop_at_accuracy=0.5", "--out", "out"});
  EXPECT_EQ(r.code, 0);
  EXPECT_NE(r.err.find("warning: run.stop_at_accuracy has no effect"), std::string::npos) << r.err;
}

}  // namespace
}  // namespace gradwire
