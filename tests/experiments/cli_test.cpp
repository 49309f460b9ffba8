// The gradwire program as users see it: arguments, errors, results, signals.
#include <chrono>
#include <gtest/gtest.h>
#include <signal.h>
#include <sstream>
#include <thread>

#include "experiments/cli/support/child_process.h"
#include "report/build_info.h"
#include "report/columns.h"
#include "storage/model_file.h"
#include "tests/experiments/small_folder.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Cli : public SmallFolder {
 protected:
  // Runs `gradwire run` with `arguments`. Expects exit code 2, nothing on stdout, and only `line` on stderr.
  void expect_refused(const std::vector<std::string>& arguments, const std::string& line) {
    std::vector<std::string> all = {"run"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const auto r = gradwire(all);
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(lines_of(r.err).size(), 1u) << r.err;
    EXPECT_NE(r.err.find(line), std::string::npos) << r.err;
    EXPECT_FALSE(exists("results"));
  }
};

TEST_F(Cli, HasHelpWithExamplesForEveryCommand) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"run", "--help"},
                                             {"sweep", "--help"},
                                             {"optimum", "--help"},
                                             {"compare", "--help"},
                                             {"new", "--help"},
                                             {"plot", "--help"},
                                             {"list", "--help"},
                                             {"bench", "--help"}}) {
    const auto r = gradwire(arguments);
    EXPECT_EQ(r.code, 0);
    EXPECT_NE(r.out.find("Examples:\n  gradwire"), std::string::npos) << r.out;
  }
  EXPECT_EQ(gradwire({"--version"}).out, "gradwire " + build_info() + "\n");
}

TEST_F(Cli, RejectsBadUsageWithCode2AndOneLine) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"rum"},
                                             {"run"},
                                             {"run", "small.toml", "--threads", "0"},
                                             {"run", "small.toml", "--transport", "pigeon"},
                                             {"run", "small.toml", "--resume"},
                                             {"plot"},
                                             {"plot", "no-such-folder"},
                                             {"plot", ".", "--x", "bits"},
                                             {"list", "algoritmz"},
                                             {"run", "small.toml", "--set"}}) {
    const auto r = gradwire(arguments);
    EXPECT_EQ(r.code, 2) << arguments.back();
    EXPECT_EQ(lines_of(r.err).size(), 1u) << r.err;
    EXPECT_EQ(r.err.substr(0, 10), "gradwire: ") << r.err;
    EXPECT_EQ(r.out, "");
  }
  EXPECT_EQ(gradwire({"run", "small.toml", "--json", "--quiet"}).code, 2);
  const auto json = gradwire({"run", "absent.toml", "--json"});
  EXPECT_EQ(json.code, 2);
  EXPECT_EQ(json.err.substr(0, 10), "{\"time\": \"") << json.err;
}

TEST_F(Cli, NamesFileAndLineOfAnError) {
  folder_.write("typo.toml", std::string(kSmallExperiment) + "roundz = 3\n");
  expect_refused({"typo.toml"}, "typo.toml:15: unknown key 'roundz' in [run]; did you mean 'rounds'?");
  expect_refused({"small.toml", "--set", "algorithm.compressor=topk:k=3"}, "--set algorithm.compressor: ");
  expect_refused({"small.toml", "--set", "algorithm.compressor=topq"}, "did you mean 'topk'?");
  expect_refused({"small.toml", "--set", "problem.data=csv:absent.csv"}, "absent.csv");
  expect_refused({"small.toml", "--set", "clients.count=31"}, "31");
  expect_refused({"small.toml", "--set", "run.x0=file:absent.txt"}, "--set run.x0: ");
  expect_refused({"absent.toml"}, "absent.toml: no such file");
  expect_refused({"small.toml", "--transport", "tcp", "--set", "faults.lost_replies=0.1"},
                 "[faults] works only in a simulation");
}

TEST_F(Cli, RejectsSeveralCopiesOfARun) {
  const ScopedEnvironment mpirun("OMPI_COMM_WORLD_SIZE", "3");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"run", "small.toml"}, std::vector<std::string>{}}) {
    const auto r = gradwire(arguments);
    EXPECT_EQ(r.code, 2);
    EXPECT_EQ(lines_of(r.err).size(), 1u) << r.err;
    EXPECT_NE(r.err.find("one of 3"), std::string::npos) << r.err;
    EXPECT_FALSE(exists("results"));
  }
  EXPECT_EQ(gradwire({"list", "algorithms"}).code, 0);
}

TEST_F(Cli, ReadsTheTestDataOfTheExperimentOverTcp) {
  std::string rows;
  for (const char* transport : {"memory", "tcp"}) {
    folder_.write("test.csv", "1,2,1\n-1,0,0\n0.5,1,1\n2,1,1\n-2,-2,0\n0,1,1\n3,1,0\n");
    const auto r = gradwire({"run", "small.toml", "--transport", transport, "--set",
                             "problem.test=csv:test.csv", "--set", "name=small"});
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_NE(read("results/small/summary.json").find("\"accuracy\": 0."), std::string::npos);
    const std::string metrics = without_seconds(read("results/small/metrics.csv"));
    EXPECT_EQ(rows.empty() ? metrics : rows, metrics) << transport;
    rows = metrics;
  }
}

TEST_F(Cli, WritesAllResultsOfARun) {
  const auto r = gradwire({"run", "small.toml"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(r.out.starts_with("results: results/small, figure: results/small/plot.svg, ")) << r.out;
  EXPECT_EQ(lines_of(r.out).size(), 1u) << r.out;
  EXPECT_NE(r.err.find("small  12/12  loss "), std::string::npos) << r.err;
  for (const char* file : {"config.toml", "metrics.csv", "model.bin", "summary.json", "plot.svg", "plot.py"})
    EXPECT_TRUE(exists(std::string("results/small/") + file)) << file;
  const auto rows = lines_of(read("results/small/metrics.csv"));
  ASSERT_EQ(rows.size(), 5u);  // the header; rounds 0, 5, 10 and the last
  EXPECT_EQ(rows[0], metrics_header());
  EXPECT_EQ(rows[4].substr(0, 3), "12,");
  EXPECT_EQ(read_model(path() / "results/small/model.bin").size(), 2u);
  EXPECT_NE(read("results/small/summary.json").find("\"outcome\": \"finished\""), std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(path() / "results"), {}), 1) << "work folders are gone";
}

TEST_F(Cli, GivesTheSameBitsForTheResolvedConfigInAnotherFolder) {
  ASSERT_EQ(gradwire({"run", "small.toml", "--quiet"}).code, 0);
  EXPECT_EQ(read("results/small/config.toml").find("theory"), std::string::npos);
  const TemporaryFolder elsewhere;
  const auto again = run_gradwire(elsewhere.path(),
                                  {"run", (path() / "results/small/config.toml").string(), "--out", "again"});
  ASSERT_EQ(again.code, 0) << again.err;
  for (const char* file : {"config.toml", "model.bin"})
    EXPECT_EQ(read(std::string("results/small/") + file), read_file(elsewhere.path() / "again" / file))
        << file;
  EXPECT_EQ(without_seconds(read("results/small/metrics.csv")),
            without_seconds(read_file(elsewhere.path() / "again/metrics.csv")));
}

TEST_F(Cli, RejectsAFolderOfAnotherName) {
  ASSERT_EQ(gradwire({"run", "small.toml", "--quiet"}).code, 0);
  const std::string before = read("results/small/metrics.csv");
  const auto other = gradwire({"run", "small.toml", "--set", "name=other", "--out", "results/small"});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("contains the results of 'small', not of 'other'"), std::string::npos)
      << other.err;
  EXPECT_EQ(read("results/small/metrics.csv"), before);
  const auto unrelated = gradwire({"run", "small.toml", "--out", "."});
  EXPECT_EQ(unrelated.code, 2);
  EXPECT_EQ(read("small.toml"), kSmallExperiment);
}

TEST_F(Cli, PrintsNothingIfQuietAndJsonPerEvaluation) {
  const auto quiet = gradwire({"run", "small.toml", "--quiet"});
  EXPECT_EQ(quiet.out + quiet.err, "");
  const auto json = gradwire({"run", "small.toml", "--json"});
  const auto lines = lines_of(json.out);
  ASSERT_EQ(lines.size(), 4u) << json.out;
  for (const std::string& line : lines)
    EXPECT_TRUE(line.starts_with("{\"round\":") && line.ends_with("}")) << line;
}

TEST_F(Cli, ResolvesPathsOfSetInTheWorkingDirectory) {
  fs::create_directories(path() / "configs");
  for (const char* name : {"small.toml", "points.csv"})
    fs::copy_file(path() / name, path() / "configs" / name);
  ASSERT_EQ(gradwire({"run", "configs/small.toml", "--quiet"}).code, 0);
  const auto again = [&](const std::string& x0) {
    return gradwire({"run", "configs/small.toml", "--quiet", "--out", "again", "--set", "run.rounds=0",
                     "--set", "run.x0=file:" + x0});
  };
  ASSERT_EQ(again("results/small/model.bin").code, 0);
  EXPECT_EQ(read("again/model.bin"), read("results/small/model.bin"));
  fs::create_directories(path() / "configs/results/small");
  folder_.write("configs/results/small/model.bin", "1\n2\n3\n");
  EXPECT_NE(again("results/small/model.bin").err.find("configs/results/small/model.bin: holds"),
            std::string::npos)
      << "a file next to the experiment is found first";
  EXPECT_NE(again("absent.bin")
                .err.find("--set run.x0: configs/absent.bin: cannot be read: No such file or directory"),
            std::string::npos);
}

TEST_F(Cli, WritesAModelAndNoPlotWithoutEvaluations) {
  const auto r = gradwire({"run", "small.toml", "--set", "run.evaluate_every=0", "--out", "results/small"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(lines_of(read("results/small/metrics.csv")).size(), 1u);
  EXPECT_EQ(read_model(path() / "results/small/model.bin").size(), 2u);
  EXPECT_FALSE(exists("results/small/plot.svg"));
}

TEST_F(Cli, NamesTheNormLimitIfItRejectsReplies) {
  const auto r = gradwire({"run", "small.toml", "--quiet", "--set", "server.norm_limit=1e-9"});
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("or a reply is beyond server.norm_limit; try a smaller step"), std::string::npos)
      << r.err;
  EXPECT_NE(r.err.find("or a larger server.norm_limit (this was 1e-09)"), std::string::npos) << r.err;
}

TEST_F(Cli, ReportsADivergedRunAndKeepsItsResults) {
  const auto r =
      gradwire({"run", "small.toml", "--quiet", "--set", "problem.kind=least_squares", "--set",
                "algorithm.step_size=1e60", "--set", "algorithm.compressor=identity", "--set", "name=small"});
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(lines_of(r.err).size(), 1u) << r.err;
  EXPECT_NE(r.err.find("gradwire: small: diverged at round "), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("algorithm.step_size = 1e+60 is above theory's 0.0"), std::string::npos) << r.err;
  EXPECT_EQ(r.err.find("norm_limit"), std::string::npos) << r.err;
  EXPECT_NE(read("results/small/summary.json").find("\"outcome\": \"diverged\""), std::string::npos);
}

TEST_F(Cli, ReportsALossAboveThatOfTheStart) {
  for (const std::string transport : {"memory", "tcp"}) {
    const auto r = gradwire({"run", "small.toml", "--transport", transport, "--set",
                             "problem.kind=least_squares", "--set", "algorithm.step_size=1", "--set",
                             "algorithm.compressor=identity", "--out", "poor"});
    ASSERT_EQ(r.code, 0) << r.err;
    const std::string line = "the run ends with a loss of ";
    EXPECT_NE(r.err.find("warning: " + line), std::string::npos) << r.err;
    EXPECT_EQ(r.err.find(line), r.err.rfind(line)) << "once: " << r.err;
    const std::string summary = read("poor/summary.json");
    EXPECT_NE(summary.find(line), std::string::npos) << summary;
    EXPECT_NE(summary.find("\"loss_at_start\": "), std::string::npos) << summary;
  }
  const auto good = gradwire({"run", "small.toml"});
  EXPECT_EQ(good.err.find("ends with a loss"), std::string::npos) << good.err;
  EXPECT_EQ(read("results/small/summary.json").find("ends with a loss"), std::string::npos);
}

TEST_F(Cli, ShowsWarningsOnce) {
  const auto r =
      gradwire({"run", "small.toml", "--set", "algorithm.name=diana", "--set", "algorithm.step_size=0.01",
                "--set", "algorithm.alpha=0.5", "--set", "name=small"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.err.find("warning: diana needs an unbiased compressor"), r.err.rfind("warning: ")) << r.err;
  EXPECT_NE(read("results/small/summary.json").find("diana needs an unbiased compressor"), std::string::npos);
}

TEST_F(Cli, NamesKeysForServersOnly) {
  const auto r = gradwire({"run", "small.toml", "--set", "server.durability=power"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("server.durability has no effect in memory; it applies to clients over a network"),
            std::string::npos)
      << r.err;
}

TEST_F(Cli, ComparesRunsInAPlot) {
  ASSERT_EQ(gradwire({"run", "small.toml", "--quiet"}).code, 0);
  ASSERT_EQ(gradwire({"run", "small.toml", "--quiet", "--set", "name=whole", "--set",
                      "algorithm.compressor=identity"})
                .code,
            0);
  const auto r = gradwire(
      {"plot", "results/small", "results/whole", "--out", "both.svg", "--x", "rounds", "--y", "loss"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "both.svg\nboth.py\n");
  EXPECT_NE(read("both.svg").find("EF21, Top-1"), std::string::npos);
  EXPECT_NE(read("both.py").find("results/whole/metrics.csv"), std::string::npos);
}

TEST_F(Cli, ListsTheValuesOfTheCode) {
  const auto r = gradwire({"list"});
  EXPECT_EQ(r.code, 0);
  for (const char* word :
       {"ef21: ", "marina: ", "topk", "randseqk", "logistic", "run.evaluate_every", "arXiv:2106.05203"})
    EXPECT_NE(r.out.find(word), std::string::npos) << word;
  EXPECT_EQ(gradwire({"list", "compressors"}).out.find("run.rounds"), std::string::npos);
}

// ---- long runs that are ended from outside ----

// Waits until done() is true. Returns false if this takes more than half a minute.
template <class Done>
bool wait_until(const Done& done) {
  for (const auto deadline = std::chrono::steady_clock::now() + 30s;
       std::chrono::steady_clock::now() < deadline;) {
    if (done()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

// Returns the metrics of a run that has not ended.
std::string unfinished_metrics(const fs::path& results) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(results, ignored))
    if (entry.path().filename().string().starts_with(".small.unfinished-"))
      return read_file(entry.path() / "metrics.csv");
  return "";
}

class LongRun : public Cli, public testing::WithParamInterface<const char*> {
 protected:
  // A killed program leaves its temporary files. This folder is removed with the test.
  const ScopedEnvironment temporary_files_{"TMPDIR", folder_.path().c_str()};

  ChildProcess start() {
    return ChildProcess(
        "gradwire", program("gradwire"),
        {"run", (path() / "small.toml").string(), "--out", (path() / "results/small").string(), "--transport",
         GetParam(), "--set", "run.rounds=100000000", "--set", "run.evaluate_every=10"},
        path() / "log");
  }
  bool wait_for_rows() {
    return wait_until([&] { return lines_of(unfinished_metrics(path() / "results")).size() > 3; });
  }
  // Returns the child processes of `parent`.
  static std::vector<pid_t> children_of(pid_t parent) {
    std::istringstream in(
        read_file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children"));
    std::vector<pid_t> children;
    for (pid_t pid = 0; in >> pid;) children.push_back(pid);
    return children;
  }
  static bool alive(pid_t pid) {
    const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    return !stat.empty() && stat.find(") Z ") == std::string::npos;
  }
};

TEST_P(LongRun, EndsAfterTheRoundOnCtrlCAndWritesItsResults) {
  ChildProcess run = start();
  ASSERT_TRUE(wait_for_rows()) << read("log");
  run.signal(SIGINT);
  ASSERT_TRUE(wait_until([&] { return run.ended().has_value(); }));
  EXPECT_EQ(*run.ended(), 1);
  EXPECT_NE(run.last_line().find("gradwire: small: stopped after round "), std::string::npos)
      << run.last_line();
  const char* advice = std::string(GetParam()) == "tcp" ? "--set run.x0=file:" : "run the same command again";
  EXPECT_NE(run.last_line().find(advice), std::string::npos) << run.last_line();
  EXPECT_NE(read("results/small/summary.json").find("\"outcome\": \"stopped\""), std::string::npos);
  EXPECT_EQ(read_model(path() / "results/small/model.bin").size(), 2u);
  EXPECT_TRUE(exists("results/small/plot.svg"));
}

TEST_P(LongRun, EndsAfterTheRoundIfItsTerminalIsClosed) {
  struct sigaction inherited {};
  ::sigaction(SIGHUP, nullptr, &inherited);
  if (inherited.sa_handler == SIG_IGN) GTEST_SKIP() << "the tests run under nohup";
  ChildProcess run = start();
  ASSERT_TRUE(wait_for_rows()) << read("log");
  run.signal(SIGHUP);
  ASSERT_TRUE(wait_until([&] { return run.ended().has_value(); }));
  EXPECT_EQ(*run.ended(), 1);
  EXPECT_NE(run.last_line().find("gradwire: small: stopped after round "), std::string::npos)
      << run.last_line();
  EXPECT_TRUE(exists("results/small/summary.json")) << "no hidden folder holds the results";
}

INSTANTIATE_TEST_SUITE_P(Transports, LongRun, ::testing::Values("memory", "encoded", "tcp"));

class TcpRun : public LongRun {};

TEST_P(TcpRun, LeavesNoProcessIfTheProgramIsKilled) {
  ChildProcess run = start();
  ASSERT_TRUE(wait_for_rows()) << read("log");
  const std::vector<pid_t> children = children_of(run.pid());
  ASSERT_EQ(children.size(), 4u);
  run.signal(SIGKILL);
  for (const pid_t child : children) EXPECT_TRUE(wait_until([&] { return !alive(child); })) << child;
}

TEST_P(TcpRun, EndsAndNamesTheClientIfAClientDies) {
  ChildProcess run = start();
  ASSERT_TRUE(wait_for_rows()) << read("log");
  const std::vector<pid_t> children = children_of(run.pid());
  ASSERT_EQ(children.size(), 4u);
  kill(children[2], SIGKILL);
  ASSERT_TRUE(wait_until([&] { return run.ended().has_value(); }));
  EXPECT_EQ(*run.ended(), 1);
  EXPECT_NE(run.last_line().find("the client 1 (process " + std::to_string(children[2]) + ") "),
            std::string::npos)
      << run.last_line();
  for (const pid_t child : children) EXPECT_FALSE(alive(child));
  EXPECT_NE(run.last_line().find("the measurements until then are in "), std::string::npos)
      << run.last_line();
  EXPECT_GT(lines_of(unfinished_metrics(path() / "results")).size(), 3u);
}

TEST_P(TcpRun, EndsAndNamesTheServerIfTheServerDies) {
  ChildProcess run = start();
  ASSERT_TRUE(wait_for_rows()) << read("log");
  const std::vector<pid_t> children = children_of(run.pid());
  kill(children.at(0), SIGKILL);
  ASSERT_TRUE(wait_until([&] { return run.ended().has_value(); }));
  EXPECT_EQ(*run.ended(), 1);
  EXPECT_NE(run.last_line().find("the server (process " + std::to_string(children[0]) + ") "),
            std::string::npos)
      << run.last_line();
  for (const pid_t child : children) EXPECT_FALSE(alive(child));
}

TEST_P(TcpRun, NamesMissingPrograms) {
  const fs::path alone = path() / "bin/gradwire";
  fs::create_directory(alone.parent_path());
  fs::copy_file(program("gradwire"), alone);
  ChildProcess run(
      "gradwire", alone,
      {"run", (path() / "small.toml").string(), "--out", (path() / "out").string(), "--transport", "tcp"},
      path() / "log");
  ASSERT_TRUE(wait_until([&] { return run.ended().has_value(); }));
  EXPECT_EQ(*run.ended(), 1);
  EXPECT_NE(run.last_line().find("bin/gradwire-server, which does not exist"), std::string::npos)
      << run.last_line();
}

INSTANTIATE_TEST_SUITE_P(Transports, TcpRun, ::testing::Values("tcp"));

// ---- the demo ----

TEST_F(Cli, TrainsAndComparesBothAlgorithmsInTheDemo) {
  ASSERT_EQ(gradwire({}).code, 0);
  const auto r = gradwire({});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_FALSE(exists("results/demo-gd.before")) << "equal results are replaced";
  for (const char* file : {"demo-gd/metrics.csv", "demo-gd/plot.svg", "demo-ef21/metrics.csv",
                           "demo-ef21/plot.svg", "demo.svg", "demo.py"})
    EXPECT_TRUE(exists(std::string("results/") + file)) << file;
  const auto last = [&](const std::string& name, int column) {
    std::istringstream line(lines_of(read("results/" + name + "/metrics.csv")).back());
    std::string cell;
    for (int k = 0; k <= column; ++k) std::getline(line, cell, ',');
    return std::stod(cell);
  };
  constexpr int kAccuracy = 3, kBytesUp = 6;
  EXPECT_GE(last("demo-gd", kAccuracy), 0.97);
  EXPECT_GE(last("demo-ef21", kAccuracy), last("demo-gd", kAccuracy) - 0.01);
  EXPECT_GE(last("demo-gd", kBytesUp), 10 * last("demo-ef21", kBytesUp));
  for (const char* word :
       {"algorithm", "test accuracy", "rounds/s", "results/demo.svg", "gradwire plot results/demo-gd"})
    EXPECT_NE(r.out.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace gradwire
