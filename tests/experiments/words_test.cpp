// TypedWords that people type first. Each works, or one line names the right word, and that word works.
#include <gtest/gtest.h>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

using Arguments = std::vector<std::string>;

constexpr const char* kExperiment = R"(name = "q"
[problem]
kind = "quadratic"
dim = 20
[clients]
count = 4
[algorithm]
name = "ef21"
compressor = "topk:k=1"
[run]
rounds = 5
)";
// Also has the data that problem types other than quadratic read.
constexpr const char* kWithData = R"(name = "d"
[problem]
kind = "logistic"
data = "synthetic"
dim = 5
samples = 200
[clients]
count = 4
[algorithm]
name = "gd"
[run]
rounds = 5
)";

class TypedWords : public ::testing::Test {
 protected:
  TypedWords() {
    folder_.write("q.toml", kExperiment);
    folder_.write("d.toml", kWithData);
  }
  ProgramResult gradwire(const Arguments& arguments) { return run_gradwire(folder_.path(), arguments); }
  ProgramResult run(const std::string& file, const Arguments& more) {
    Arguments all = {"run", file, "--out", "out"};
    all.insert(all.end(), more.begin(), more.end());
    return gradwire(all);
  }
  // Returns the lines of the config.toml of a run that must succeed.
  std::string config_of(const std::string& file, const Arguments& more) {
    std::filesystem::remove_all(folder_.path() / "out");
    const auto r = run(file, more);
    EXPECT_EQ(r.code, 0) << r.err;
    return read_file(folder_.path() / "out" / "config.toml");
  }
  void expect_set(const Arguments& more, const std::string& line) {
    EXPECT_NE(config_of("q.toml", more).find("\n" + line + "\n"), std::string::npos)
        << more[0] << ": " << line;
  }
  // Expects that the program refuses `more` with one line that has `answer`.
  void expect_answer(const std::string& file, const Arguments& more, const std::string& answer) {
    const auto r = run(file, more);
    EXPECT_EQ(r.code, 2) << more.back();
    EXPECT_EQ(lines_of(r.err).size(), 1u) << r.err;
    EXPECT_NE(r.err.find(answer), std::string::npos) << r.err;
  }

  TemporaryFolder folder_;
};

// Returns the arguments that an answer such as `did you mean 'mlp' with hidden = []?` advises.
Arguments advised(const std::string& section, const std::string& key, const std::string& answer) {
  std::smatch name, with;
  EXPECT_TRUE(std::regex_search(answer, name, std::regex("did you mean '([^']*)'"))) << answer;
  Arguments sets = {"--set", section + "." + key + "=" + name[1].str()};
  std::string rest = std::regex_search(answer, with, std::regex("' with (.*)\\?")) ? with[1].str() : "";
  for (std::smatch one; std::regex_search(rest, one, std::regex("(\\w+) = (\\S+)")); rest = one.suffix())
    sets.insert(sets.end(), {"--set", section + "." + one[1].str() + "=" + one[2].str()});
  return sets;
}

TEST_F(TypedWords, ShowHelpForTheWordHelp) {
  EXPECT_EQ(gradwire({"help"}).out, gradwire({"--help"}).out);
  EXPECT_EQ(gradwire({"help"}).code, 0);
  EXPECT_EQ(gradwire({"help", "run"}).out, gradwire({"run", "--help"}).out);
}

TEST_F(TypedWords, NameTheKnownCommands) {
  const auto wrong = gradwire({"rum", "q.toml"});
  EXPECT_EQ(wrong.err, "gradwire: unknown command 'rum'; did you mean 'run'?; see gradwire --help\n");
  EXPECT_NE(gradwire({"train", "q.toml"}).err.find("did you mean 'run'?"), std::string::npos);
  EXPECT_NE(gradwire({"q.toml"}).err.find("gradwire run q.toml"), std::string::npos);
  EXPECT_NE(gradwire({"xyzzy"}).err.find("known: run, sweep"), std::string::npos);
}

TEST_F(TypedWords, NameTheKnownCommandsOfTheServer) {
  const auto server = [&](const Arguments& arguments) {
    return run_program("gradwire-server", folder_.path(), arguments);
  };
  EXPECT_EQ(server({"stat"}).err,
            "gradwire-server: unknown command 'stat'; did you mean 'status'?; see gradwire-server --help\n");
  EXPECT_EQ(server({"stat"}).code, 2);
  EXPECT_NE(server({"enrol", "hospital"}).err.find("unknown command 'enrol'; did you mean 'enroll'?"),
            std::string::npos);
  EXPECT_NE(server({"xyzzy"}).err.find("known: relay, status, init"), std::string::npos);
  EXPECT_EQ(server({"absent.toml"}).err.find("unknown command"), std::string::npos);
  EXPECT_EQ(server({"quadratics", "--listen", "nowhere"}).err.find("unknown command"), std::string::npos)
      << "a shipped experiment";
  EXPECT_EQ(server({"help"}).out, server({"--help"}).out);
  EXPECT_EQ(server({"help", "enroll"}).out, server({"enroll", "--help"}).out);
}

TEST_F(TypedWords, ListTopicsByTheirSynonyms) {
  EXPECT_EQ(gradwire({"list", "methods"}).out, gradwire({"list", "algorithms"}).out);
  EXPECT_EQ(gradwire({"list", "Compressors"}).out, gradwire({"list", "compressors"}).out);
  EXPECT_NE(gradwire({"list", "data"}).out.find("libsvm:a9a"), std::string::npos);
  EXPECT_EQ(gradwire({"list", "datasets"}).out, gradwire({"list", "data"}).out);
  EXPECT_NE(gradwire({"list", "metrics"}).out.find("bits_up"), std::string::npos);
  EXPECT_NE(gradwire({"list", "metrics"}).out.find("--y gap"), std::string::npos);
  EXPECT_EQ(gradwire({"list", "metrics"}).out.find("{}"), std::string::npos);
  EXPECT_NE(gradwire({"list", "experiments"}).out.find("quadratics"), std::string::npos);
}

TEST_F(TypedWords, ListOneEntryByItsName) {
  const std::string ef21 = gradwire({"list", "ef21"}).out;
  EXPECT_NE(ef21.find("\nef21: "), std::string::npos);
  EXPECT_EQ(ef21.find("\nef21_hb: "), std::string::npos);
  EXPECT_EQ(gradwire({"list", "EF21"}).out, ef21);
  const std::string topk = gradwire({"list", "topk"}).out;
  EXPECT_NE(topk.find("topk:k=1"), std::string::npos);
  EXPECT_EQ(topk.find("randk:k=1"), std::string::npos);
  EXPECT_NE(gradwire({"list", "lr"}).out.find("algorithm.step_size"), std::string::npos);
  EXPECT_NE(gradwire({"list", "rounds"}).out.find("run.rounds"), std::string::npos);
  EXPECT_NE(gradwire({"list", "logistic"}).out.find("logistic"), std::string::npos);
  EXPECT_NE(gradwire({"list", "a9a"}).out.find("libsvm:a9a"), std::string::npos);
  EXPECT_NE(gradwire({"list", "ef22"}).err.find("did you mean 'ef21'?"), std::string::npos);
}

TEST_F(TypedWords, RunAShippedExperimentByItsName) {
  const auto r = gradwire({"run", "quadratics", "--rounds", "10"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(read_file(folder_.path() / "results/quadratics-rounds=10/config.toml").find("rounds = 10\n"),
            std::string::npos);
  EXPECT_NE(gradwire({"run", "quadratic"}).err.find("did you mean 'quadratics'?"), std::string::npos);
  folder_.write("quadratics", kExperiment);
  EXPECT_EQ(gradwire({"run", "quadratics"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "results/q")) << "a file of that name comes first";
}

TEST_F(TypedWords, SetKeysByOptions) {
  expect_set({"--seed", "3"}, "seed = 3");
  expect_set({"--seed=3"}, "seed = 3");
  expect_set({"--method", "gd", "--compressor", "identity"}, "[algorithm]\nname = \"gd\"");
  expect_set({"--compressor", "topk:k=2"}, "compressor = \"topk:k=2\"");
  expect_set({"--step", "0.25"}, "step_size = 0.25");
  expect_set({"--step-size", "0.25"}, "step_size = 0.25");
  expect_set({"--rounds", "3"}, "rounds = 3");
  expect_set({"--run.rounds", "3"}, "rounds = 3");
  expect_set({"--n", "3"}, "count = 3");
  expect_set({"--clients", "3"}, "count = 3");
  expect_set({"--problem", "quadratic"}, "kind = \"quadratic\"");
}

TEST_F(TypedWords, SetKeysByTheirLastPartOrASynonym) {
  expect_set({"--set", "rounds=3"}, "rounds = 3");
  expect_set({"--set", "Rounds=3"}, "rounds = 3");
  expect_set({"--set", "iterations=3"}, "rounds = 3");
  expect_set({"--set", "lr=0.25"}, "step_size = 0.25");
  expect_set({"--set", "learning_rate=0.25"}, "step_size = 0.25");
  expect_set({"--set", "gamma=0.25"}, "step_size = 0.25");
  expect_set({"--set", "n=3"}, "count = 3");
  expect_set({"--set", "clients=3"}, "count = 3");
  expect_set({"--set", "init=zero"}, "init = \"zero\"");
}

TEST_F(TypedWords, NameTheRightKeyInErrors) {
  expect_answer("q.toml", {"--roundz", "3"}, "--roundz");
  expect_answer("q.toml", {"--rounds"}, "--set rounds: write it as KEY=VALUE");
  expect_answer("q.toml", {"--rounds", "many"}, "--set rounds: rounds must be an integer");
  expect_answer("q.toml", {"--seeds", "3"}, "a run has one seed, as in --seed 3; several: gradwire compare");
  expect_answer("q.toml", {"--set", "seed=1,2,3"},
                "several values are a sweep: gradwire compare FILE --seeds N");
  expect_answer("q.toml", {"--set", "step_size=[1, 2]"}, "must be a");
  expect_answer("q.tml", {}, "did you mean 'q.toml'?");
  expect_answer("q", {}, "did you mean 'q.toml'?");
  expect_answer("q.toml", {"--set", "round=3"}, "did you mean 'run.rounds'?");
  expect_answer("q.toml", {"--set", "algorithm.lr=1"}, "did you mean 'step_size'?");
  expect_answer("q.toml", {"--set", "algorithm.gamma=1"}, "did you mean 'step_size'?");
  expect_answer("q.toml", {"--set", "clients.n=3"}, "did you mean 'count'?");
  expect_answer("q.toml", {"--set", "run.lr=3"}, "did you mean 'algorithm.step_size'?");
  expect_answer("q.toml", {"--set", "algorithm.n=3"}, "did you mean 'clients.count'?");
  folder_.write("n.toml", "n = 3\n" + std::string(kExperiment));
  expect_answer("n.toml", {}, "n.toml:1: unknown key 'n'; did you mean 'clients.count'?");
  folder_.write("method.toml", "method = \"gd\"\n" + std::string(kExperiment));
  expect_answer("method.toml", {}, "method.toml:1: unknown key 'method'; did you mean 'algorithm.name'?");
  folder_.write("method.toml", "[problem]\ntype = \"quadratic\"\n");
  expect_answer("method.toml", {}, "method.toml:2: unknown key 'type' in [problem]; did you mean 'kind'?");
  folder_.write("method.toml", "[problem]\nkind = \"quadratic\"\ndim = 3\n[algorithm]\nmethod = \"gd\"\n");
  expect_answer("method.toml", {},
                "method.toml:5: unknown key 'method' in [algorithm]; did you mean 'name'?");
}

struct Answered {
  std::string section, key, word, answer;
};

TEST_F(TypedWords, NameTheRightWordInErrorsAndItRuns) {
  const std::vector<Answered> all = {
      {"problem", "kind", "logreg", "did you mean 'logistic'?"},
      {"problem", "kind", "Logistic", "did you mean 'logistic'?"},
      {"problem", "kind", "ridge",
       "did you mean 'least_squares' with regularizer = \"l2\" and lambda = 0.1?"},
      {"problem", "kind", "softmax", "did you mean 'mlp' with hidden = []?"},
      {"algorithm", "name", "fedsgd", "did you mean 'sgd_nice'?"},
      {"algorithm", "name", "local_sgd", "did you mean 'fedavg' with local_steps = 5 and batch = 8?"},
      {"algorithm", "name", "Local-SGD", "did you mean 'fedavg' with local_steps = 5 and batch = 8?"},
      {"algorithm", "name", "sgd", "did you mean 'sgd_nice' with batch = 8?"},
      {"algorithm", "name", "qsgd", "did you mean 'dcgd' with compressor = \"qsgd\"?"},
      {"algorithm", "name", "EF21", "did you mean 'ef21'?"},
      {"algorithm", "name", "FedAvg", "did you mean 'fedavg'?"},
      {"algorithm", "name", "MARINA", "did you mean 'marina'?"},
      {"algorithm", "compressor", "none", "did you mean 'identity'?"},
  };
  for (const Answered& a : all) {
    SCOPED_TRACE(a.word);
    const auto r = run("d.toml", {"--set", a.section + "." + a.key + "=" + a.word});
    EXPECT_EQ(r.code, 2);
    EXPECT_EQ(lines_of(r.err).size(), 1u) << r.err;
    EXPECT_NE(r.err.find(a.answer), std::string::npos) << r.err;
    Arguments advice = advised(a.section, a.key, r.err);
    advice.push_back("--overwrite");
    const auto again = run("d.toml", advice);
    EXPECT_EQ(again.code, 0) << again.err;
  }
  expect_answer("q.toml", {"--compressor", "TopK:k=1"}, "did you mean 'topk'?");
  expect_answer("q.toml", {"--compressor", "top-k:k=1"}, "did you mean 'topk'?");
  expect_answer("q.toml", {"--compressor", "RandK"}, "did you mean 'randk'?");
}

TEST_F(TypedWords, NameColumnsOfFiguresByTheirSynonyms) {
  ASSERT_EQ(run("q.toml", {}).code, 0);
  const auto figure = [&](const std::string& x, const std::string& y) {
    const auto r = gradwire({"plot", "out", "--x", x, "--y", y, "--out", "figure.svg"});
    EXPECT_EQ(r.code, 0) << x << " " << y << ": " << r.err;
    return read_file(folder_.path() / "figure.svg");
  };
  EXPECT_EQ(figure("wallclock", "grad"), figure("seconds", "grad_norm_sq"));
  EXPECT_EQ(figure("iterations", "loss"), figure("rounds", "loss"));
  EXPECT_EQ(figure("epochs", "Loss"), figure("grad_calls", "loss"));
  EXPECT_NE(figure("epochs", "loss"), figure("rounds", "loss"));
}

}  // namespace
}  // namespace gradwire
