#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "config/experiment_file.h"
#include "tests/config/experiment_text.h"

namespace gradwire {
namespace {

TEST(ExperimentErrors, NameTheNearestKnownKey) {
  EXPECT_EQ(error_of(with("rouns = 3")),
            "dir/a.toml:15: unknown key 'rouns' in [run]; did you mean 'rounds'?");
  EXPECT_EQ(error_of("sed = 3\n" + kGood), "dir/a.toml:1: unknown key 'sed'; did you mean 'seed'?");
}

TEST(ExperimentErrors, FindAKeyThatBelongsToAnotherSection) {
  EXPECT_EQ(error_of(with("participation = 0.5")),
            "dir/a.toml:15: unknown key 'participation' in [run]; did you mean 'clients.participation'?");
  EXPECT_EQ(error_of("rounds = 3\n" + kGood),
            "dir/a.toml:1: unknown key 'rounds'; did you mean 'run.rounds'?");
  EXPECT_EQ(error_of(with("seed = 8")),
            "dir/a.toml:15: unknown key 'seed' in [run]; 'seed' belongs at the top of the file, before the "
            "sections");
  EXPECT_EQ(
      error_of(replaced("step_size", "participation = 0.5\nstep_size")),
      "dir/a.toml:12: unknown key 'participation' in [algorithm]; did you mean 'clients.participation'?");
}

TEST(ExperimentErrors, NameTheNearestSection) {
  EXPECT_EQ(error_of(with("[sever]\nquorum = 1")),
            "dir/a.toml:15: unknown section 'sever'; did you mean 'server'?");
  EXPECT_EQ(error_of(kGood, {"algoritm.name=gd"}),
            "--set algoritm.name: unknown section 'algoritm'; did you mean 'algorithm'?");
}

TEST(ExperimentErrors, NameTheNearestWord) {
  EXPECT_EQ(error_of(replaced("\"logistic\"", "\"logistik\"")),
            "dir/a.toml:3: unknown kind 'logistik'; did you mean 'logistic'?");
  EXPECT_EQ(error_of(replaced("\"topk:k=1\"", "\"topq:k=1\"")),
            "dir/a.toml:11: unknown compressor 'topq'; did you mean 'topk'?");
  EXPECT_EQ(error_of(replaced("\"ef21\"", "\"ef22\"")),
            "dir/a.toml:10: unknown algorithm 'ef22'; did you mean 'ef21'?");
  EXPECT_EQ(error_of(replaced("libsvm:a9a", "libsmv:a9a")),
            "dir/a.toml:4: unknown data source \"libsmv:a9a\"; did you mean 'libsvm'?");
  EXPECT_EQ(error_of(with("x0 = \"zeroes\"")), "dir/a.toml:15: unknown x0 \"zeroes\"; did you mean 'zeros'?");
  EXPECT_EQ(error_of(kGood, {"clients.partition=dirichlett"}),
            "--set clients.partition: unknown partition 'dirichlett'; did you mean 'dirichlet'?");
  EXPECT_EQ(error_of(kGood, {"clients.weights=x"}),
            "--set clients.weights: unknown weights 'x'; known: equal, samples");
}

TEST(ExperimentErrors, RefuseAKeyThatTheAlgorithmDoesNotHave) {
  EXPECT_EQ(error_of(replaced("step_size", "innit = \"zero\"\nstep_size")),
            "dir/a.toml:12: ef21 has no parameter 'innit'; did you mean 'init'?");
  EXPECT_EQ(error_of(replaced("compressor", "compresor")),
            "dir/a.toml:11: ef21 has no parameter 'compresor'; did you mean 'compressor'?");
}

TEST(ExperimentErrors, SayWhatTypeIsWanted) {
  EXPECT_EQ(error_of(replaced("count = 20", "count = \"20\"")),
            "dir/a.toml:8: count must be an integer, 1 to 1000000, not \"20\"");
  EXPECT_EQ(error_of(replaced("rounds = 50", "rounds = 1.5")),
            "dir/a.toml:14: rounds must be an integer, 0 to 4294967295, not 1.5");
  EXPECT_EQ(error_of(replaced("lambda = 0.1", "lambda = true")),
            "dir/a.toml:6: lambda must be a number, 0 or more, not true");
  EXPECT_EQ(error_of(replaced("kind = \"logistic\"", "kind = 3")),
            "dir/a.toml:3: kind must be \"quadratic\", \"least_squares\", \"logistic\", \"mlp\", "
            "\"char_mlp\", \"gpt\", \"cnn\" or \"custom\", not 3");
  EXPECT_EQ(error_of(replaced("lambda = 0.1", "lambda = [1, 2]")),
            "dir/a.toml:6: lambda must be a number, 0 or more, not [1, 2]; several values are a sweep: "
            "problem.lambda = [...] in [sweep], and gradwire sweep");
  EXPECT_EQ(error_of(replaced("lambda = 0.1", "lambda = [0.1, 0.01]")),
            "dir/a.toml:6: lambda must be a number, 0 or more, not a list of other things; several values "
            "are a sweep: problem.lambda = [...] in [sweep], and gradwire sweep");
  EXPECT_EQ(error_of(replaced("lambda = 0.1", "lambda.x = 1")),
            "dir/a.toml:6: lambda must be a number, 0 or more, not a table");
  EXPECT_EQ(error_of(with("[faults]\nshuffle = 1")), "dir/a.toml:16: shuffle must be true or false, not 1");
  EXPECT_EQ(error_of(replaced("step_size = \"theory\"", "init = [1]")),
            "dir/a.toml:12: init must be a number, a string, true or false, not [1]");
  EXPECT_EQ(error_of(replaced("step_size = \"theory\"", "step_size = 1979-05-27")),
            "dir/a.toml:12: step_size must be a number or a string, not a date or time");
  EXPECT_EQ(
      error_of(kQuadratic + "[clients]\npartition = [\"a\"]"),
      "dir/a.toml:7: partition must be \"contiguous\", \"iid\", \"by_label\", \"dirichlet\" or \"by_role\", "
      "not a list of other things");
  EXPECT_EQ(error_of("problem = 3\n"),
            "dir/a.toml:1: 'problem' is a section: write [problem], and its keys below");
}

TEST(ExperimentErrors, SayWhichRangeIsWanted) {
  EXPECT_EQ(error_of(replaced("seed = 7", "seed = -1")),
            "dir/a.toml:1: seed must be an integer, 0 or more, not -1");
  EXPECT_EQ(error_of(replaced("lambda = 0.1", "lambda = -0.5")),
            "dir/a.toml:6: lambda must be a number, 0 or more, not -0.5");
  EXPECT_EQ(error_of(replaced("lambda = 0.1", "lambda = nan")),
            "dir/a.toml:6: lambda must be a number, 0 or more, not nan");
  EXPECT_EQ(error_of(replaced("lambda = 0.1", "lambda = inf")),
            "dir/a.toml:6: lambda must be a number, 0 or more, not inf");
  EXPECT_EQ(error_of(replaced("count = 20", "count = -3")),
            "dir/a.toml:8: count must be an integer, 1 to 1000000, not -3");
  EXPECT_EQ(error_of(replaced("rounds = 50", "rounds = -1")),
            "dir/a.toml:14: rounds must be an integer, 0 to 4294967295, not -1");
  for (const std::string share : {"0", "1.01", "-0.5", "nan"})
    EXPECT_EQ(error_of(kGood, {"clients.participation=" + share}),
              "--set clients.participation: participation must be a number in (0, 1], not " + share);
  EXPECT_EQ(error_of(kGood, {"faults.lost_replies=1"}),
            "--set faults.lost_replies: lost_replies must be a number in [0, 1), not 1");
  EXPECT_EQ(error_of(kGood, {"clients.dirichlet_alpha=0"}),
            "--set clients.dirichlet_alpha: dirichlet_alpha must be a number above 0, not 0");
  EXPECT_EQ(error_of(kGood, {"server.zstd=20"}),
            "--set server.zstd: zstd must be \"auto\", \"off\" or an integer, 1 to 19, not 20");
  EXPECT_EQ(error_of(kGood, {"server.zstd=\"20\""}),
            "--set server.zstd: unknown zstd '20'; known: auto, off, an integer, 1 to 19");
  EXPECT_EQ(
      error_of(kGood, {"server.client_state_replicas=maybe"}),
      "--set server.client_state_replicas: unknown client_state_replicas 'maybe'; known: auto, true, false");
  EXPECT_EQ(error_of(kGood, {"algorithm.batch=0"}),
            "--set algorithm.batch: batch must be \"full\" or an integer, 1 to 4294967295, not 0");
  const Overrides mlp = {"problem.kind=mlp", "problem.regularizer=none", "problem.lambda=0"};
  const auto of_mlp = [&](const std::string& key) {
    Overrides all = mlp;
    all.push_back(key);
    return error_of(kGood, all);
  };
  EXPECT_EQ(of_mlp("problem.hidden=[8, 0]"),
            "--set problem.hidden: hidden must be a list of at most 64 integers, 1 to 1000000, not [8, 0]");
  EXPECT_EQ(error_of(kGood, {"problem.classes=1"}),
            "--set problem.classes: classes must be 0 (real labels) or 2 or more, not 1");
}

TEST(ExperimentErrors, RefuseStepsThatAreNotFiniteAndPositive) {
  for (const std::string step :
       {"0", "-1", "0.0", "nan", "inf", "\"theory*-1\"", "\"theory*0\"", "\"fast\""}) {
    const std::string error = error_of(replaced("step_size = \"theory\"", "step_size = " + step));
    EXPECT_TRUE(error.starts_with("dir/a.toml:12: ")) << step << ": " << error;
    EXPECT_NE(error.find("positive number"), std::string::npos) << step << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(ExperimentErrors, PointAtTheSectionOfAMissingKey) {
  EXPECT_EQ(error_of("seed = 1\n\n[problem]\ndata = \"digits\"\n"),
            "dir/a.toml:3: problem.kind: required: \"quadratic\", \"least_squares\", \"logistic\", \"mlp\", "
            "\"char_mlp\", \"gpt\", \"cnn\" or \"custom\"");
  EXPECT_EQ(
      error_of("[problem]\nkind = \"mlp\"\ndata = \"digits\"\n"),
      "dir/a.toml:1: algorithm.name: required: an algorithm, as in name = \"ef21\"; gradwire list names all");
  EXPECT_EQ(
      error_of("seed = 1\n[problem]\nkind = \"mlp\"\n[algorithm]\nname = \"gd\"\n"),
      "dir/a.toml:2: problem.data: required for kind 'mlp', as in data = \"libsvm:PATH\" or \"digits\"");
  EXPECT_EQ(error_of("[problem]\nkind = \"quadratic\"\n[algorithm]\nname = \"gd\"\n"),
            "dir/a.toml:1: problem.dim: required for kind 'quadratic': the length of x, as in dim = 1000");
}

TEST(ExperimentErrors, RejectKeysOfOtherProblemTypes) {
  const std::string with_data = "least_squares, logistic, mlp, char_mlp, gpt and cnn, not kind 'quadratic'";
  EXPECT_EQ(error_of(kQuadratic, {"problem.data=digits"}),
            "--set problem.data: data is a key of " + with_data);
  EXPECT_EQ(error_of(kQuadratic, {"problem.test=digits"}),
            "--set problem.test: test is a key of " + with_data);
  EXPECT_EQ(error_of(kQuadratic, {"problem.test_share=0.1"}),
            "--set problem.test_share: test_share is a key of " + with_data);
  EXPECT_EQ(
      error_of(kQuadratic, {"problem.regularizer=l2"}),
      "--set problem.regularizer: regularizer is a key of least_squares and logistic, not kind 'quadratic'");
  EXPECT_EQ(error_of(kQuadratic, {"problem.loss=logistic"}),
            "--set problem.loss: loss is a key of logistic, not kind 'quadratic'");
  EXPECT_EQ(error_of(kGood, {"problem.loss=sigmoid"}),
            "--set problem.loss: unknown loss 'sigmoid'; known: logistic, sigmoid_squared");
  EXPECT_EQ(error_of(kQuadratic, {"problem.bias=true"}),
            "--set problem.bias: bias is a key of least_squares and logistic, not kind 'quadratic'");
  EXPECT_EQ(error_of(kGood, {"problem.hidden=[8]"}),
            "--set problem.hidden: hidden is a key of mlp, char_mlp and cnn, not kind 'logistic'");
  EXPECT_EQ(error_of(kGood, {"problem.heterogeneity=0.1"}),
            "--set problem.heterogeneity: heterogeneity is a key of quadratic, not kind 'logistic'");
  EXPECT_EQ(error_of("[problem]\nkind = \"mlp\"\ndata = \"digits\"\nregularizer = \"none\"\nlambda = 1\n"
                     "[algorithm]\nname = \"gd\"\n"),
            "dir/a.toml:5: lambda is a key of quadratic, least_squares and logistic, not kind 'mlp'");
}

TEST(ExperimentErrors, LetSetRemoveAKeyThatTheNewKindDoesNotHave) {
  EXPECT_EQ(error_of(kGood, {"problem.kind=mlp", "algorithm.step_size=1"}),
            "dir/a.toml:5: regularizer is a key of least_squares and logistic, not kind 'mlp'");
  EXPECT_EQ(error_of(kGood, {"problem.kind=mlp", "algorithm.step_size=1", "problem.regularizer=none",
                             "problem.lambda=0"}),
            "");
}

TEST(ExperimentErrors, IgnoreValuesThatSetReplaces) {
  const std::string mlp =
      "[problem]\nkind = \"mlp\"\ndata = \"libsvm:a1a\"\nhidden = [16]\n[algorithm]\nname = \"gd\"\n";
  const std::string kind = "problem.kind=char_mlp", text = "problem.data=text:names.txt";
  EXPECT_EQ(error_of(mlp, {kind, text}), "");
  EXPECT_EQ(error_of(mlp, {text, kind}), "");
  EXPECT_NE(error_of(mlp, {kind}).find("a.toml:3: "), std::string::npos) << error_of(mlp, {kind});
  EXPECT_EQ(error_of(mlp, {text, kind, "problem.data=text:other.txt"}), "") << "the last one counts";
}

TEST(ExperimentErrors, RejectALambdaWithoutRegularizer) {
  EXPECT_EQ(error_of(replaced("regularizer = \"l2\"\n", "")),
            "dir/a.toml:5: lambda has no effect without regularizer = \"l2\" or \"nonconvex\"");
  EXPECT_EQ(error_of(replaced("\"l2\"", "\"none\"")), "");
}

TEST(ExperimentErrors, RefuseContradictions) {
  EXPECT_EQ(error_of(kGood, {"problem.test=digits", "problem.test_share=0.2"}),
            "--set problem.test_share: test_share and test exclude each other; set one "
            "of them");
  EXPECT_EQ(
      error_of(with("evaluate_every = 0\nstop_at_grad_norm_sq = 1e-9")),
      "dir/a.toml:16: stop_at_grad_norm_sq needs evaluations, but evaluate_every is 0; set it to 1 or more");
  for (const char* line : {"stop_at_loss = 0.1", "stop_at_accuracy = 0.9", "patience = 3"})
    EXPECT_EQ(error_of(with(std::string("evaluate_every = 0\n") + line)),
              "dir/a.toml:16: " + std::string(line).substr(0, std::string(line).find(' ')) +
                  " needs evaluations, but evaluate_every is 0; set it to 1 or more");
  EXPECT_EQ(
      error_of(kGood, {"run.stop_at_accuracy=0.9", "evaluation.accuracy=false"}),
      "--set evaluation.accuracy: stop_at_accuracy needs the accuracy in every row: accuracy must be true");
  EXPECT_EQ(error_of(kGood, {"run.stop_at_accuracy=1.1"}),
            "--set run.stop_at_accuracy: stop_at_accuracy must be a number in [0, 1], not 1.1");
  EXPECT_EQ(error_of(kGood, {"run.stop_at_loss=low"}),
            "--set run.stop_at_loss: stop_at_loss must be \"none\" or a number, not \"low\"");
  EXPECT_EQ(error_of(kGood, {"run.stop_at_loss=-2.5"}), "") << "losses of quadratics are negative";
  EXPECT_EQ(error_of(kGood, {"run.stop_at_grad_norm_sq=1e-9", "evaluation.grad_norm=first_and_last"}),
            "--set evaluation.grad_norm: stop_at_grad_norm_sq needs the gradient norm in every row: "
            "grad_norm must be \"every\" or \"auto\"");
  EXPECT_EQ(error_of(kGood, {"run.stop_at_grad_norm_sq=1e-9"}), "");
  EXPECT_NE(error_of(kGood, {"evaluation.clients=0"}), "");
}

TEST(ExperimentErrors, RejectSettingsThatTheAlgorithmDoesNotSupport) {
  const Overrides marina = {"algorithm.name=marina", "algorithm.compressor=randk:k=2"};
  const auto also = [&](const std::string& extra) {
    Overrides all = marina;
    all.push_back(extra);
    return all;
  };
  EXPECT_EQ(error_of(kGood, marina), "");
  EXPECT_EQ(error_of(kGood, also("server.quorum=0.5")),
            "--set server.quorum: marina needs the replies of all clients asked: quorum must be 1, not 0.5");
  EXPECT_EQ(error_of(kGood, also("clients.participation=0.5")).substr(0, 43),
            "--set clients.participation: marina needs e");
  EXPECT_EQ(error_of(kGood, also("algorithm.compressor=topk:k=1")).substr(0, 35),
            "--set algorithm.compressor: marina ");
  EXPECT_EQ(error_of(kGood, {"server.quorum=0.5"}), "");
  EXPECT_EQ(
      error_of(kGood, also("server.over_selection=0.3")),
      "--set server.over_selection: marina needs the replies of all clients asked: over_selection must be 0");
  EXPECT_EQ(
      error_of(kGood, {"server.over_selection=0.3"}),
      "--set server.over_selection: over_selection needs clients.participation below 1: at 1 a round already "
      "asks all clients; lower server.quorum to continue without the slowest");
  EXPECT_EQ(error_of(kGood, {"server.over_selection=0.3", "clients.participation=0.5"}), "");
  EXPECT_EQ(
      error_of(kGood, {"server.norm_limit=10", "server.norm_action=halve"}),
      "--set server.norm_action: clients of ef21 keep state that follows what they sent, which the server "
      "must not change: norm_action must be \"reject\" or \"warn\"");
  EXPECT_EQ(error_of(kGood, {"server.norm_limit=10", "server.norm_action=warn"}), "");
  EXPECT_EQ(error_of(kGood, {"server.norm_action=halve"}), "") << "without a limit nothing is halved";
  EXPECT_EQ(error_of(kGood, {"server.overlap=true"}),
            "--set server.overlap: overlap sends values before zstd could see them all: set server.zstd to "
            "\"off\", or overlap to false");
  EXPECT_EQ(error_of(kGood, {"server.overlap=true", "server.zstd=off"}), "");
  EXPECT_EQ(error_of(kGood, {"server.over_selection=-1"}).substr(0, 29), "--set server.over_selection: ");
  // k is checked against d once the data are known.
  EXPECT_EQ(error_of(kGood, {"algorithm.compressor=topk:k=0"}).substr(0, 28), "--set algorithm.compressor: ");
}

TEST(ExperimentErrors, RejectWipesOfClientsThatCannotBeRestored) {
  EXPECT_EQ(error_of(kGood, {"faults.state_loss=0.1", "server.client_state_replicas=false"}),
            "--set server.client_state_replicas: faults.state_loss above 0 needs replicas: only they restore "
            "the clients of ef21; write client_state_replicas = \"auto\"");
  EXPECT_EQ(error_of(kGood, {"faults.state_loss=0.1"}), "");
  EXPECT_EQ(error_of(kGood, {"server.client_state_replicas=false"}), "");
  // MARINA's clients compute their lost state again.
  EXPECT_EQ(error_of(kGood, {"algorithm.name=marina", "algorithm.compressor=randk:k=2",
                             "faults.state_loss=0.1", "server.client_state_replicas=false"}),
            "");
}

TEST(ExperimentErrors, RejectSettingsThatNeedRoundsIfTheAlgorithmHasNone) {
  const auto error = [](const std::string& override) {
    return error_of(kGood, {"algorithm.name=ringmaster", "algorithm.compressor=identity",
                            "algorithm.step_size=0.1", override});
  };
  EXPECT_EQ(error("clients.latency=2*sqrt"), "");
  EXPECT_EQ(error("clients.weights=samples"),
            "--set clients.weights: ringmaster uses each reply as it arrives, from any client: weights must "
            "be equal");
  EXPECT_EQ(error("server.over_selection=0.5"),
            "--set server.over_selection: ringmaster has no rounds to shorten: over_selection must be 0");
  EXPECT_EQ(error("clients.participation=0.5"),
            "--set clients.participation: ringmaster keeps every client at work; write participation = 1");
  EXPECT_EQ(error("faults.shuffle=true"),
            "--set faults.shuffle: shuffle has no effect on the virtual clock: clients.latency gives the "
            "order of replies");
  EXPECT_EQ(
      error("clients.latency=fast"),
      "--set clients.latency: latency 'fast': a number of seconds above 0, or a word is needed; known: sqrt, "
      "linear, lognormal:SIGMA, pareto:ALPHA, file:PATH");
  EXPECT_EQ(error("algorithm.outdated=drop"),
            "--set algorithm.outdated: unknown outdated 'drop'; did you mean 'stop'?");
}

TEST(ExperimentErrors, RejectInvalidFolderNames) {
  const auto error = [](const std::string& literal) { return error_of("name = " + literal + "\n" + kGood); };
  EXPECT_EQ(error("\"a/b\""),
            "dir/a.toml:1: name \"a/b\" is not a valid folder name: use no slashes, no leading dot, and 1 to "
            "100 characters");
  for (const std::string bad : {"\"\"", "\"..\"", "\".hidden\"", "\"a\\\\b\""})
    EXPECT_TRUE(error(bad).starts_with("dir/a.toml:1: name ")) << bad;
  EXPECT_TRUE(error("\"" + std::string(101, 'x') + "\"").starts_with("dir/a.toml:1: name "));
  EXPECT_EQ(error("\"" + std::string(100, 'x') + "\""), "");
}

TEST(ExperimentErrors, GiveTheLineThatIsNotToml) {
  EXPECT_TRUE(error_of(replaced("lambda = 0.1", "lambda = ")).starts_with("dir/a.toml:6: "));
  EXPECT_TRUE(error_of(replaced("compressor = \"topk:k=1\"", "compressor = topk:k=1"))
                  .starts_with("dir/a.toml:11: "));
  EXPECT_TRUE(error_of(with("x0 = \"zer")).starts_with("dir/a.toml:15: "));
  EXPECT_TRUE(error_of("seed = 99999999999999999999\n").starts_with("dir/a.toml:1: "));
  EXPECT_EQ(error_of("seed = 1\n\n# Universit\xe4t\n"),
            "dir/a.toml:3: a byte that is not UTF-8; save the file as UTF-8");
  EXPECT_EQ(error_of("# \u00e4 \u20ac \U0001f600\n" + kGood), "");
}

// These files make assertions of toml++ fail.
TEST(ExperimentErrors, GiveTheLineThatFailsAnAssertionOfTheTomlLibrary) {
  const std::string message = "not TOML; look for a misspelt [section], date or time";
  EXPECT_EQ(error_of("seed = 1\n\n[=problem]\nkind = 1\n"), "dir/a.toml:3: " + message);
  EXPECT_EQ(error_of("[{"), "dir/a.toml:1: " + message);
  EXPECT_EQ(error_of("seed = 1\nname = 1979-05-27Ti7:32:00Z\n"), "dir/a.toml:2: " + message);
  // toml++ marks this case as unreachable.
  EXPECT_NE(error_of("seed = 1\nname = 1\u0156$\n").find("dir/a.toml:2: "), std::string::npos);
  EXPECT_EQ(error_of(kGood, {"seed=1979-05-27Ti7:32:00Z"}),
            "--set seed: seed must be an integer, 0 or more, not \"1979-05-27Ti7:32:00Z\"");
}

TEST(ExperimentErrors, RefuseControlCharacters) {
  EXPECT_EQ(error_of(replaced("libsvm:a9a", "libsvm:a\\nb")),
            "dir/a.toml:4: must not contain control characters: \"libsvm:a\\nb\"");
  EXPECT_EQ(error_of(replaced("\"theory\"", "\"\\u0000\"")),
            "dir/a.toml:12: must not contain control characters: \"\\u0000\"");
  EXPECT_EQ(error_of(replaced("step_size = \"theory\"", "init = \"a\\tb\"")),
            "dir/a.toml:12: must not contain control characters: \"a\\tb\"");
}

TEST(ExperimentErrors, RefuseRepeatedKeysAndSections) {
  const std::string key = error_of(with("rounds = 60"));
  EXPECT_TRUE(key.starts_with("dir/a.toml:15: ")) << key;
  EXPECT_NE(key.find("'rounds'"), std::string::npos) << key;
  const std::string section = error_of(with("[problem]\nlambda = 1"));
  EXPECT_TRUE(section.starts_with("dir/a.toml:15: ") || section.starts_with("dir/a.toml:16: ")) << section;
  EXPECT_NE(section.find("'problem'"), std::string::npos) << section;
}

TEST(ExperimentErrors, AreOneShortLineForAnyFile) {
  const std::string big(100000, 'x');
  for (const std::string& toml :
       std::vector<std::string>{with("\"a\\nb\" = 1"), with(big + " = 1"), with("x0 = \"" + big + "\""),
                                replaced("\"topk:k=1\"", "\"" + big + "\""), replaced("ef21", big),
                                replaced("step_size", big), "[" + big + "]\n", with("\"\" = 1"),
                                "\"problem.kind\" = \"mlp\"\n", "[[problem]]\nkind = \"mlp\"\n",
                                with("hidden = " + std::string(5000, '[')), std::string("a = \0 1", 7)}) {
    const std::string error = error_of(toml);
    EXPECT_FALSE(error.empty()) << toml.substr(0, 80);
    EXPECT_LT(error.size(), 700u);
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

std::string load_error(const fs::path& file) {
  try {
    load_experiment(file);
  } catch (const ExperimentError& error) {
    return error.what();
  }
  return "";
}

TEST(ExperimentErrors, SayWhyTheFileCannotBeUsed) {
  const Folder folder;
  const std::string at = folder.path.string();
  EXPECT_EQ(load_error(folder.path / "no.toml"), at + "/no.toml: no such file");
  EXPECT_EQ(load_error(folder.path), at + ": is a folder; name the experiment file in it");
  const std::string empty = ":1: the file is empty; an experiment needs problem.kind and algorithm.name";
  EXPECT_EQ(load_error(folder.write("e.toml", "")), at + "/e.toml" + empty);
  EXPECT_EQ(load_error(folder.write("c.toml", "# a comment\n\n")), at + "/c.toml" + empty);
  EXPECT_EQ(load_error(folder.write("big.toml", std::string(kMaxExperimentBytes + 1, '#'))),
            at + "/big.toml: is larger than 1 MB; an experiment file is a page of TOML");
  EXPECT_EQ(
      load_error(folder.write("full.toml", kGood + std::string(kMaxExperimentBytes - kGood.size(), '#'))),
      "");
}

TEST(ExperimentErrors, CanBeLocatedLater) {
  const LoadedExperiment loaded = parse(kGood, {"run.rounds=3"});
  EXPECT_STREQ(locate(loaded, ConfigError("algorithm.compressor", "k is too large")).what(),
               "dir/a.toml:11: k is too large");
  EXPECT_STREQ(locate(loaded, ConfigError("run.rounds", "too many")).what(), "--set run.rounds: too many");
  EXPECT_STREQ(locate(loaded, ConfigError("clients.partition", "bad")).what(),
               "dir/a.toml:7: clients.partition: bad");
  EXPECT_STREQ(locate(loaded, ConfigError("server.quorum", "bad")).what(),
               "dir/a.toml:1: server.quorum: bad");
}

TEST(ExperimentErrors, AreTheOnlyEffectOfADamagedFile) {
  for (std::size_t at = 0; at < kGood.size(); ++at) {
    error_of(kGood.substr(0, at));
    for (const char byte : {'\0', '\n', '"', '[', '=', '\xff', '9'}) {
      std::string damaged = kGood;
      damaged[at] = byte;
      const std::string error = error_of(damaged);
      EXPECT_EQ(error.find('\n'), std::string::npos) << error;
      EXPECT_TRUE(error.empty() || error.starts_with("dir/a.toml:")) << error;
    }
  }
}

}  // namespace
}  // namespace gradwire
