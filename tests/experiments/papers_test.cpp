// The sweeps that draw figures of papers: each says what it shows, and runs.
#include <atomic>
#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset.h"
#include "experiments/plot/plot_table.h"
#include "experiments/simulate/prepare.h"
#include "experiments/simulate/simulate.h"
#include "experiments/sweep/sweep_plan.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

const fs::path kProject = fs::path(__FILE__).parent_path().parent_path().parent_path();

std::vector<fs::path> paper_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kProject / "experiments" / "papers"))
    files.push_back(entry.path());
  return files;
}

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
  const std::string page = read_file(docs / "papers.md");
  for (const fs::path& file : paper_files()) {
    const std::string name = file.stem().string();
    const fs::path svg = docs / "images" / "papers" / (name + ".svg"),
                   csv = fs::path(svg).replace_extension(".csv");
    EXPECT_NE(page.find("experiments/papers/" + name + ".toml"), std::string::npos) << name;
    EXPECT_NE(page.find("(images/papers/" + name + ".svg)"), std::string::npos) << name;
    ASSERT_TRUE(fs::exists(svg) && fs::exists(csv)) << name;
    EXPECT_LT(fs::file_size(svg), 300'000u) << name;
    EXPECT_LT(fs::file_size(csv), 100'000u) << name;
    EXPECT_TRUE(read_file(csv).starts_with(kTableHeader)) << name;
  }
}

// Where the data sets are not there, the files are only read.
TEST(PaperFiles, TheFirstRunOfEachGoesWhereItsDataAre) {
  const auto data = test_data("a9a");
  std::optional<ScopedEnvironment> folder;
  if (data) folder.emplace("GRADWIRE_DATA", data->parent_path().c_str());
  const std::vector<std::string> short_run = {"run.rounds=3", "run.evaluate_every=1"};
  for (const fs::path& file : paper_files()) {
    const SweepPlan plan = read_sweep(file, short_run);
    EXPECT_GT(plan.runs.size(), 1u) << file;
    try {
      const std::atomic<bool> stop{false};
      const RunResult result = simulate(prepare(load_run(plan, plan.runs.front())), false, 1, {}, stop);
      EXPECT_EQ(result.outcome, Outcome::kFinished) << file;
      EXPECT_TRUE(std::isfinite(result.last.loss)) << file;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("not found"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace gradwire
