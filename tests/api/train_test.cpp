// train(): a run of a program with its own functions, or of an experiment file.
#include "gradwire/train.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/oracles/quadratic.h"
#include "tests/api/api_support.h"
#include "tests/api/distances.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

void expect_mean(std::span<const double> x, double error) {
  ASSERT_EQ(x.size(), 3u);
  EXPECT_NEAR(x[0], 1, error);
  EXPECT_NEAR(x[1], 2, error);
  EXPECT_NEAR(x[2], 1, error);
}

TEST(Train, FindsTheMinimumOfTheProgramsFunctionsInBothPrecisions) {
  auto wide = distances<double>();
  const TrainResult result =
      train(wide, {.algorithm = "ef21", .compressor = "topk:k=1", .step_size = 0.2, .rounds = 300});
  expect_mean(result.model(), 1e-6);
  EXPECT_EQ(result.outcome(), "finished");
  EXPECT_EQ(result.rounds(), 300u);
  EXPECT_EQ(result.trouble(), "");
  EXPECT_EQ(result.rows().size(), 301u);
  EXPECT_EQ(result.metrics("loss").size(), 301u);
  EXPECT_EQ(result.metrics("loss").back(), result.rows().back().loss);
  EXPECT_TRUE(std::isnan(result.metrics("accuracy").front()));
  EXPECT_EQ(result.experiment().get("problem.kind"), "custom");
  EXPECT_EQ(result.experiment().get("problem.dim"), "3");
  EXPECT_EQ(result.experiment().clients(), 4u);
  auto narrow = distances<float>();
  const TrainResult floats = train(narrow, {.algorithm = "gd", .step_size = 1, .rounds = 3});
  expect_mean(floats.model(), 1e-6);
  EXPECT_EQ(floats.experiment().get("precision"), "fp32");
}

TEST(Train, TakesPointersAndOwnersOfOracles) {
  auto clients = distances<double>();
  std::vector<Oracle<double>*> pointers;
  std::vector<std::unique_ptr<Oracle<double>>> owners;
  for (const Distance<double>& client : clients) owners.push_back(std::make_unique<Distance<double>>(client));
  for (Distance<double>& client : clients) pointers.push_back(&client);
  const TrainKeys keys = {.algorithm = "gd", .step_size = 1, .rounds = 1};
  expect_mean(train(pointers, keys).model(), 1e-12);
  expect_mean(train(owners, keys).model(), 1e-12);
}

TEST(Train, EstimatesTheConstantsOfFunctionsForTheStepsOfTheory) {
  auto clients = distances<double>();
  const TrainResult result = train(clients, {.algorithm = "ef21", .compressor = "topk:k=1", .rounds = 500});
  expect_mean(result.model(), 1e-6);
  EXPECT_NE(result.resolved().get("algorithm.step_size"), "theory");
  ASSERT_FALSE(result.warnings().empty());
  EXPECT_NE(result.warnings()[0].find("no closed-form constants"), std::string::npos) << result.warnings()[0];
  auto narrow = distances<float>();
  EXPECT_NE(error_of([&] { train(narrow, {.algorithm = "gd"}); }).find("estimated in double alone"),
            std::string::npos);
}

// The functions of the kind quadratic, brought by the program, must give the run of that kind.
TEST(Train, GivesTheBitsOfAProblemKindWithTheSameFunctions) {
  const std::string keys = R"(
[algorithm]
name = "diana"
compressor = "randk:k=3"
step_size = 0.05
alpha = 0.1
[run]
rounds = 40
x0 = "normal"
)";
  const TrainResult kind = train(Experiment::parse(
      "[problem]\nkind = \"quadratic\"\ndim = 12\nheterogeneity = 0.7\n[clients]\ncount = 5\n" + keys));
  const auto family = std::make_shared<const QuadraticFamily>(
      QuadraticShape{.dim = 12, .lambda = 1e-3, .heterogeneity = 0.7}, 5u, 1u);
  std::vector<QuadraticOracle<double>> oracles;
  for (std::uint32_t i = 0; i < 5; ++i) oracles.emplace_back(*family, i);
  for (const unsigned threads : {1u, 3u}) {
    const TrainResult brought = train(
        oracles, Experiment::parse("[problem]\nkind = \"custom\"\ndim = 12\n[clients]\ncount = 5\n" + keys),
        {.threads = threads});
    EXPECT_TRUE(std::ranges::equal(kind.model(), brought.model()));
    for (const char* column : {"loss", "grad_norm_sq", "bits_up", "bytes_up", "bytes_down"})
      EXPECT_EQ(kind.metrics(column), brought.metrics(column)) << column;
  }
}

TEST(Train, EndsAtARowThatTheObserverRefuses) {
  auto clients = distances<double>();
  std::vector<std::uint32_t> seen;
  const TrainResult result = train(clients, {.algorithm = "gd", .step_size = 0.5, .rounds = 100},
                                   {.on_row = [&](const MetricsRow& row) {
                                     seen.push_back(row.round);
                                     return row.round < 7;
                                   }});
  EXPECT_EQ(result.outcome(), "reached_target");
  EXPECT_EQ(result.rounds(), 7u);
  EXPECT_EQ(seen.size(), 8u);
  EXPECT_NE(result.summary().find("the program that started the run asked for it"), std::string::npos);
}

// A crashed client has lost what its last reply changed, which the server's replica restores.
TEST(Train, CrashesOfClientsChangeNoBit) {
  auto plain = distances<double>(), crashing = distances<double>();
  TrainKeys keys = {.algorithm = "ef21", .compressor = "topk:k=1", .step_size = 0.2, .rounds = 60};
  const TrainResult want = train(plain, keys);
  keys.set.push_back({"faults.crashes", "0.3"});
  const TrainResult got = train(crashing, keys);
  EXPECT_EQ(got.outcome(), "finished");
  EXPECT_EQ(model_of(got), model_of(want));
  EXPECT_EQ(got.metrics("loss"), want.metrics("loss"));
}

// A loss far above its start is a warning of the result, as in summary.json.
TEST(Train, WarnsOfALossThatRose) {
  auto own = distances<double>();
  const TrainResult result = train(own, {.algorithm = "gd", .step_size = 2.1, .rounds = 300});
  ASSERT_EQ(result.outcome(), "finished");
  ASSERT_FALSE(result.warnings().empty());
  EXPECT_NE(result.warnings().back().find("the run ends with a loss of"), std::string::npos)
      << result.warnings().back();
}

TEST(Train, TellsEachRound) {
  const TemporaryFolder folder;
  for (const auto& out : {std::filesystem::path(), folder.path() / "run"}) {
    auto clients = distances<double>();
    std::vector<std::uint32_t> seen;
    train(clients, {.algorithm = "gd", .step_size = 0.5, .rounds = 5, .set = {{"run.evaluate_every", 0}}},
          {.on_round = [&](std::uint32_t rounds) { seen.push_back(rounds); }, .out = out});
    EXPECT_EQ(seen, (std::vector<std::uint32_t>{1, 2, 3, 4, 5}));
  }
}

TEST(Train, StopsByItsToken) {
  auto clients = distances<double>();
  std::stop_source source;
  const TrainResult result = train(clients, {.algorithm = "gd", .step_size = 0.5, .rounds = 100000},
                                   {.on_row =
                                        [&](const MetricsRow& row) {
                                          if (row.round == 3) source.request_stop();
                                          return true;
                                        },
                                    .stop = source.get_token()});
  EXPECT_EQ(result.outcome(), "stopped");
  EXPECT_LT(result.rounds(), 10u);
  EXPECT_EQ(result.trouble(), "experiment: stopped after round " + std::to_string(result.rounds()) +
                                  " of 100000; to continue from this model, start another run at it (x0)");
}

TEST(Train, StartsAtTheGivenPoint) {
  auto clients = distances<double>();
  const TrainKeys keys = {.algorithm = "gd", .step_size = 0.5, .rounds = 0};
  const TrainResult result = train(clients, keys, {.x0 = {1, 2, 1}});
  expect_mean(result.model(), 0);
  EXPECT_EQ(error_of([&] {
              train(clients, keys, {.x0 = {1, 2}});
            }),
            "run.x0: the start point has 2 numbers, but the model has 3");
  EXPECT_NE(error_of([&] {
              train(clients, keys, {.x0 = {1, 2, std::numeric_limits<double>::quiet_NaN()}});
            }).find("the start point: number 3 of 3 is nan"),
            std::string::npos);
}

struct DiskFull : std::runtime_error {
  using std::runtime_error::runtime_error;
};
class Failing final : public Oracle<double> {
 public:
  std::size_t dim() const override { return 2; }
  std::size_t sample_count() const override { return 1; }
  double loss_and_gradient(std::span<const double>, Batch, std::span<double>) override {
    throw DiskFull("the disk of this client is full");
  }
};

TEST(Train, PassesOnTheExceptionOfAnOracle) {
  for (const unsigned threads : {1u, 4u}) {
    std::vector<Failing> clients(40);
    EXPECT_THROW(train(clients, {.algorithm = "gd", .step_size = 0.1}, {.threads = threads}), DiskFull);
  }
}

// Leaves its last number as it is.
struct Forgetful : Distance<double> {
  using Distance<double>::Distance;
  double loss_and_gradient(std::span<const double> x, Batch batch, std::span<double> gradient) override {
    const double last = gradient.back(), loss = Distance<double>::loss_and_gradient(x, batch, gradient);
    gradient.back() = last;
    return loss;
  }
};
// Adds to what is there.
struct Adding : Distance<float> {
  using Distance<float>::Distance;
  float loss_and_gradient(std::span<const float> x, Batch, std::span<float> gradient) override {
    for (std::size_t j = 0; j < x.size(); ++j) gradient[j] += x[j];
    return 0;
  }
};

TEST(Train, FindsAFunctionThatDoesNotWriteItsGradient) {
  for (const char* algorithm : {"gd", "ef21"}) {
    std::vector<Forgetful> clients = {Forgetful({1, 2, 3})};
    EXPECT_EQ(error_of([&] { train(clients, {.algorithm = algorithm, .step_size = 0.1}); }),
              "the function of client 0 did not write gradient[2], or read it before; write all 3 numbers, "
              "which are arbitrary at first")
        << algorithm;
  }
  std::vector<Adding> adding = {Adding({1, 2})};
  EXPECT_NE(error_of([&] {
              train(adding, {.algorithm = "gd", .step_size = 0.1});
            }).find("did not write gradient[0], or read it before"),
            std::string::npos);
}

TEST(Train, ReturnsARunThatDiverges) {
  auto clients = distances<double>();
  const TrainResult result = train(clients, {.algorithm = "gd", .step_size = 1e9, .rounds = 400});
  EXPECT_EQ(result.outcome(), "diverged");
  EXPECT_NE(result.trouble().find("diverged at round"), std::string::npos) << result.trouble();
}

TEST(Train, RejectsFunctionsThatDoNotFitTheExperiment) {
  auto clients = distances<double>();
  const auto custom = [](const std::string& dim, const std::string& count) {
    return Experiment::from({{"problem.kind", "custom"},
                             {"problem.dim", dim},
                             {"clients.count", count},
                             {"algorithm.name", "gd"},
                             {"algorithm.step_size", 0.1}});
  };
  EXPECT_EQ(error_of([&] { train(clients, custom("4", "4")); }),
            "problem.dim: dim is 4, but the function of client 0 has dimension 3");
  EXPECT_EQ(error_of([&] { train(clients, custom("3", "5")); }),
            "clients.count: count is 5, but the program brings the functions of 4 clients");
  EXPECT_EQ(error_of([&] { train(custom("3", "4")); }),
            "problem.kind: 'custom' needs a program that brings the functions of its clients (docs/api.md)");
  EXPECT_EQ(error_of([&] { train(clients, custom("3", "4").with("precision", "fp32")); }),
            "precision: precision is \"fp32\", but the program brings functions of double");
  EXPECT_NE(error_of([&] {
              train(clients, custom("3", "4").with("run.x0", "model"));
            }).find("run.x0: functions of a program have no initial parameters"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { train(std::vector<Oracle<double>*>{}, {.algorithm = "gd"}); }),
            "oracles: none is given; a run needs those of at least one client");
  EXPECT_EQ(error_of([&] { train(clients, {.algorithm = "ef2"}); }),
            "algorithm.name: unknown algorithm 'ef2'; did you mean 'ef21'?");
  EXPECT_EQ(error_of([&] { train(clients, {.algorithm = "gd"}, {.transport = "tcp"}); }),
            "transport: 'tcp' is not one of memory, encoded");
}

TEST(Train, RefusesFunctionsForAKindThatHasItsOwn) {
  auto clients = distances<double>();
  const Experiment quadratic = Experiment::parse(
      "[problem]\nkind = \"quadratic\"\ndim = 3\n[clients]\ncount = 4\n[algorithm]\nname = \"gd\"\n");
  EXPECT_EQ(
      error_of([&] { train(clients, quadratic); }),
      "experiment.toml:2: the kind 'quadratic' has functions of its own; kind = \"custom\" takes those of "
      "the program");
}

TEST(TrainResult, SavesTheFolderOfARunOfTheSameFile) {
  const TemporaryFolder folder;
  folder.write("one.toml",
               "[problem]\nkind = \"quadratic\"\ndim = 9\n[clients]\ncount = 3\n[algorithm]\nname = "
               "\"ef21\"\ncompressor = \"topk:k=2\"\n[run]\nrounds = 20\n");
  ASSERT_EQ(run_gradwire(folder.path(), {"run", "one.toml", "--quiet", "--out", "run"}).code, 0);
  const TrainResult result = train(Experiment::load(folder.path() / "one.toml"));
  result.save(folder.path() / "saved");
  for (const char* file : {"config.toml", "model.bin"})
    EXPECT_EQ(read_file(folder.path() / "run" / file), read_file(folder.path() / "saved" / file)) << file;
  for (const char* file : {"metrics.csv", "summary.json", "plot.svg", "plot.py"})
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "saved" / file)) << file;
  EXPECT_EQ(run_gradwire(folder.path(), {"evaluate", "saved"}).out,
            run_gradwire(folder.path(), {"evaluate", "run"}).out);
  result.save(folder.path() / "saved");  // equal settings
  const TrainResult other = train(Experiment::load(folder.path() / "one.toml").with("run.rounds", 21));
  EXPECT_NE(error_of([&] { other.save(folder.path() / "saved"); }).find("run.rounds"), std::string::npos);
  other.save(folder.path() / "saved", /*overwrite=*/true);
  EXPECT_NE(read_file(folder.path() / "saved/model.bin"), read_file(folder.path() / "run/model.bin"));
}

TEST(TrainResult, NamesTheNearestColumnInAnError) {
  auto clients = distances<double>();
  const TrainResult result = train(clients, {.algorithm = "gd", .step_size = 1, .rounds = 1});
  try {
    result.metrics("los");
    FAIL();
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "no column 'los' in metrics.csv; did you mean 'loss'?");
  }
}

TEST(TrainFolder, KeepsRowsAndResumesAStoppedRun) {
  const TemporaryFolder folder;
  auto clients = distances<double>();
  const TrainKeys keys = {.algorithm = "ef21", .compressor = "topk:k=1", .step_size = 0.2, .rounds = 60};
  const TrainResult whole = train(clients, keys);
  std::stop_source source;
  const TrainOptions out = {.out = folder.path() / "run", .checkpoint_seconds = 3600};
  TrainOptions stopping = out;
  stopping.stop = source.get_token();
  stopping.on_row = [&](const MetricsRow& row) {
    if (row.round == 20) source.request_stop();
    return true;
  };
  EXPECT_EQ(train(clients, keys, stopping).outcome(), "stopped");
  std::string said;
  TrainOptions resuming = out;
  resuming.log = [&](std::string_view line) { said += std::string(line) + "\n"; };
  const TrainResult resumed = train(clients, keys, resuming);
  EXPECT_NE(said.find("resuming"), std::string::npos) << said;
  EXPECT_EQ(resumed.outcome(), "finished");
  EXPECT_TRUE(std::ranges::equal(whole.model(), resumed.model()));
  EXPECT_EQ(resumed.metrics("loss"), whole.metrics("loss"));
  EXPECT_EQ(lines_of(read_file(folder.path() / "run/metrics.csv")).size(), 62u);
}

// Stops a run of gd at row 20, so that its folder has a checkpoint.
template <class Oracles>
void stop_in(const std::filesystem::path& folder, Oracles& oracles, TrainOptions options = {}) {
  std::stop_source source;
  options.out = folder;
  options.checkpoint_seconds = 3600;
  options.stop = source.get_token();
  options.on_row = [&](const MetricsRow& row) {
    if (row.round == 20) source.request_stop();
    return true;
  };
  const TrainKeys keys = {.algorithm = "gd", .step_size = 0.1, .rounds = 60};
  ASSERT_EQ(train(oracles, keys, options).outcome(), "stopped");
}

TEST(TrainFolder, ResumesOnlyWithTheSameFunctionsAndStartPoint) {
  const TemporaryFolder folder;
  const TrainKeys keys = {.algorithm = "gd", .step_size = 0.1, .rounds = 60};
  auto clients = distances<double>();
  stop_in(folder.path() / "a", clients);
  std::vector<Distance<double>> others = {Distance<double>({1, 0, 4}), Distance<double>({3, 0, 0}),
                                          Distance<double>({0, 8, 1}), Distance<double>({0, 0, 0})};
  const std::string changed = "is of a run with other functions, another algorithm or another start point";
  for (const auto& run : {std::function<void()>([&] { train(others, keys, {.out = folder.path() / "a"}); }),
                          std::function<void()>([&] {
                            train(clients, keys, {.x0 = {1, 1, 1}, .out = folder.path() / "a"});
                          })})
    EXPECT_NE(error_of(run).find(changed), std::string::npos) << error_of(run);
  EXPECT_EQ(train(clients, keys, {.out = folder.path() / "a"}).outcome(), "finished");
}

TEST(TrainFolder, PassesOnTheExceptionOfAnOracleUnchanged) {
  const TemporaryFolder folder;
  std::vector<FailsLater> clients = {FailsLater({1, 2, 3})};
  std::string said;
  try {
    train(clients, {.algorithm = "gd", .step_size = 0.1, .rounds = 60},
          {.log = [&](std::string_view line) { said += line; }, .out = folder.path() / "run"});
    FAIL();
  } catch (const SensorLost& error) {
    EXPECT_STREQ(error.what(), "sensor lost");
  }
  EXPECT_NE(said.find("the measurements until then are in"), std::string::npos) << said;
}

TEST(TrainResult, KeepsTheResultsOfOtherFunctionsOfTheSameKeys) {
  const TemporaryFolder folder;
  const TrainKeys keys = {.algorithm = "gd", .step_size = 0.1, .rounds = 5};
  auto clients = distances<double>();
  std::vector<Distance<double>> others = {Distance<double>({1, 0, 4}), Distance<double>({3, 0, 0}),
                                          Distance<double>({0, 8, 1}), Distance<double>({0, 0, 0})};
  const auto run = folder.path() / "run";
  train(clients, keys).save(run);
  train(clients, keys).save(run);  // the same results
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "run.before"));
  train(others, keys).save(run);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "run.before" / "model.bin"));
  train(clients, keys).save(run, /*overwrite=*/true);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "run.before-2"));
}

struct NotANumber : Distance<double> {
  using Distance<double>::Distance;
  double loss_and_gradient(std::span<const double>, Batch, std::span<double> gradient) override {
    std::ranges::fill(gradient, std::numeric_limits<double>::quiet_NaN());
    return 1;
  }
};

TEST(Train, BlamesTheFunctionsIfTheFirstGradientIsNotFinite) {
  std::vector<NotANumber> clients = {NotANumber({1, 2})};
  const TrainResult result = train(clients, {.algorithm = "gd", .step_size = 0.1, .rounds = 5});
  EXPECT_EQ(result.outcome(), "diverged");
  EXPECT_EQ(
      result.trouble(),
      "experiment: diverged at round 0: a loss or a gradient is not finite before the first step; check "
      "the functions, the data and the start point (run.x0)");
}

TEST(Train, RejectsOraclesThatCannotBeCalled) {
  const TrainKeys keys = {.algorithm = "gd", .step_size = 0.1, .rounds = 5};
  Distance<double> one({1, 2}), none({});
  EXPECT_EQ(error_of([&] {
              train(std::vector<Oracle<double>*>{&one, nullptr}, keys);
            }),
            "oracles: the oracle of client 1 is null");
  EXPECT_EQ(error_of([&] {
              train(std::vector<Oracle<double>*>{&one, &one}, keys);
            }),
            "oracles: the oracle of client 1 is also that of client 0, but threads call them at once; make a "
            "copy");
  EXPECT_EQ(error_of([&] { train(std::vector<Oracle<double>*>{&none}, keys); }),
            "oracles: the oracle of client 0 has dimension 0");
}

}  // namespace
}  // namespace gradwire
