// The advice in errors and warnings of commands: a command that follows it works.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

using Command = std::vector<std::string>;

constexpr const char* kRun = R"([problem]
kind = "quadratic"
dim = 20
[clients]
count = 4
[algorithm]
name = "gd"
[run]
rounds = 5
)";
constexpr const char* kSweep = "[sweep]\nseed = [1, 2]\n";

struct Advised {
  Command wrong;
  std::string advice;  // a part of the message
  Command right;       // follows it
};

class CommandAdvice : public ::testing::Test {
 protected:
  CommandAdvice() {
    folder_.write("q.toml", kRun);
    folder_.write("s.toml", std::string(kRun) + kSweep);  // the name of a run is that of its file
  }
  ProgramResult gradwire(const Command& command) {
    std::filesystem::remove_all(folder_.path() / "results" / "s");
    return run_gradwire(folder_.path(), command);
  }
  TemporaryFolder folder_;
};

TEST_F(CommandAdvice, WorksAfterAnError) {
  ASSERT_EQ(gradwire({"run", "q.toml", "--quiet"}).code, 0);
  const std::string lost = "faults.lost_replies=0.1", latency = "clients.latency=1",
                    monitor = "run.monitor=true";
  for (const Advised& a : std::vector<Advised>{
           {{"run", "q.toml", "--transport", "tcp", "--set", lost},
            "use memory",
            {"run", "q.toml", "--transport", "memory", "--set", lost}},
           {{"run", "q.toml", "--transport", "tcp", "--set", lost},
            "or encoded",
            {"run", "q.toml", "--transport", "encoded", "--set", lost}},
           {{"run", "q.toml", "--transport", "tcp", "--set", lost},
            "or remove [faults]",
            {"run", "q.toml", "--transport", "tcp"}},
           {{"run", "q.toml", "--transport", "tcp", "--set", latency},
            "use memory or encoded",
            {"run", "q.toml", "--transport", "encoded", "--set", latency}},
           {{"run", "q.toml", "--transport", "tcp", "--set", monitor},
            "use memory or encoded",
            {"run", "q.toml", "--transport", "encoded", "--set", monitor}},
           {{"run", "q.toml", "--transport", "tcp", "--set", monitor},
            "write monitor = false",
            {"run", "q.toml", "--transport", "tcp", "--set", "run.monitor=false"}},
           {{"run", "s.toml"}, "start them with gradwire sweep", {"sweep", "s.toml"}},
           {{"sweep", "q.toml"}, "start the single run with gradwire run", {"run", "q.toml"}},
           {{"sweep", "s.toml", "--set", "run.evaluate_every=0"},
            "evaluate_every must be above 0",
            {"sweep", "s.toml", "--set", "run.evaluate_every=1"}},
           {{"sweep", "s.toml", "--shard", "3/2"}, "as in 1/4", {"sweep", "s.toml", "--shard", "1/4"}},
           {{"plot", "results/q", "--y", "loss", "--panel", "gap:bits"},
            "use --panel loss instead",
            {"plot", "results/q", "--panel", "loss", "--panel", "gap:bits"}},
           {{"plot", "results/q", "--panel", "loss:"},
            "as in loss:bits",
            {"plot", "results/q", "--panel", "loss:bits"}},
           {{"plot", "results/q", "--by", "problem.dimm"},
            "did you mean 'problem.dim'?",
            {"plot", "results/q", "--by", "problem.dim"}},
           {{"q.toml"}, "gradwire run q.toml", {"run", "q.toml"}},
       }) {
    SCOPED_TRACE(a.advice);
    const auto wrong = gradwire(a.wrong);
    EXPECT_EQ(wrong.code, 2);
    EXPECT_EQ(lines_of(wrong.err).size(), 1u) << wrong.err;
    EXPECT_NE(wrong.err.find(a.advice), std::string::npos) << wrong.err;
    const auto right = gradwire(a.right);
    EXPECT_EQ(right.code, 0) << right.err;
  }
}

TEST_F(CommandAdvice, SilencesAWarning) {
  const auto run = [&](const Command& sets) {
    Command command = {"run", "q.toml"};
    for (const std::string& set : sets) command.insert(command.end(), {"--set", set});
    return gradwire(command).err;
  };
  for (const Advised& a : std::vector<Advised>{
           {{"problem.lambda=0"}, "give lambda above 0", {"problem.lambda=0.1"}},
           {{"schedule=cosine", "horizon=2", "step_size=0.1"},
            "leave horizon out",
            {"schedule=cosine", "step_size=0.1"}},
           {{"overlap=true", "zstd=off", "algorithm.name=ef21", "compressor=topk"},
            "it works for gd, nesterov, dcgd",
            {"overlap=true", "zstd=off", "algorithm.name=dcgd", "compressor=randk"}},
           {{"algorithm.name=asgd", "heterogeneity=0.1"},
            "use ringleader",
            {"algorithm.name=ringleader", "heterogeneity=0.1"}},
           {{"clients.dirichlet_alpha=0.5"}, "dirichlet_alpha has no effect", {}},
       }) {
    SCOPED_TRACE(a.advice);
    EXPECT_NE(run(a.wrong).find(a.advice), std::string::npos);
    EXPECT_EQ(run(a.right).find("warning:"), std::string::npos) << run(a.right);
  }
}

}  // namespace
}  // namespace gradwire
