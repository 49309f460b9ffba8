#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "config/experiment_file.h"
#include "engine/problems/problem.h"
#include "tests/config/experiment_text.h"

namespace gradwire {
namespace {

TEST(ExperimentFile, GivesEveryKeyItsValue) {
  const ExperimentSpec e = parse(kGood).experiment;
  EXPECT_EQ(e.seed, 7u);
  const auto& logistic = std::get<Logistic>(e.problem);
  EXPECT_EQ(logistic.rows.data, "libsvm:a9a");
  EXPECT_EQ(logistic.regularizer, Regularizer::kL2);
  EXPECT_EQ(logistic.lambda, 0.1);
  EXPECT_EQ(e.clients.count, 20u);
  EXPECT_EQ(e.algorithm.name, "ef21");
  EXPECT_EQ(e.algorithm.compressor, "topk:k=1");
  EXPECT_EQ(e.algorithm.step_size, "theory");
  EXPECT_EQ(e.run.rounds, 50u);
}

TEST(ExperimentFile, FillsInTheDocumentedDefaults) {
  const ExperimentSpec e = parse(kQuadratic).experiment;
  EXPECT_EQ(e.name, "a");
  EXPECT_EQ(e.seed, 1u);
  EXPECT_EQ(e.precision, Precision::kFp64);
  EXPECT_EQ(std::get<Quadratic>(e.problem).shape.heterogeneity, 0);
  EXPECT_EQ(e.clients.count, 10u);
  EXPECT_EQ(e.clients.partition, PartitionKind::kContiguous);
  EXPECT_EQ(e.clients.dirichlet_alpha, 0.3);
  EXPECT_EQ(e.clients.participation, 1.0);
  EXPECT_EQ(e.clients.weights, Weighting::kEqual);
  EXPECT_EQ(e.algorithm.compressor, "identity");
  EXPECT_EQ(e.algorithm.step_size, "");
  EXPECT_EQ(e.algorithm.batch, 0u);
  EXPECT_EQ(e.run.rounds, 100u);
  EXPECT_EQ(e.run.evaluate_every, 1u);
  EXPECT_EQ(e.run.stop_at_grad_norm_sq, 0.0);
  EXPECT_EQ(e.run.x0, "zeros");
  EXPECT_EQ(e.server.quorum, 1.0);
  EXPECT_EQ(e.server.deadline_ms, 60000u);
  EXPECT_EQ(e.server.zstd, "auto");
  EXPECT_EQ(e.server.client_state_replicas, "auto");
  EXPECT_FALSE(e.faults.shuffle);
}

TEST(ExperimentFile, StartsNetworksAtTheirOwnWeights) {
  const std::string mlp =
      "[problem]\nkind = \"mlp\"\ndata = \"digits\"\n[algorithm]\nname = \"gd\"\nstep_size = 1\n";
  EXPECT_EQ(parse(mlp).experiment.run.x0, "model");
  EXPECT_EQ(parse(mlp, {"run.x0=zeros"}).experiment.run.x0, "zeros");
}

TEST(ExperimentFile, TakesStepSizesAsNumbersOrText) {
  const auto step = [](const std::string& value) {
    return parse(replaced("step_size = \"theory\"", "step_size = " + value)).experiment.algorithm.step_size;
  };
  EXPECT_EQ(step("0.05"), "0.05");
  EXPECT_EQ(step("2"), "2");
  EXPECT_EQ(step("\"theory*8\""), "theory*8");
  EXPECT_EQ(step("1e-7"), "1e-07");
}

TEST(ExperimentFile, KeepsAlgorithmParametersAsTextInTheirOrder) {
  const auto e = parse(
      "[problem]\nkind = \"quadratic\"\ndim = 10\n[algorithm]\nname = \"fedavg\"\nbatch = 32\n"
      "local_steps = 5\nlocal_step_size = 0.25\n");
  const AlgorithmSpec spec = algorithm_spec(e.experiment);
  EXPECT_EQ(spec.name, "fedavg");
  EXPECT_EQ(spec.batch, 32u);
  EXPECT_EQ(spec.parameters, (Options{{"local_steps", "5"}, {"local_step_size", "0.25"}}));
}

TEST(ExperimentFile, TakesWordsOrNumbersForZstdBatchAndMirrors) {
  const auto e =
      parse(kQuadratic, {"server.zstd=3", "server.client_state_replicas=true", "algorithm.batch=full"})
          .experiment;
  EXPECT_EQ(e.server.zstd, "3");
  EXPECT_EQ(e.server.client_state_replicas, "true");
  EXPECT_EQ(e.algorithm.batch, 0u);
  EXPECT_EQ(parse(kQuadratic, {"server.zstd=off"}).experiment.server.zstd, "off");
}

TEST(ExperimentFile, IsLoadedFromDiskAndNamedAfterIt) {
  const Folder folder;
  const LoadedExperiment loaded = load_experiment(folder.write("my_run.toml", kGood));
  EXPECT_EQ(loaded.experiment.name, "my_run");
  EXPECT_EQ(loaded.folder(), folder.path);
  EXPECT_EQ(parse_experiment(kGood, "b.toml").folder(), ".");
}

TEST(ExperimentOverrides, TakeATomlValueOrElseAString) {
  const auto e = parse(kGood, {"algorithm.compressor=topk:k=3", "algorithm.step_size=theory*8", "seed=9",
                               "problem.lambda=1e-3", "run.x0=\"normal\"", "problem.data=csv:some file.csv",
                               "faults.shuffle=true"})
                     .experiment;
  EXPECT_EQ(e.algorithm.compressor, "topk:k=3");
  EXPECT_EQ(e.algorithm.step_size, "theory*8");
  EXPECT_EQ(e.seed, 9u);
  EXPECT_EQ(std::get<Logistic>(e.problem).lambda, 1e-3);
  EXPECT_EQ(e.run.x0, "normal");
  EXPECT_EQ(sources_of(e.problem)->data, "csv:some file.csv");
  EXPECT_TRUE(e.faults.shuffle);
}

TEST(ExperimentOverrides, MayAddReplaceAndRepeat) {
  const auto e =
      parse(kGood, {"algorithm.init=zero", "run.rounds=5", "run.rounds=6", "server.quorum=0.5"}).experiment;
  EXPECT_EQ(algorithm_spec(e).parameters, (Options{{"init", "zero"}}));
  EXPECT_EQ(e.run.rounds, 6u);
  EXPECT_EQ(e.server.quorum, 0.5);
  EXPECT_EQ(
      algorithm_spec(parse(kGood, {"algorithm.init=zero", "algorithm.init=gradient"}).experiment).parameters,
      (Options{{"init", "gradient"}}));
}

TEST(ExperimentOverrides, KeepTextLiterallyForTextKeys) {
  EXPECT_EQ(parse(kGood, {"name=7"}).experiment.name, "7");
  EXPECT_EQ(parse(kGood, {"name=1979-05-27"}).experiment.name, "1979-05-27");
  EXPECT_EQ(parse(kGood, {"name=true"}).experiment.name, "true");
}

TEST(ExperimentOverrides, CannotSmuggleInASecondKey) {
  EXPECT_EQ(error_of(kGood, {"run.rounds=5\nseed=3"}),
            "--set run.rounds: must not contain control characters: \"5\\nseed=3\"");
}

TEST(ExperimentOverrides, AreNamedInErrors) {
  EXPECT_EQ(error_of(kGood, {"run.rounds"}), "--set run.rounds: write it as KEY=VALUE, as in run.rounds=100");
  EXPECT_EQ(error_of(kGood, {"=3"}), "--set =3: write it as KEY=VALUE, as in run.rounds=100");
  EXPECT_EQ(error_of(kGood, {"run.round=3"}),
            "--set run.round: unknown key 'round' in [run]; did you mean 'rounds'?");
  EXPECT_EQ(error_of(kGood, {"rounds=-3"}),
            "--set rounds: rounds must be an integer, 0 to 4294967295, not -3");
  EXPECT_EQ(error_of(kGood, {"round=3"}), "--set round: unknown key 'round'; did you mean 'run.rounds'?");
  EXPECT_EQ(error_of(kGood, {"run={rounds=3}"}),
            "--set run: 'run' is a section: write [run], and its keys below");
  EXPECT_EQ(error_of(kGood, {"algorithm.compressor=topq"}),
            "--set algorithm.compressor: unknown compressor 'topq'; did you mean 'topk'?");
  EXPECT_EQ(error_of(kGood, {"seed="}), "--set seed: seed must be an integer, 0 or more, not \"\"");
  EXPECT_EQ(error_of(kGood, {"run.rounds=many"}),
            "--set run.rounds: rounds must be an integer, 0 to 4294967295, not \"many\"");
}

TEST(ExperimentCheck, AppliesToExperimentsMadeByAProgram) {
  const auto key_of = [](auto&& change) -> std::string {
    ExperimentSpec e = parse(kGood).experiment;
    change(e);
    try {
      check_experiment(e);
    } catch (const ConfigError& error) {
      return error.key();
    }
    return "";
  };
  EXPECT_EQ(key_of([](ExperimentSpec&) {}), "");
  EXPECT_EQ(key_of([](ExperimentSpec& e) { e = {}; }), "algorithm.name");
  EXPECT_EQ(key_of([](ExperimentSpec& e) { e.seed = ~std::uint64_t{0}; }), "seed");
  EXPECT_EQ(key_of([](ExperimentSpec& e) { e.name = "../../etc"; }), "name");
  EXPECT_EQ(key_of([](ExperimentSpec& e) { e.precision = static_cast<Precision>(7); }), "precision");
  EXPECT_EQ(key_of([](ExperimentSpec& e) { e.clients.count = 0; }), "clients.count");
  EXPECT_EQ(key_of([](ExperimentSpec& e) { e.clients.count = ~0u; }), "clients.count");
  EXPECT_EQ(key_of([](ExperimentSpec& e) { std::get<Logistic>(e.problem).lambda = std::nan(""); }),
            "problem.lambda");
  EXPECT_EQ(key_of([](ExperimentSpec& e) { e.problem = Quadratic{}; }), "problem.dim");
  EXPECT_EQ(key_of([](ExperimentSpec& e) { e.server.zstd = "99"; }), "server.zstd");
  EXPECT_EQ(key_of([](ExperimentSpec& e) { e.algorithm.step_size = "fast"; }), "algorithm.step_size");
  EXPECT_EQ(key_of([](ExperimentSpec& e) {
              Mlp mlp;
              mlp.rows.data = "digits";
              mlp.shape.hidden.assign(65, 1);
              e.problem = mlp;
            }),
            "problem.hidden");
  EXPECT_EQ(key_of([](ExperimentSpec& e) {
              e.algorithm.parameters = {{"init", "zero"}, {"init", "zero"}};
            }),
            "algorithm.init");
  EXPECT_EQ(key_of([](ExperimentSpec& e) { e.algorithm.parameters = {{"name", ""}}; }), "algorithm.name");
}

TEST(ExperimentMirrors, AreKeptByDefaultIfClientsCanLoseState) {
  const auto kept = [](const Overrides& overrides, bool over_network) {
    return keep_client_state_replicas(parse(kGood, overrides).experiment, over_network);
  };
  EXPECT_FALSE(kept({}, false));
  EXPECT_TRUE(kept({}, true));
  EXPECT_TRUE(kept({"faults.state_loss=0.1"}, false));
  EXPECT_TRUE(kept({"faults.crashes=0.1"}, false));
  EXPECT_TRUE(kept({"server.client_state_replicas=true"}, false));
  EXPECT_FALSE(kept({"server.client_state_replicas=false"}, true));
  EXPECT_FALSE(kept({"server.client_state_replicas=\"false\""}, true)) << "in quotes it is the same word";
  EXPECT_TRUE(kept({"server.client_state_replicas=\"true\""}, false));
}

TEST(ExperimentFile, RequiresDataForTheKindsThatReadSome) {
  for (const ProblemInfo& kind : problem_types()) {
    const std::string toml =
        "[problem]\nkind = \"" + std::string(kind.name) + "\"\n[algorithm]\nname = \"gd\"\n";
    EXPECT_EQ(error_of(toml).find("problem.data: required") != std::string::npos, kind.needs_data())
        << error_of(toml);
  }
}

}  // namespace
}  // namespace gradwire
