#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <string>

#include "config/experiment_file.h"
#include "config/settings.h"
#include "config/toml_reader.h"
#include "tests/config/experiment_text.h"

namespace gradwire {
namespace {

void expect_round_trip(const ExperimentSpec& e) {
  const std::string text = to_toml(e);
  const ExperimentSpec back = parse_experiment(text, "elsewhere/b.toml").experiment;
  EXPECT_EQ(settings_of(back), settings_of(e)) << text;
  EXPECT_EQ(to_toml(back), text);
}

TEST(ExperimentToml, ReadsBackToTheSameExperiment) {
  expect_round_trip(parse(kGood).experiment);
  expect_round_trip(parse(kQuadratic).experiment);
  expect_round_trip(parse(kGood, {"problem.loss=sigmoid_squared", "problem.bias=true"}).experiment);
  expect_round_trip(parse(kGood, {"name=a \"quoted\" \u00e9 name",
                                  "seed=9223372036854775807",
                                  "precision=fp32",
                                  "problem.data=synthetic",
                                  "problem.samples=5",
                                  "problem.classes=0",
                                  "problem.noise=1",
                                  "problem.dim=4294967294",
                                  "problem.test=csv:a b\"",
                                  "clients.partition=dirichlet",
                                  "clients.dirichlet_alpha=5e-324",
                                  "clients.participation=0.30000000000000004",
                                  "clients.weights=samples",
                                  "algorithm.init=zero",
                                  "run.rounds=4294967295",
                                  "run.stop_at_grad_norm_sq=1.7976931348623157e308",
                                  "run.x0=file:x.txt",
                                  "server.quorum=0.1",
                                  "server.over_selection=0.3",
                                  "server.zstd=19",
                                  "server.client_state_replicas=false",
                                  "server.norm_limit=1e6",
                                  "server.norm_action=warn",
                                  "server.quarantine_s=0",
                                  "server.connections_per_address=20",
                                  "server.min_bytes_per_second=1",
                                  "server.staging_budget=3GB",
                                  "server.zerocopy=true",
                                  "faults.lost_replies=0.1",
                                  "faults.shuffle=true"})
                        .experiment);
  expect_round_trip(
      parse("[problem]\nkind = \"mlp\"\ndata = \"digits\"\nhidden = [3, 4]\ntest_share = 0.2\n[algorithm]\n"
            "name = \"fedavg\"\nlocal_steps = 3\nlocal_step_size = 0.1\nbatch = 7\n[server]\nzstd = 4\n")
          .experiment);
}

TEST(ExperimentToml, IsCanonical) {
  EXPECT_EQ(to_toml(parse(kGood, {"algorithm.init=zero"}).experiment), R"(name = "a"
seed = 7
precision = "fp64"

[problem]
kind = "logistic"
data = "libsvm:a9a"
test_share = 0.0
regularizer = "l2"
lambda = 0.1

[clients]
count = 20
partition = "contiguous"
participation = 1.0
weights = "equal"

[algorithm]
name = "ef21"
compressor = "topk:k=1"
step_size = "theory"
batch = "full"
init = "zero"

[run]
rounds = 50
evaluate_every = 1
stop_at_grad_norm_sq = 0.0
x0 = "zeros"

[server]
quorum = 1.0
over_selection = 0.0
deadline_ms = 60000
zstd = "auto"
overlap = false
client_state_replicas = "auto"
durability = "auto"
join_deadline_ms = 86400000
tls_min = "TLS1.3"
)");
}

TEST(ExperimentToml, SaysThatALambdaWithoutEffectIsMeant) {
  expect_round_trip(parse(kGood, {"problem.regularizer=none", "problem.lambda=0.1"}).experiment);
}

TEST(ExperimentToml, WritesResolvedAlgorithmsAsExactNumbers) {
  ExperimentSpec e = parse(kGood, {"algorithm.name=marina", "algorithm.compressor=randk:k=2"}).experiment;
  AlgorithmSpec spec = algorithm_spec(e);
  spec.step_size = "0.10000000000000001";
  spec.parameters = {{"p", "0.33333333333333331"}};
  set_algorithm(e, spec);
  expect_round_trip(e);
  const std::string text = to_toml(e);
  EXPECT_NE(text.find("\nstep_size = 0.1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\np = 0.3333333333333333\n"), std::string::npos) << text;
  EXPECT_EQ(std::stod(algorithm_spec(e).parameters.at(0).second), 1.0 / 3.0);
}

TEST(ExperimentToml, CarriesTheSpecOfTheAlgorithm) {
  ExperimentSpec e;
  const AlgorithmSpec spec{"ef21", "topk:k=2", "theory*4", 5, 0.25, {{"init", "zero"}}};
  set_algorithm(e, spec);
  const AlgorithmSpec back = algorithm_spec(e);
  EXPECT_EQ(back.name, spec.name);
  EXPECT_EQ(back.compressor, spec.compressor);
  EXPECT_EQ(back.step_size, spec.step_size);
  EXPECT_EQ(back.batch, spec.batch);
  EXPECT_EQ(back.participation, spec.participation);
  EXPECT_EQ(back.parameters, spec.parameters);
}

TEST(TomlValues, TextSurvivesBeingWrittenAsANumber) {
  for (const std::string text : {"true",
                                 "false",
                                 "1",
                                 "-1",
                                 "0",
                                 "-0",
                                 "007",
                                 "0.1",
                                 ".5",
                                 "1.",
                                 "1e+22",
                                 "1e22",
                                 "1e-07",
                                 "5e-324",
                                 "+1",
                                 "nan",
                                 "inf",
                                 "0x10",
                                 "",
                                 "9223372036854775807",
                                 "9223372036854775808",
                                 "12345678901234567168",
                                 "0.10000000000000001",
                                 "1_0",
                                 "1979-05-27",
                                 "a\"b\\c\nd\x7f"}) {
    const auto read = read_toml_value(toml_literal(value_of(text)));
    ASSERT_TRUE(read.has_value()) << text;
    EXPECT_EQ(text_of(*read), text);
  }
}

TEST(TomlValues, NumbersReadBackToTheSameBits) {
  for (const double value :
       {0.0, 1.0, 0.1, 1.0 / 3.0, 1e22, 1.2345678901234567e19, 5e-324, 1.7976931348623157e308, -1e-12}) {
    const auto read = read_toml_value(toml_literal(value));
    ASSERT_TRUE(read.has_value()) << value;
    EXPECT_EQ(std::get<double>(*read), value);
  }
}

TEST(ExperimentPaths, BecomeAbsoluteIfTheyExistNextToTheFile) {
  const Folder folder;
  folder.write("train", "");
  folder.write("start.txt", "");
  ExperimentSpec e =
      parse(kGood, {"problem.data=libsvm:train", "problem.test=csv:nowhere", "run.x0=file:start.txt"})
          .experiment;
  make_paths_absolute(e, folder.path);
  EXPECT_EQ(sources_of(e.problem)->data, "libsvm:" + (folder.path / "train").string());
  EXPECT_EQ(sources_of(e.problem)->test, "csv:nowhere");
  EXPECT_EQ(e.run.x0, "file:" + (folder.path / "start.txt").string());
  const Settings once = settings_of(e);
  make_paths_absolute(e, "/");
  EXPECT_EQ(settings_of(e), once);
}

TEST(ExperimentPaths, DoNotChangeValuesWithoutAPath) {
  ExperimentSpec e = parse(kGood, {"problem.data=digits", "run.x0=normal"}).experiment;
  map_paths(e, [](const fs::path&) -> fs::path { return "changed"; });
  EXPECT_EQ(sources_of(e.problem)->data, "digits");
  EXPECT_EQ(sources_of(e.problem)->test, "");
  EXPECT_EQ(e.run.x0, "normal");
}

std::string text_of_file(const fs::path& file) {
  std::ifstream in(file);
  EXPECT_TRUE(in.is_open()) << file;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(ExperimentConfigs, AreAcceptedAndSayWhatTheyShow) {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(kRoot / "experiments" / "configs")) {
    if (entry.path().extension() != ".toml") continue;
    const LoadedExperiment loaded = load_experiment(entry.path());
    EXPECT_TRUE(text_of_file(entry.path()).starts_with("# ")) << entry.path();
    expect_round_trip(loaded.experiment);
    found.insert(entry.path().stem());
  }
  for (const char* name :
       {"char_mlp_names", "demo_ef21", "demo_gd", "deploy_devices", "deploy_power", "deploy_silos",
        "ef21_a9a", "fedavg_digits", "gpt_shakespeare", "lenet_mnist", "marina_phishing", "quadratics"})
    EXPECT_TRUE(found.count(name)) << name;
}

TEST(ExperimentConfigs, MatchTheirCommentsIfTheyAreForServers) {
  const auto server = [](const char* name) {
    return load_experiment(kRoot / "experiments" / "configs" / name).experiment.server;
  };
  EXPECT_EQ(server("deploy_silos.toml").quorum, 1);
  EXPECT_LT(server("deploy_devices.toml").quorum, 1);
  EXPECT_EQ(server("deploy_devices.toml").deadline_ms, 5000u);
  EXPECT_EQ(server("deploy_power.toml").durability, Survives::kPower);
}

std::string data_of(const std::string& data) {
  return sources_of(parse(replaced("libsvm:a9a", data)).experiment.problem)->data;
}

TEST(ExperimentToml, TakesTheKindOfDataFromItsEndingOrItsPublicName) {
  EXPECT_EQ(data_of("pets.csv"), "csv:pets.csv");
  EXPECT_EQ(data_of("my/pets.tsv.gz"), "csv:my/pets.tsv.gz");
  EXPECT_EQ(data_of("a.svm"), "libsvm:a.svm");
  EXPECT_EQ(data_of("a.libsvm"), "libsvm:a.libsvm");
  EXPECT_EQ(data_of("X.npy,y.npy"), "npy:X.npy,y.npy");
  EXPECT_EQ(data_of("a.npz"), "npz:a.npz");
  EXPECT_EQ(data_of("a9a"), "libsvm:a9a");
  EXPECT_EQ(data_of("mnist"), "idx:mnist");
  EXPECT_EQ(data_of("libsvm:a.csv"), "libsvm:a.csv");
  EXPECT_EQ(data_of("sets/a.svm.bz2"), "libsvm:sets/a.svm.bz2");
  EXPECT_EQ(data_of("a.csv.xz"), "csv:a.csv.xz");
  EXPECT_NE(error_of(replaced("libsvm:a9a", "train.txt"))
                .find("data \"train.txt\": write the kind of the file before it, as in libsvm:train.txt or "
                      "csv:train.txt"),
            std::string::npos);
  EXPECT_NE(error_of(replaced("libsvm:a9a", "npy:X.npy")).find("needs two paths, as in npy:X.npy,y.npy"),
            std::string::npos);
}

TEST(ExperimentToml, KeepsTheColumnsOfATable) {
  const auto table = [](const std::string& lines) {
    return replaced("data = \"libsvm:a9a\"\n", "data = \"pets.csv\"\n" + lines);
  };
  const auto kept = [&](const std::string& lines) {
    const LoadedExperiment loaded = parse(table(lines));
    return rows_of(parse(to_toml(loaded.experiment)).experiment.problem)->table();
  };
  for (const auto& [written, label] :
       {std::pair{"3", "3"}, {"\"3\"", "3"}, {"\"animal\"", "animal"}, {"\"true\"", "true"}}) {
    const TableOptions options =
        kept("label = " + std::string(written) + "\ncolumns = \"age, 2-4\"\nmissing = \"mean\"\n");
    EXPECT_EQ(options.label, label);
    EXPECT_EQ(options.columns, "age, 2-4");
    EXPECT_EQ(options.missing, MissingValues::kMean);
  }
  EXPECT_EQ(rows_of(parse(table(""), {"problem.label=Sepal Length", "problem.columns=7"}).experiment.problem)
                ->table()
                .label,
            "Sepal Length");
  EXPECT_NE(error_of(table("missing = \"skip\"\n")).find("refuse"), std::string::npos);
  const TableOptions texts =
      kept("labels = \"no,yes ,  may be\"\ncategories = \"color:red|light blue; 3: 1|2\"\n");
  EXPECT_EQ(texts.labels, (std::vector<std::string>{"no", "yes", "may be"}));
  EXPECT_EQ(texts.categories,
            (std::vector<ColumnTexts>{{"color", {"red", "light blue"}}, {"3", {"1", "2"}}}));
  for (const char* wrong : {"labels = \"no\"\n", "labels = \"no, no\"\n", "labels = \"no,,yes\"\n"})
    EXPECT_NE(error_of(table(wrong)).find("two or more different texts"), std::string::npos) << wrong;
  for (const char* wrong : {"categories = \"color\"\n", "categories = \"color: red\"\n",
                            "categories = \"c: a|b; c: d|e\"\n", "categories = \"c: a|a\"\n"})
    EXPECT_NE(error_of(table(wrong)).find("columns with their different texts"), std::string::npos) << wrong;
  const auto normalized = [&](const std::string& lines) {
    return rows_of(parse(to_toml(parse(table(lines)).experiment)).experiment.problem)->normalize;
  };
  EXPECT_EQ(normalized(""), Normalize::kNone);
  EXPECT_EQ(normalized("normalize = \"minmax\"\n"), Normalize::kMinMax);
  EXPECT_NE(error_of(table("normalize = \"l2\"\n")).find("minmax, unit_rows"), std::string::npos);
}

}  // namespace
}  // namespace gradwire
