// Programs read results in folders, the settings of an experiment, and the lists.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "gradwire/list.h"
#include "gradwire/train.h"
#include "tests/api/api_support.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

Experiment small() {
  return Experiment::from({{"problem.kind", "quadratic"},
                           {"problem.dim", 5},
                           {"clients.count", 3},
                           {"algorithm.name", "ef21"},
                           {"algorithm.compressor", "topk:k=2"},
                           {"run.rounds", 20}});
}

TEST(Read, GivesWhatARunSaved) {
  const TemporaryFolder folder;
  const TrainResult result = train(small());
  result.save(folder.path() / "a");
  const TrainResult read = TrainResult::read(folder.path() / "a");
  EXPECT_EQ(model_of(read), model_of(result));
  EXPECT_EQ(read.rounds(), 20u);
  EXPECT_EQ(read.outcome(), "finished");
  EXPECT_EQ(read.seconds(), result.seconds());
  EXPECT_EQ(read.summary(), result.summary());
  EXPECT_EQ(read.rows().size(), 21u);
  for (const char* column : {"loss", "grad_norm_sq", "bits_up", "seconds"})
    EXPECT_EQ(read.metrics(column), result.metrics(column)) << column;
  EXPECT_EQ(read.resolved().get("algorithm.step_size"), result.resolved().get("algorithm.step_size"));
  read.save(folder.path() / "b");
  for (const char* file : {"config.toml", "metrics.csv", "model.bin", "summary.json"})
    EXPECT_EQ(read_file(folder.path() / "a" / file), read_file(folder.path() / "b" / file)) << file;
}

TEST(Read, SaysThatARunGoesOnOrThatAFolderHasNoResults) {
  const TemporaryFolder folder;
  train(small()).save(folder.path() / "a");
  std::filesystem::remove(folder.path() / "a/summary.json");
  const TrainResult running = TrainResult::read(folder.path() / "a");
  EXPECT_EQ(running.outcome(), "running");
  EXPECT_EQ(running.rounds(), 20u);
  EXPECT_TRUE(running.model().empty());
  folder.write("a/summary.json", "{}");
  EXPECT_NE(error_of([&] { TrainResult::read(folder.path() / "a"); }).find("not a summary"),
            std::string::npos);
  EXPECT_NE(error_of([&] { TrainResult::read(folder.path()); }).find("config.toml is missing"),
            std::string::npos);
}

TEST(Read, FollowsARunThatFillsItsFolder) {
  const TemporaryFolder folder;
  const auto out = folder.path() / "a";
  std::vector<std::size_t> seen;
  const auto look = [&](const MetricsRow& row) {
    const TrainResult growing = TrainResult::read(out);
    EXPECT_EQ(growing.outcome(), "running");
    EXPECT_EQ(growing.rounds(), row.round);
    EXPECT_TRUE(growing.model().empty());
    EXPECT_EQ(growing.summary(), "");
    EXPECT_EQ(growing.rows().back().loss, row.loss);
    EXPECT_EQ(growing.experiment().get("algorithm.compressor"), "topk:k=2");
    seen.push_back(growing.rows().size());
    return row.round < 10;
  };
  train(small(), {.on_row = look, .out = out});
  EXPECT_EQ(seen.size(), 11u);
  EXPECT_EQ(seen.back(), 11u);
  EXPECT_EQ(TrainResult::read(out).outcome(), "reached_target");
  // Finished results stay what the folder has, until others replace them.
  const auto look_again = [&](const MetricsRow&) {
    EXPECT_EQ(TrainResult::read(out).outcome(), "reached_target");
    return true;
  };
  train(small().with("seed", 2), {.on_row = look_again, .out = out, .overwrite = true});
  EXPECT_EQ(TrainResult::read(out).outcome(), "finished");
}

TEST(Experiment, HasItsSettings) {
  const Experiment experiment = small();
  const KeyValues settings = experiment.settings();
  EXPECT_GT(settings.size(), 20u);
  for (const auto& [key, value] : settings) EXPECT_EQ(experiment.get(key), value.text()) << key;
}

TEST(List, HasTheEntriesOfGradwireList) {
  const std::vector<AlgorithmEntry> algorithms = list_algorithms();
  EXPECT_EQ(algorithms.size(), 43u);
  const auto ef21 = std::ranges::find(algorithms, "ef21", &AlgorithmEntry::name);
  ASSERT_NE(ef21, algorithms.end());
  EXPECT_EQ(ef21->compressors, "contractive");
  EXPECT_FALSE(ef21->batch);
  EXPECT_FALSE(ef21->asynchronous);
  EXPECT_EQ(ef21->parameters.front().name, "step_size");
  const std::vector<CompressorEntry> compressors = list_compressors();
  EXPECT_NE(std::ranges::find(compressors, "topk", &CompressorEntry::name), compressors.end());
  const std::vector<KeyEntry> keys = list_keys();
  EXPECT_NE(std::ranges::find(keys, "run.rounds", &KeyEntry::name), keys.end());
  const std::vector<ProblemEntry> problems = list_problems();
  const auto logistic = std::ranges::find(problems, "logistic", &ProblemEntry::name);
  ASSERT_NE(logistic, problems.end());
  EXPECT_EQ(logistic->reads, "samples");
  EXPECT_TRUE(logistic->exact_constants);
  EXPECT_EQ(problems.back().name, "custom");
  EXPECT_FALSE(problems.back().exact_constants);
  EXPECT_EQ(TrainResult::columns()[1], "loss");
}

}  // namespace
}  // namespace gradwire
