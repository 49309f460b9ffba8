// Runs, sweeps and figures of files with old names of keys and words.
#include <cstddef>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "experiments/cli/sweep/sweep.h"
#include "tests/sweeps/sweep_fixture.h"

namespace gradwire {
namespace {

constexpr const char* kBase = R"(name = "renamed"
[problem]
kind = "quadratic"
dim = 20
[algorithm]
name = "ef21"
compressor = "topk:k=2"
step_size = 0.05
[run]
rounds = 20
evaluate_every = 5
)";
constexpr const char* kOld = R"([clients]
count = 3
[server]
mirrors = true
[faults]
wiped = 0.3
[evaluation]
grad_norm = "ends"
)";
constexpr const char* kNow = R"([clients]
count = 3
[server]
client_state_replicas = true
[faults]
state_loss = 0.3
[evaluation]
grad_norm = "first_and_last"
)";

std::size_t count_in(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class RenamedKeysRun : public Sweep {};

TEST_F(RenamedKeysRun, ARunWithOldNamesHasTheSameBitsAndWarnsOnceForEach) {
  write(kOld, kBase);
  const auto old = gradwire({"run", "sweep.toml", "--out", "old"});
  ASSERT_EQ(old.code, 0) << old.err;
  for (
      const char* line :
      {"sweep.toml:15: server.mirrors is now server.client_state_replicas; the old name works until version ",
       "sweep.toml:17: faults.wiped is now faults.state_loss; the old name works until version ",
       "sweep.toml:19: evaluation.grad_norm = \"ends\" is now \"first_and_last\"; the old name works until "})
    EXPECT_EQ(count_in(old.err, line), 1u) << line << "\n" << old.err;
  EXPECT_EQ(count_in(old.err, " is now "), 3u) << old.err;
  write(kNow, kBase);
  const auto now = gradwire({"run", "sweep.toml", "--out", "now"});
  ASSERT_EQ(now.code, 0) << now.err;
  EXPECT_EQ(count_in(now.err, " is now "), 0u) << now.err;
  EXPECT_EQ(read("old/model.bin"), read("now/model.bin"));
  EXPECT_EQ(read("old/config.toml"), read("now/config.toml"));
  EXPECT_EQ(count_in(read("old/config.toml"), "state_loss = 0.3"), 1u);
  const auto set = gradwire({"run", "sweep.toml", "--out", "set", "--set", "faults.wiped=0.3"});
  EXPECT_EQ(count_in(set.err, "--set faults.wiped is now faults.state_loss; "), 1u) << set.err;
  EXPECT_EQ(read("set/model.bin"), read("now/model.bin"));
}

TEST_F(RenamedKeysRun, ASweepWithOldNamesHasTheSameRunsAndWarnsOnceForEach) {
  const SweepPlan old = plan(R"([faults]
crashes = 0.1
[sweep]
faults.wiped = [0.1, 0.3]
server.mirrors = [true]
evaluation.grad_norm = ["ends", "every"]
tune = ["faults.wiped"]
by = "faults.wiped"
where = "evaluation.grad_norm = ends or faults.wiped > 0.2"
)");
  const SweepPlan now = plan(R"([faults]
crashes = 0.1
[sweep]
faults.state_loss = [0.1, 0.3]
server.client_state_replicas = [true]
evaluation.grad_norm = ["first_and_last", "every"]
tune = ["faults.state_loss"]
by = "faults.state_loss"
where = "evaluation.grad_norm = first_and_last or faults.state_loss > 0.2"
)");
  ASSERT_EQ(old.runs.size(), 3u);
  ASSERT_EQ(now.runs.size(), 3u);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(old.runs[k].settings, now.runs[k].settings);
    EXPECT_EQ(old.runs[k].id, now.runs[k].id);
  }
  EXPECT_EQ(old.varied, now.varied);
  EXPECT_EQ(old.tuned, now.tuned);
  EXPECT_EQ(old.figure.by, now.figure.by);
  EXPECT_EQ(now.warnings, std::vector<std::string>{});
  std::string warnings;
  for (const std::string& warning : old.warnings) warnings += warning + "\n";
  EXPECT_EQ(count_in(warnings, "sweep.toml:16: faults.wiped is now faults.state_loss; "), 1u) << warnings;
  EXPECT_EQ(count_in(warnings, "sweep.toml:17: server.mirrors is now "), 1u) << warnings;
  EXPECT_EQ(count_in(warnings, "sweep.toml:18: evaluation.grad_norm = \"ends\" is now "), 1u) << warnings;
  EXPECT_EQ(count_in(warnings, ": [sweep]: faults.wiped is now "), 1u) << warnings;
  EXPECT_EQ(old.warnings.size(), 5u) << warnings;
  EXPECT_EQ(plan("[sweep]\nfaults.wiped = [0.1, 0.3]\n", {"faults.state_loss=0.2"}).runs.size(), 1u);
  EXPECT_EQ(plan("[sweep]\nfaults.state_loss = [0.1, 0.3]\n", {"faults.wiped=0.2"}).runs.size(), 1u);
  EXPECT_EQ(refusal("[sweep]\nfaults.wiped = 0.1\nfaults.state_loss = 0.2\n"),
            ":15: faults.wiped is the old name of faults.state_loss; remove one of the two");
}

// A sweep names the folder of each run by this id. The id must not change, because a sweep that an earlier
// version began is continued, not repeated.
TEST_F(RenamedKeysRun, TheIdsOfASweepDoNotDependOnTheNames) {
  const SweepPlan p = plan("[sweep]\nseed = [1]\n");
  ASSERT_EQ(p.runs.size(), 1u);
  EXPECT_EQ(p.runs[0].id, "8206950695cbd863");
}

TEST_F(RenamedKeysRun, AFigureKnowsRunsOfEarlierVersions) {
  for (const char* seconds : {"linear", "sqrt"}) {
    write("[faults]\ncrashes = 0\n");
    const std::string out = std::string("r/") + seconds;
    ASSERT_EQ(gradwire({"run", "sweep.toml", "--quiet", "--out", out, "--set",
                        std::string("clients.latency=") + seconds})
                  .code,
              0);
    std::string config = read(out + "/config.toml");
    if (seconds == std::string("sqrt")) config.replace(config.find("latency"), 7, "seconds");
    folder_.write(out + "/config.toml", config);
  }
  for (const char* key : {"clients.latency", "clients.seconds"}) {
    const auto plot = gradwire({"plot", "r", "--by", key, "--out", "by.svg"});
    ASSERT_EQ(plot.code, 0) << plot.err;
    EXPECT_NE(read("by.svg").find("latency = sqrt"), std::string::npos);
    EXPECT_EQ(count_in(plot.err, "--by clients.seconds is now clients.latency; "), key[8] == 's' ? 1u : 0u)
        << plot.err;
  }
}

}  // namespace
}  // namespace gradwire
