// The sweeps that draw figures of papers, and the federated classics. Each file says what it shows, and runs.
#include <atomic>
#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "experiments/cli/sweep/sweep_plan.h"
#include "plotting/plot_table.h"
#include "simulation/prepare.h"
#include "simulation/simulate.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

const fs::path kProject = GRADWIRE_SOURCE_DIR;

std::vector<fs::path> files_of(const char* folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kProject / "experiments" / folder))
    files.push_back(entry.path());
  return files;
}

std::vector<fs::path> paper_files() { return files_of("papers"); }
std::vector<fs::path> classic_files() { return files_of("classics"); }

// Runs three rounds of one run of a sweep. If its data set is missing, the error must say so.
void expect_runs(const fs::path& file, const SweepPlan& plan, const RunOfSweep& run) {
  try {
    const std::atomic<bool> stop{false};
    const RunResult result = simulate(prepare(load_run(plan, run)), false, 1, {}, stop);
    EXPECT_EQ(result.outcome, Outcome::kFinished) << file;
    EXPECT_TRUE(std::isfinite(result.last.loss)) << file;
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("not found"), std::string::npos) << error.what();
  }
}

const std::vector<std::string> kShortRun = {"run.rounds=3", "run.evaluate_every=1"};

TEST(PaperFiles, SayThePaperItsClaimAndTheCommand) {
  ASSERT_GT(paper_files().size(), 0u);
  for (const fs::path& file : paper_files()) {
    const std::string text = read_file(file), head = text.substr(0, text.find("\n\n"));
    EXPECT_NE(head.find("arXiv:"), std::string::npos) << file;
    EXPECT_NE(head.find("Claim:"), std::string::npos) << file;
    EXPECT_NE(head.find("gradwire sweep experiments/papers/" + file.filename().string()), std::string::npos)
        << file;
    EXPECT_FALSE(read_sweep(file, {}).figure.panels.empty()) << file;
  }
}

TEST(PaperFiles, HaveAFigureItsNumbersAndAPlaceInTheDocumentation) {
  const fs::path docs = kProject / "docs";
  const std::string page = read_file(docs / "reference" / "papers.md");
  for (const fs::path& file : paper_files()) {
    const std::string name = file.stem().string();
    const fs::path svg = docs / "images" / "papers" / (name + ".svg"),
                   csv = fs::path(svg).replace_extension(".csv");
    EXPECT_NE(page.find("experiments/papers/" + name + ".toml"), std::string::npos) << name;
    EXPECT_NE(page.find("(../images/papers/" + name + ".svg)"), std::string::npos) << name;
    ASSERT_TRUE(fs::exists(svg) && fs::exists(csv)) << name;
    EXPECT_LT(fs::file_size(svg), 300'000u) << name;
    EXPECT_LT(fs::file_size(csv), 100'000u) << name;
    EXPECT_TRUE(read_file(csv).starts_with(kTableHeader)) << name;
  }
}

// Without the data sets the files are only read.
TEST(PaperFiles, RunTheirFirstExperimentIfTheirDataAreAvailable) {
  const auto data = test_data("a9a");
  std::optional<ScopedEnvironment> folder;
  if (data) folder.emplace("GRADWIRE_DATA", data->parent_path().c_str());
  for (const fs::path& file : paper_files()) {
    const SweepPlan plan = read_sweep(file, kShortRun);
    EXPECT_GT(plan.runs.size(), 1u) << file;
    expect_runs(file, plan, plan.runs.front());
  }
}

TEST(ClassicFiles, SayTheCommandTheNumberOfRunsAndTheTarget) {
  ASSERT_GT(classic_files().size(), 0u);
  const std::string page = read_file(kProject / "docs" / "reference" / "classics.md");
  for (const fs::path& file : classic_files()) {
    const SweepPlan plan = read_sweep(file, {});
    const std::string text = read_file(file), head = text.substr(0, text.find("\n\n"));
    const std::string command = "gradwire sweep experiments/classics/" + file.filename().string(),
                      runs = std::to_string(plan.runs.size()) + " runs";
    EXPECT_NE(head.find(command), std::string::npos) << file;
    EXPECT_NE(head.find(runs), std::string::npos) << file << ": " << runs;
    ASSERT_NE(page.find(command), std::string::npos) << file;
    const std::string line = page.substr(page.find(command), 120);
    EXPECT_NE(line.find("# " + runs), std::string::npos) << line;
    ASSERT_TRUE(plan.judgement.target) << file;
    EXPECT_NE(head.find(std::to_string(std::lround(100 * *plan.judgement.target)) + " %"), std::string::npos)
        << file;
  }
}

// Does one run of each algorithm and local optimizer. Without the data sets the files are only read.
TEST(ClassicFiles, RunEachAlgorithmIfItsDataAreAvailable) {
  const auto data = test_data("tinyshakespeare.txt");
  std::optional<ScopedEnvironment> folder;
  if (data) folder.emplace("GRADWIRE_DATA", data->parent_path().c_str());
  const std::vector<std::string> one_seed = {"run.rounds=1", "run.evaluate_every=3", "evaluation.clients=0.1",
                                             "seed=1"};
  for (const fs::path& file : classic_files()) {
    const SweepPlan plan = read_sweep(file, one_seed);
    std::set<std::string> seen;
    for (const RunOfSweep& run : plan.runs) {
      std::string algorithm;
      for (const TomlEntry& entry : run.chosen)
        if (entry.section == "algorithm" && (entry.key == "name" || entry.key == "local_optimizer"))
          algorithm += text_of(entry.value) + ' ';
      if (seen.insert(algorithm).second) expect_runs(file, plan, run);
    }
    EXPECT_GE(seen.size(), 7u) << file;
  }
}

}  // namespace
}  // namespace gradwire
