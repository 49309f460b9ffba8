// sweep() and plot(): many runs of a program, and their figure.
#include "gradwire/sweep.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
  std::vector<std::size_t> ended;
  const SweepOptions options{
      .out = folder.path() / "sweep", .jobs = 2, .on_run = [&](std::size_t count, std::size_t runs) {
        ended.push_back(count);
        EXPECT_EQ(runs, 6u);
      }};
  const SweepResult result = sweep(quadratics(), grid, options);
  EXPECT_EQ(ended, (std::vector<std::size_t>{1, 2, 3, 4, 5, 6}));
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
  EXPECT_EQ(ended.size(), 6u);

  const auto figure = folder.path() / "figure.svg";
  const auto files = plot({result.runs[0].folder, result.runs[2].folder}, figure,
                          {.x = "rounds", .y = "loss", .labels = {{result.runs[0].folder, "small steps"}}});
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files[0], figure);
  std::ifstream in(figure);
  const std::string svg{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(svg.find("small steps"), std::string::npos);

  const auto curves = [&](bool all) {
    const auto file = folder.path() / "curves.csv";
    plot({result.folder}, file, {.x = "rounds", .y = "loss", .all = all});
    std::ifstream csv(file);
    std::string line;
    std::set<std::string> labels;
    while (std::getline(csv, line)) {
      for (int field = 0; field < 4; ++field) line.resize(line.rfind(','));  // x, y, low, high
      labels.insert(line);
    }
    return labels.size() - 1;  // without the head
  };
  EXPECT_EQ(curves(false), 1u) << "that of the best step";
  EXPECT_EQ(curves(true), 3u);

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

// f_i(x) = |x - i|^2 / 2, which counts its callers.
class CountedDistance final : public Oracle<double> {
 public:
  explicit CountedDistance(double to) : to_(to) {}
  std::size_t dim() const override { return 10; }
  std::size_t sample_count() const override { return 1; }
  double loss_and_gradient(std::span<const double> x, Batch, std::span<double> gradient) override {
    EXPECT_EQ(callers_++, 0) << "two threads call one oracle";
    double loss = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      gradient[j] = x[j] - to_;
      loss += gradient[j] * gradient[j] / 2;
    }
    --callers_;
    return loss;
  }

 private:
  double to_;
  std::atomic<int> callers_ = 0;
};

std::vector<std::unique_ptr<CountedDistance>> distances_of_three(double shift = 0) {
  std::vector<std::unique_ptr<CountedDistance>> oracles;
  for (int i = 0; i < 3; ++i) oracles.push_back(std::make_unique<CountedDistance>(i + shift));
  return oracles;
}
// Returns an experiment on them.
Experiment of_three(const std::string& algorithm, int rounds) {
  return Experiment::from({{"problem.kind", "custom"},
                           {"problem.dim", 10},
                           {"clients.count", 3},
                           {"algorithm.name", algorithm},
                           {"run.rounds", rounds}});
}

// Gradient descent, and the identity as a compressor of the program.
struct MyGd final : UserAlgorithm<double> {
  explicit MyGd(std::string own_name = "my_gd") : own_name_(std::move(own_name)) {}
  std::string name() const override { return own_name_; }
  Message<double> client(ClientRound<double>& round, std::span<const double> x,
                         AlgorithmState<double>&) const override {
    return {round.compress(round.gradient(x))};
  }
  void server(ServerRound<double>& round, std::vector<double>& x, AlgorithmState<double>&) const override {
    std::vector<double> mean(x.size());
    round.add_mean(mean);
    for (std::size_t j = 0; j < x.size(); ++j) x[j] -= round.step_size() * mean[j];
  }

 private:
  std::string own_name_;
};
struct Whole final : UserCompressor<double> {
  std::string name() const override { return "whole"; }
  CompressorConstants constants(std::size_t d) const override {
    return CompressorConstants::of_unbiased(0, static_cast<double>(d));
  }
  Compressed<double> compress(std::span<const double> v, RandomStream&) const override {
    return Compressed<double>::whole({v.begin(), v.end()});
  }
};

TEST(SweepApi, HasTheBitsOfSingleRunsOverFunctionsOfTheProgram) {
  const TemporaryFolder folder;
  const auto oracles = distances_of_three();
  const Experiment experiment = of_three("dcgd", 20).with("algorithm.step_size", 0.1);
  const SweepResult result = sweep(
      oracles, experiment, {{"algorithm.name", {"custom", "dcgd"}}, {"algorithm.step_size", {0.1, 0.5}}},
      {.algorithm = MyGd(), .compressor = Whole(), .out = folder.path() / "sweep", .jobs = 4});
  EXPECT_TRUE(result.failed.empty());
  ASSERT_EQ(result.runs.size(), 4u);
  for (const SweptRun& run : result.runs) {
    EXPECT_EQ(run.values[0].first, "algorithm.name");
    const Experiment alone = experiment.with(
        {{"algorithm.compressor", "identity"}, {"algorithm.step_size", run.values[1].second}});
    const TrainResult swept = TrainResult::read(run.folder), single = train(oracles, alone);
    EXPECT_EQ(model_of(swept), model_of(single)) << run.values[0].second;
    EXPECT_EQ(swept.metrics("bits_up"), single.metrics("bits_up"));
  }
  ASSERT_EQ(result.best.size(), 2u);
  EXPECT_EQ(result.best[0].median, result.best[1].median);
}

TEST(SweepApi, RefusesTheFolderOfOtherFunctionsOrSamples) {
  const TemporaryFolder folder;
  const auto run_with = [&](double shift, const std::vector<double>& x0, bool fresh) {
    return sweep(distances_of_three(shift), of_three("gd", 2), {{"algorithm.step_size", {0.1, 0.5}}},
                 {.x0 = x0, .out = folder.path() / "sweep", .fresh = fresh});
  };
  const std::string table = run_with(0, {}, false).table;
  EXPECT_EQ(run_with(0, {}, false).table, table);
  const std::string error =
      (folder.path() / "sweep").string() +
      ": its runs have other functions, samples or algorithms of the program; choose another folder "
      "(out), or move these runs aside (fresh)";
  EXPECT_EQ(error_of([&] { run_with(1, {}, false); }), error);
  EXPECT_EQ(error_of([&] { run_with(0, std::vector<double>(10, 1), false); }), error);
  EXPECT_NE(run_with(1, {}, true).table, table);
  EXPECT_EQ(error_of([&] { run_with(0, {}, false); }), error);

  const Experiment logistic = Experiment::from({{"problem.kind", "logistic"},
                                                {"problem.data", "given"},
                                                {"clients.count", 2},
                                                {"algorithm.name", "gd"},
                                                {"run.rounds", 2}});
  const auto run_on = [&](double label) {
    return sweep(logistic, {{"algorithm.step_size", {0.5}}},
                 {.data = Data::dense(1, {1, 2, -1, 3}, {1, -1, 1, label}), .out = folder.path() / "data"});
  };
  EXPECT_TRUE(run_on(1).failed.empty());
  EXPECT_TRUE(run_on(1).failed.empty());
  EXPECT_NE(error_of([&] { run_on(-1); }).find("other functions, samples"), std::string::npos);

  const auto run_named = [&](const MyGd& algorithm) {
    return sweep(quadratics(), {{"seed", {1}}}, {.algorithm = algorithm, .out = folder.path() / "algorithm"});
  };
  EXPECT_TRUE(run_named(MyGd()).failed.empty());
  EXPECT_TRUE(run_named(MyGd()).failed.empty());
  EXPECT_NE(error_of([&] { run_named(MyGd("other")); }).find("algorithms of the program"), std::string::npos);
}

TEST(SweepApi, TakesAStartPointConstantsAndARule) {
  const TemporaryFolder folder;
  const auto oracles = distances_of_three();
  const Experiment experiment = of_three("gd", 30);
  const std::vector<double> x0(10, 4), L_i = {1, 1, 4};
  const SweepResult result =
      sweep(oracles, experiment, {{"algorithm.step_size", {"theory", 0.1}}, {"seed", {1, 2}}},
            {.x0 = x0,
             .smoothness = L_i,
             .criterion = "loss",
             .budget = "round = 20",
             .target = 3.5,
             .out = folder.path() / "sweep"});
  EXPECT_TRUE(result.failed.empty());
  for (const SweptRun& run : result.runs) {
    const TrainResult single = train(oracles, experiment.with("algorithm.step_size", run.values[1].second),
                                     {.x0 = x0, .smoothness = L_i});
    EXPECT_EQ(model_of(TrainResult::read(run.folder)), model_of(single)) << run.values[1].second;
  }
  ASSERT_EQ(result.best.size(), 1u);
  EXPECT_EQ(result.best[0].tuned, "algorithm.step_size = theory") << "0.5 reaches the loss in fewer rounds";
  EXPECT_NE(result.table.find("round"), std::string::npos) << result.table;

  const SweepResult by_seed = sweep(oracles, experiment.with("algorithm.step_size", 0.1), {{"seed", {1, 2}}},
                                    {.x0 = x0, .tune = {"seed"}, .out = folder.path() / "seeds"});
  ASSERT_EQ(by_seed.best.size(), 1u);
  EXPECT_EQ(by_seed.best[0].tuned, "seed = 1");
  EXPECT_EQ(error_of([&] {
              sweep(oracles, experiment, {{"seed", {1}}}, {.smoothness = {1}, .out = folder.path() / "few"});
            }),
            "smoothness: has 1 numbers; a run of 3 clients needs one for each");
  EXPECT_NE(
      error_of([&] {
        sweep(oracles, experiment, {{"seed", {1}}}, {.criterion = "lose", .out = folder.path() / "few"});
      }).find("did you mean 'loss'?"),
      std::string::npos);
}

TEST(SweepApi, SharesGivenSamples) {
  const TemporaryFolder folder;
  const Experiment experiment = Experiment::from({{"problem.kind", "logistic"},
                                                  {"problem.data", "given"},
                                                  {"clients.count", 2},
                                                  {"algorithm.name", "gd"},
                                                  {"algorithm.step_size", "theory"},
                                                  {"run.rounds", 20}});
  const Data data = Data::dense(2, {1, 2, -1, 0.5, 3, -2, 0.25, 1}, {1, -1, 1, -1});
  const Data test = Data::dense(2, {1, 2, -1, 0.5}, {1, -1});
  const SweepResult result = sweep(experiment, {{"algorithm.step_size", {0.5, "theory"}}, {"seed", {1, 2}}},
                                   {.data = data, .test = test, .out = folder.path() / "sweep", .jobs = 3});
  EXPECT_TRUE(result.failed.empty());
  for (const SweptRun& run : result.runs) {
    const TrainResult single = train(
        experiment.with({{"seed", run.values[0].second}, {"algorithm.step_size", run.values[1].second}}),
        {.data = data, .test = test});
    const TrainResult swept = TrainResult::read(run.folder);
    EXPECT_EQ(model_of(swept), model_of(single));
    EXPECT_EQ(swept.metrics("accuracy"), single.metrics("accuracy"));
  }
}

TEST(SweepApi, ListsRunsThatDoNotFitThePartsOfTheProgram) {
  const TemporaryFolder folder;
  const SweepResult result =
      sweep(quadratics().with("algorithm.name", "dcgd"), {{"precision", {"fp64", "fp32"}}},
            {.compressor = Whole(), .out = folder.path() / "sweep"});
  EXPECT_EQ(result.failed,
            std::vector<std::string>{
                "precision = fp32: algorithm.compressor: the run has precision = \"fp32\", but the "
                "program's compressor is of double"});
  CountedDistance distance(1);
  EXPECT_NE(error_of([&] { sweep(std::vector{&distance, &distance}, quadratics(), {{"seed", {1}}}); }), "");
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
