// gradwire sweep: the runs that a [sweep] defines, the data that they share, and the tables of their results.
#include "experiments/cli/sweep/sweep.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "base/config_error.h"
#include "experiments/cli/sweep/conditions.h"
#include "experiments/cli/sweep/judge.h"
#include "experiments/cli/sweep/shared_problems.h"
#include "tests/sweeps/sweep_fixture.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

const fs::path kSweeps = fs::path(GRADWIRE_SOURCE_DIR) / "experiments" / "sweeps";

TEST_F(Sweep, HasEveryCombinationWithTheLastKeyFastest) {
  const SweepPlan p = plan("[sweep]\nalgorithm.step_size = [\"theory\", 0.5]\nseed = [1, 2]\n");
  EXPECT_EQ(labels(p), (std::vector<std::string>{
                           "seed = 1, algorithm.step_size = theory", "seed = 2, algorithm.step_size = theory",
                           "seed = 1, algorithm.step_size = 0.5", "seed = 2, algorithm.step_size = 0.5"}));
  EXPECT_EQ(p.compared(), std::vector<std::string>{});
}

TEST_F(Sweep, CombinesValuesOfEachAlgorithmWithCommonOnes) {
  const SweepPlan p = plan(R"([sweep]
algorithm.step_size = [0.1, 0.2]
[[sweep.grid]]
algorithm.name = "ef21"
[[sweep.grid]]
algorithm.name = "gd"
algorithm.compressor = "identity"
algorithm.step_size = [0.4]
)");
  EXPECT_EQ(labels(p),
            (std::vector<std::string>{
                "algorithm.name = ef21, algorithm.compressor = topk:k=2, algorithm.step_size = 0.1",
                "algorithm.name = ef21, algorithm.compressor = topk:k=2, algorithm.step_size = 0.2",
                "algorithm.name = gd, algorithm.compressor = identity, algorithm.step_size = 0.4"}));
  EXPECT_EQ(p.compared(), (std::vector<std::string>{"algorithm.name", "algorithm.compressor"}));
}

TEST_F(Sweep, ReplacesListedValuesBySet) {
  const SweepPlan p = plan("[sweep]\nalgorithm.step_size = [0.1, 0.2]\nseed = [1, 2]\n", {"seed=7"});
  ASSERT_EQ(p.runs.size(), 2u);
  for (const RunOfSweep& run : p.runs) EXPECT_EQ(setting(run, "seed"), "7");
}

TEST_F(Sweep, OmitsRunsByAConditionEvenInvalidOnes) {
  const SweepPlan p = plan(R"([sweep]
algorithm.compressor = ["topk:k=2", "topk:k=30"]
problem.dim = [20, 40]
where = "problem.dim = 40 or algorithm.compressor != topk:k=30"
)");
  EXPECT_EQ(p.runs.size(), 3u);
}

TEST_F(Sweep, GivesARunTheClientSpeedsOfASingleRun) {
  const std::string base = R"([problem]
kind = "quadratic"
dim = 10
[clients]
count = 3
[algorithm]
name = "asgd"
step_size = 0.1
[run]
rounds = 20
)";
  write("[sweep]\nclients.latency = [\"linear\", \"0.5*sqrt\"]\n", base);
  ASSERT_EQ(gradwire({"sweep", "sweep.toml", "--out", "r", "--quiet"}).code, 0);
  folder_.write("alone.toml", base);
  for (const RunOfSweep& run : read_sweep(path() / "sweep.toml", {}).runs) {
    const std::string seconds = setting(run, "clients.latency");
    ASSERT_EQ(gradwire({"run", "alone.toml", "--quiet", "--overwrite", "--out", "alone", "--set",
                        "clients.latency=" + seconds})
                  .code,
              0);
    EXPECT_EQ(read("r/runs/" + run.id + "/metrics.csv"), read("alone/metrics.csv")) << seconds;
  }
}

TEST_F(Sweep, ChoosesTheContentOfItsFigure) {
  const SweepPlan p = plan(
      "[sweep]\nproblem.dim = [20, 30]\npanels = [\"loss:rounds\", \"bits_down:grad_calls\"]\nby = "
      "\"problem.dim\"\n");
  EXPECT_EQ(p.figure.panels, (std::vector<std::string>{"loss:rounds", "bits_down:grad_calls"}));
  EXPECT_EQ(p.figure.by, "problem.dim");
  const std::string mistake = refusal("[sweep]\nseed = [1, 2]\npanels = [\"los:rounds\"]\n");
  EXPECT_NE(mistake.find("panel 'los:rounds': unknown column 'los'; did you mean 'loss'"), std::string::npos)
      << mistake;
  EXPECT_NE(refusal("[sweep]\nseed = [1, 2]\npanels = [\"loss\"]\n").find("write a panel as Y:X"),
            std::string::npos);
  EXPECT_NE(refusal("[sweep]\nseed = [1, 2]\nby = \"problem.dimm\"\n").find("did you mean 'problem.dim'"),
            std::string::npos);
}

TEST_F(Sweep, ShowsEachAlgorithmOnceInAFigureByAKey) {
  write(R"([sweep]
problem.dim = [20, 30]
algorithm.step_size = ["theory", "theory*4", "theory*500"]
by = "problem.dim"
)");
  const ProgramResult result = gradwire({"sweep", "sweep.toml", "--out", "r", "--quiet"});
  ASSERT_EQ(result.code, 0) << result.err;
  const std::string table = read("r/plot.csv");
  EXPECT_NE(table.find("\n\"dim = 20, grad_norm_sq:bits\",\"EF21, Top-2\","), std::string::npos) << table;
  EXPECT_NE(table.find("\n\"dim = 30, grad_norm_sq:bits\",\"EF21, Top-2\","), std::string::npos) << table;
  EXPECT_EQ(table.find("step_size"), std::string::npos) << table;
}

TEST_F(Sweep, MergesEqualRuns) {
  const SweepPlan p = plan("[sweep]\nseed = [1, 2, 1]\n");
  EXPECT_EQ(p.runs.size(), 2u);
  EXPECT_NE(p.runs[0].id, p.runs[1].id);
}

TEST_F(Sweep, NamesTheLineOfAMistake) {
  EXPECT_EQ(refusal("[sweep]\nseed = []\n"), ":14: seed is an empty list; list a value");
  EXPECT_EQ(refusal("[sweep]\nalgorithm.stepsize = [1, 2]\n").substr(0, 5), ":14: ");
  EXPECT_NE(refusal("[sweep]\nrun.roundz = [1, 2]\n").find(":14: unknown key 'roundz' in [run]"),
            std::string::npos);
  EXPECT_NE(refusal("[sweep]\nseed = [1]\ncriterion = \"los\"\n")
                .find(":15: metrics.csv has no column 'los'; did "
                      "you mean 'loss'?"),
            std::string::npos);
  EXPECT_NE(refusal("[sweep]\nseed = [1]\nbudget = \"bits_up < 3\"\n").find(":15: budget must be"),
            std::string::npos);
  EXPECT_NE(refusal("[sweep]\nseed = [1]\ntarget = 1e-3\n").find(":15: target needs budget"),
            std::string::npos);
  EXPECT_NE(refusal("[sweep]\nseed = [1]\nwhere = \"seed is 3\"\n").find(":15: 'seed is 3': write KEY"),
            std::string::npos);
  EXPECT_NE(refusal("[sweep]\nseed = [1]\nwhere = \"sead = 3\"\n")
                .find(":15: no run has the key 'sead'; did you mean "
                      "'seed'?"),
            std::string::npos);
  EXPECT_NE(refusal("[sweep]\nseed = [1]\nwhere = \"seed = 3\"\n").find(":15: where excludes all runs"),
            std::string::npos);
  EXPECT_NE(refusal("[sweep]\nseed = [1]\ntune = [\"run.steps\"]\n").find(":15: no run has the key"),
            std::string::npos);
  EXPECT_NE(refusal("[sweep]\nseed = [1]\ngrid = 3\n").find("write [[sweep.grid]]"), std::string::npos);
  EXPECT_NE(refusal("[sweep]\nrun.evaluate_every = [0, 1]\n").find("evaluate_every"), std::string::npos);
  EXPECT_NE(refusal("").find("has no [sweep]"), std::string::npos);
  std::string many = "[sweep]\n";
  for (const char* key : {"seed", "run.rounds", "clients.count"}) {
    many += std::string(key) + " = [1";
    for (int k = 2; k <= 60; ++k) many += ", " + std::to_string(k);
    many += "]\n";
  }
  EXPECT_NE(refusal(many).find(":16: the grid has more than 100000 runs"), std::string::npos);
}

TEST_F(Sweep, AcceptsOnlyKeysOfRunsInSet) {
  write("[sweep]\nseed = [1, 2]\n");
  for (const char* key : {"sweep", "sweep.tune"}) {
    const auto r = gradwire({"sweep", "sweep.toml", "--set", std::string(key) + "=x"});
    EXPECT_EQ(r.code, 2);
    EXPECT_EQ(r.err, "gradwire: --set " + std::string(key) +
                         ": sets keys of runs, not of [sweep]; change sweep.toml\n");
  }
}

TEST_F(Sweep, IsRejectedByOtherCommands) {
  write("[sweep]\nseed = [1, 2]\n");
  const auto r = gradwire({"run", "sweep.toml"});
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("sweep.toml:13: [sweep] describes many runs; start them with gradwire sweep"),
            std::string::npos)
      << r.err;
}

TEST(SweepFiles, AreAcceptedAndSayWhatTheyShow) {
  std::size_t found = 0;
  for (const auto& entry : fs::directory_iterator(kSweeps)) {
    EXPECT_EQ(read_file(entry.path()).substr(0, 2), "# ") << entry.path();
    EXPECT_GT(read_sweep(entry.path(), {}).runs.size(), 1u) << entry.path();
    ++found;
  }
  EXPECT_GT(found, 0u);
}

TEST(SweepCondition, ComparesNumbersAsNumbersAndTextsAsTexts) {
  const Settings run = {{"algorithm.K", "10"}, {"algorithm.name", "scaffold"}, {"clients.count", "9"}};
  for (const char* holds :
       {"algorithm.K = 10.0", "algorithm.K > 9", "algorithm.K >= 10", "algorithm.K <= 1e1",
        "algorithm.name = scaffold", "algorithm.name != gd", "clients.count < algorithm.K",
        "algorithm.K < 3 or algorithm.name = scaffold", "algorithm.p = 3"})
    EXPECT_TRUE(Condition(holds).holds(run)) << holds;
  for (const char* fails : {"algorithm.K = 1", "algorithm.K > 10", "algorithm.name = gd",
                            "algorithm.K <= clients.count", "algorithm.K < 3 or clients.count > 9"})
    EXPECT_FALSE(Condition(fails).holds(run)) << fails;
  for (const char* bad :
       {"", "algorithm.K", "= 3", "algorithm.K =", "algorithm.K == 3", "algorithm.K < gd", "a = 1 or "})
    EXPECT_THROW(Condition{bad}, ConfigError) << bad;
}

RoundRecord record_of(std::uint32_t round, double loss, double bits) {
  RoundRecord record;
  record.round = round;
  record.loss = loss;
  record.bits_up = bits;
  return record;
}

TEST(SweepJudge, RatesARunByItsLastRowWithinTheBudget) {
  const EndedRun run{0, "finished", {record_of(0, 5, 0), record_of(1, 3, 100), record_of(2, 1, 200)}};
  Judgement j;
  j.criterion = "loss";
  EXPECT_EQ(worth_of(run, j), 1);
  j.budget_column = "bits_up";
  j.budget = 150;
  EXPECT_EQ(worth_of(run, j), 3);
  j.target = 4;
  EXPECT_EQ(worth_of(run, j), 100);
  j.target = 2;
  EXPECT_EQ(worth_of(run, j), std::numeric_limits<double>::infinity());
  EXPECT_EQ(worth_of({0, "diverged", run.records}, Judgement{}), std::numeric_limits<double>::infinity());
  j = {};
  j.criterion = "accuracy";
  EndedRun exact = run;
  for (RoundRecord& record : exact.records) record.accuracy = record.loss / 10;
  EXPECT_EQ(worth_of(exact, j), -0.1);
}

TEST_F(Sweep, ShowsFurtherColumnsOfTheRowByWhichARunIsJudged) {
  const SweepPlan p = plan(R"([sweep]
criterion = "loss"
budget = "round = 9"
target = 2
show = ["bits_up", "loss"]
seed = [1, 2, 3]
)");
  std::vector<EndedRun> ended;
  for (std::size_t run = 0; run < 3; ++run)  // reach the target in rounds 1, 1 and 2
    ended.push_back({run,
                     "finished",
                     {record_of(0, 5, 0), record_of(1, run < 2 ? 1.5 : 3, 100.0 + static_cast<double>(run)),
                      record_of(2, 1, 200)}});
  std::vector<BestOf> best = best_of(p, ended);
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].shown, (std::vector<double>{101, 1.5}));
  EXPECT_NE(table_text(p, best).find("diverged  bits_up  loss"), std::string::npos);
  EXPECT_NE(best_csv(p, best).find(",diverged,bits_up,loss,runs\n"), std::string::npos);
  EXPECT_NE(best_csv(p, best).find(",0,101,1.5,"), std::string::npos) << best_csv(p, best);
  ended[0].records.pop_back(), ended[1].outcome = ended[2].outcome = "diverged";
  best = best_of(p, ended);
  EXPECT_NE(table_text(p, best).find("never  never"), std::string::npos) << table_text(p, best);
  EXPECT_NE(
      refusal("[sweep]\nseed = [1]\nshow = [\"bits_ups\"]\n").find("no column 'bits_ups'; did you mean"),
      std::string::npos);
}

TEST_F(Sweep, ChoosesTheStepWithTheLowestMedianOverSeeds) {
  const SweepPlan p = plan(R"([sweep]
criterion = "loss"
algorithm.step_size = [0.1, 0.2, 0.4]
seed = [1, 2, 3]
)");
  // The medians by step size are 5, 2 and 3. The third step size has the lowest single loss.
  const double losses[] = {5, 5, 5, 2, 1, 9, 0, 3, 4};
  std::vector<EndedRun> ended;
  for (std::size_t k = 0; k < 9; ++k) ended.push_back({k, "finished", {record_of(1, losses[k], 0)}});
  ended[6].outcome = "diverged";
  const std::vector<BestOf> best = best_of(p, ended);
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].tuned, "algorithm.step_size = 0.2");
  EXPECT_EQ(best[0].runs, (std::vector<std::size_t>{3, 4, 5}));
  EXPECT_EQ(best[0].median, 2);
  EXPECT_EQ(best[0].low, 1);
  EXPECT_EQ(best[0].high, 9);
  EXPECT_EQ(best[0].diverged, 1u);
  EXPECT_EQ(best[0].at_the_edge, "");
  EXPECT_NE(table_text(p, best).find("steps"), std::string::npos);
  ended.resize(3);
  EXPECT_EQ(best_of(p, ended)[0].at_the_edge, "");  // no other step size was tried
  ended.push_back({3, "finished", {record_of(1, 9, 0)}});
  EXPECT_EQ(best_of(p, ended)[0].at_the_edge, "algorithm.step_size");
}

TEST_F(Sweep, ChoosesTheStepNearestToAnUnreachedTarget) {
  const SweepPlan p = plan(R"([sweep]
criterion = "loss"
budget = "round = 9"
target = 0.5
algorithm.step_size = [0.1, 0.2, 0.4]
)");
  std::vector<EndedRun> ended;
  for (const double loss : {3.0, 1.0, 2.0})
    ended.push_back({ended.size(), "finished", {record_of(1, loss, 0)}});
  EXPECT_EQ(best_of(p, ended)[0].tuned, "algorithm.step_size = 0.2");
  EXPECT_NE(table_text(p, best_of(p, ended)).find("never"), std::string::npos);
  ended[1].outcome = "diverged";
  EXPECT_EQ(best_of(p, ended)[0].tuned, "algorithm.step_size = 0.4");
  ended[0].records[0].loss = 0.4;  // just reaches the target
  EXPECT_EQ(best_of(p, ended)[0].tuned, "algorithm.step_size = 0.1");
}

TEST_F(Sweep, GivesTheBitsOfGradwireRun) {
  write(
      "[sweep]\nalgorithm.step_size = [\"theory\", 0.01]\nseed = [1, 2]\nprecision = [\"fp32\", \"fp64\"]\n");
  ASSERT_EQ(gradwire({"sweep", "sweep.toml", "--quiet"}).code, 0);
  folder_.write("one.toml", kSweptQuadratic);
  for (const RunOfSweep& run : read_sweep(path() / "sweep.toml", {}).runs) {
    const auto alone =
        gradwire({"run", "one.toml", "--quiet", "--overwrite", "--out", "alone", "--set",
                  "algorithm.step_size=" + setting(run, "algorithm.step_size"), "--set",
                  "seed=" + setting(run, "seed"), "--set", "precision=" + setting(run, "precision")});
    ASSERT_EQ(alone.code, 0) << alone.err;
    const fs::path results = fs::path("results/steps/runs") / run.id;
    EXPECT_EQ(read(results / "model.bin"), read("alone/model.bin"));
    EXPECT_EQ(without_seconds(read(results / "metrics.csv")), without_seconds(read("alone/metrics.csv")));
    EXPECT_EQ(read(results / "config.toml"), read("alone/config.toml"));
  }
}

TEST_F(Sweep, ReadsAFileOnceForAllRuns) {
  std::string points;
  for (int k = 0; k < 30; ++k)
    points += std::to_string((k * 7) % 11) + "," + std::to_string((k * 5) % 13) + "," +
              std::to_string(k % 2) + "\n";
  folder_.write("points.csv", points);
  const SweepPlan p =
      read_sweep(write("[sweep]\nseed = [1, 2]\nprecision = [\"fp32\", \"fp64\"]\n", kSweptLogistic), {});
  SharedProblems problems;
  for (const RunOfSweep& run : p.runs) problems.expect(run.settings);
  for (const RunOfSweep& run : p.runs) {
    const LoadedExperiment loaded = load_run(p, run);
    const Prepared prepared = problems.prepare(loaded);
    EXPECT_EQ(prepared.d, 2u);
    EXPECT_TRUE(prepared.functions.fp32 != nullptr || prepared.functions.fp64 != nullptr);
    problems.leave(run.settings);
    fs::remove(path() / "points.csv");  // a second read would fail
  }
}

}  // namespace
}  // namespace gradwire
