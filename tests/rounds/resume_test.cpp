// Tests of resumed runs: a simulation that continues in another process gives the same bits as one
// that was never interrupted.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <gtest/gtest.h>

#include "report/metrics_reader.h"
#include "tests/algorithms/every_algorithm.h"
#include "tests/support/data_files.h"
#include "tests/support/process.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::spec_for;

namespace fs = std::filesystem;

Faults some_faults(const AlgorithmTraits& traits) {
  Faults faults{.lost_replies = 0.1, .lost_requests = 0.05, .duplicates = 0.1, .shuffle = true};
  if (!has(traits.client_state, ClientState::kPrivate)) faults.crashes = faults.state_loss = 0.02;
  return faults;
}

// Returns the state after 40 rounds. With `moved`, new objects load the state after 20 rounds and continue.
std::string after_forty_rounds(const Federation<double>& federation, const AlgorithmInfo& algorithm,
                               bool moved) {
  const auto run_context = federation.run_context(spec_for(algorithm));
  run_context->keep_client_state_replicas = true;
  FaultSimulationOptions options;
  options.faults = some_faults(algorithm.traits);
  auto clients =
      std::make_unique<FaultSimulation<double>>(run_context, federation.oracle_pointers(), options);
  auto server = make_server<double>(run_context);
  RunProgress progress;
  progress.committed.resize(run_context->n);
  for (const std::uint32_t rounds : {20u, 40u}) {
    RoundLimits limits;
    limits.rounds = rounds;
    limits.evaluate_every = 3;
    limits.keep_clients = true;
    run_rounds<double>(*server, algorithm.traits, *run_context, *clients, progress, limits, {});
    if (rounds == 40 || !moved) continue;
    const std::string saved_server = server->save(),
                      saved_clients = clients->save_clients(progress.committed);
    server = make_server<double>(run_context);
    clients = std::make_unique<FaultSimulation<double>>(run_context, federation.oracle_pointers(), options);
    EXPECT_TRUE(server->load(saved_server));
    EXPECT_TRUE(clients->load_clients(saved_clients));
    EXPECT_FALSE(FaultSimulation<double>(run_context, federation.oracle_pointers(), options)
                     .load_clients(std::string_view(saved_clients).substr(1)));
  }
  return server->save() + clients->save_clients(progress.committed);
}

TEST(Checkpoint, ResumesEveryAlgorithmAndItsClientsToTheSameBits) {
  const Federation<double> federation(5, 9);
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms())
    EXPECT_EQ(after_forty_rounds(federation, algorithm, true),
              after_forty_rounds(federation, algorithm, false))
        << algorithm.traits.name;
}

constexpr int kResumedRounds = scaled(100'000);

class ResumeFixture : public ::testing::Test {
 protected:
  ResumeFixture() {
    std::string config = R"(
name = "long"
[problem]
kind = "quadratic"
dim = 60
heterogeneity = 0.5
[clients]
count = 8
[algorithm]
name = "ef21"
compressor = "topk:k=3"
[run]
rounds = ROUNDS
evaluate_every = 500
[faults]
lost_replies = 0.02
crashes = 0.01
[server]
client_state_replicas = true
)";
    config.replace(config.find("ROUNDS"), 6, std::to_string(kResumedRounds));
    std::ofstream(folder.path() / "run.toml") << config;
  }
  Process run(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"run", "run.toml", "--checkpoint-every", "0.05"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Process("gradwire", arguments, folder.path() / "log");
  }
  std::string read(const std::string& file) const { return read_file(folder.path() / file); }
  fs::path checkpoint() const { return folder.path() / ".cut.checkpoint"; }

  void run_whole(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--out", "whole"});
    Process whole = run(more);
    EXPECT_EQ(whole.wait(), 0) << whole.log();
  }
  // Makes a run that the signal stops three times, each time after it has written a checkpoint.
  void run_cut(int signal, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--out", "cut"});
    for (int k = 0; k < 3; ++k) {
      const std::string before = newest_checkpoint();
      Process cut = run(more);
      ASSERT_TRUE(eventually([&] { return newest_checkpoint() != before; })) << cut.log();
      cut.kill(signal);
      cut.wait();
    }
    Process rest = run(more);
    EXPECT_EQ(rest.wait(), 0) << rest.log();
  }
  // Expects each row of `whole` exactly once, and rows in ascending order.
  void expect_rows_in_order() const {
    const auto whole = read_metrics(folder.path() / "whole/metrics.csv");
    const auto cut = read_metrics(folder.path() / "cut/metrics.csv");
    ASSERT_EQ(cut.size(), whole.size());
    for (std::size_t k = 0; k < cut.size(); ++k) {
      EXPECT_EQ(cut[k].round, whole[k].round);
      if (k > 0) {
        EXPECT_GT(cut[k].seconds, cut[k - 1].seconds) << "round " << cut[k].round;
      }
    }
  }
  // Returns the newest snapshot. Empty if there is none yet.
  std::string newest_checkpoint() const {
    std::string name;
    std::error_code ignored;
    for (fs::directory_iterator at(checkpoint(), ignored), end; !ignored && at != end;
         at.increment(ignored)) {
      const std::string file = at->path().filename().string();
      if (file.starts_with("ckpt-") && file.ends_with(".bin")) name = std::max(name, file);
    }
    return name;
  }

  TemporaryFolder folder;
};

class ResumeTest : public ResumeFixture, public ::testing::WithParamInterface<int> {};

TEST_P(ResumeTest, ReachesTheBitsOfAnUninterruptedRun) {
  const std::vector<std::string> sets = {"--set", "run.client_metrics=all"};
  run_whole(sets);
  run_cut(GetParam(), sets);
  EXPECT_EQ(read("cut/model.bin"), read("whole/model.bin"));
  EXPECT_EQ(read("cut/clients.csv"), read("whole/clients.csv"));
  EXPECT_EQ(without_seconds(read("cut/metrics.csv")), without_seconds(read("whole/metrics.csv")));
  EXPECT_FALSE(fs::exists(checkpoint())) << "a run that is over needs none";
  for (const auto& entry : fs::directory_iterator(folder.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".cut")) << "left by a run that was killed";
}

TEST_P(ResumeTest, ContinuesTheVirtualClockWhereItStopped) {
  const std::vector<std::string> speeds = {"--set", "clients.latency=sqrt"};
  run_whole(speeds);
  run_cut(GetParam(), speeds);
  EXPECT_EQ(read("cut/model.bin"), read("whole/model.bin"));
  EXPECT_EQ(without_seconds(read("cut/metrics.csv")), without_seconds(read("whole/metrics.csv")));
  expect_rows_in_order();
}

TEST_P(ResumeTest, ResumesAsynchronousAlgorithmsToTheBitsOfAWholeRun) {
  std::ofstream(folder.path() / "speeds.txt") << "1 2.5 0.3\n1\n2\n1.5 1\n3\n2 0.5\n1\n4 1 1 1\n";
  for (const char* speeds : {"sqrt*lognormal:1+fail:0.01", "1*file:speeds.txt+fail:0.01"}) {
    SCOPED_TRACE(speeds);
    const std::vector<std::string> asynchronous = {"--overwrite",
                                                   "--set",
                                                   "algorithm.name=ringmaster",
                                                   "--set",
                                                   "algorithm.compressor=identity",
                                                   "--set",
                                                   "algorithm.delay_threshold=20",
                                                   "--set",
                                                   "algorithm.step_size=0.001",
                                                   "--set",
                                                   std::string("clients.latency=") + speeds,
                                                   "--set",
                                                   "run.rounds=" + std::to_string(10 * kResumedRounds)};
    run_whole(asynchronous);
    run_cut(GetParam(), asynchronous);
    EXPECT_EQ(read("cut/model.bin"), read("whole/model.bin"));
    EXPECT_EQ(without_seconds(read("cut/metrics.csv")), without_seconds(read("whole/metrics.csv")));
    expect_rows_in_order();
  }
}

// Batch jobs of earlier versions give the option.
TEST_P(ResumeTest, TakesTheOptionOfEarlierVersions) {
  run_whole({"--resume=auto"});
  run_cut(GetParam(), {"--resume=auto"});
  EXPECT_EQ(read("cut/model.bin"), read("whole/model.bin"));
  EXPECT_NE(read("log").find(" is here: resuming; --fresh starts again"), std::string::npos) << read("log");
}
INSTANTIATE_TEST_SUITE_P(Signals, ResumeTest, ::testing::Values(SIGINT, SIGKILL));

TEST_F(ResumeFixture, ExplainsWhyItCannotResume) {
  const auto refused = [&](const std::vector<std::string>& more, const std::string& message, int code = 2) {
    std::vector<std::string> arguments = {"run", "run.toml", "--resume"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = run_gradwire(folder.path(), arguments);
    EXPECT_EQ(result.code, code);
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
    EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  };
  refused({}, "--resume: there is no checkpoint of this run in ");
  refused({"--transport", "tcp", "--set", "faults.lost_replies=0", "--set", "faults.crashes=0"},
          "--resume: gradwire cannot resume runs over a network");
  {
    Process cut = run({"--out", "cut", "--set", "run.rounds=1000000000"});
    ASSERT_TRUE(eventually([&] { return fs::exists(folder.path() / ".cut.checkpoint/metrics.csv"); }))
        << cut.log();
    refused({"--out", "cut"}, "is in use by process ", 1);
    cut.kill(SIGINT);
    EXPECT_EQ(cut.wait(), 1) << cut.log();
  }
  // With and without the option, another experiment neither uses the checkpoint nor removes it.
  const std::string saved = newest_checkpoint();
  const std::string other = "is of a run with other settings: algorithm.step_size is 0.01 now and was ";
  refused({"--out", "cut", "--set", "algorithm.step_size=0.01"}, other);
  const auto without =
      run_gradwire(folder.path(), {"run", "run.toml", "--out", "cut", "--set", "algorithm.step_size=0.01"});
  EXPECT_EQ(without.code, 2);
  EXPECT_NE(without.err.find(other), std::string::npos) << without.err;
  EXPECT_NE(without.err.find("or start again with --fresh, which moves the checkpoint aside"),
            std::string::npos)
      << without.err;
  EXPECT_EQ(newest_checkpoint(), saved);
}

TEST_F(ResumeFixture, StartsAgainIfAskedAndKeepsTheCheckpoint) {
  run_whole();
  for (const std::string aside : {".cut.checkpoint.before", ".cut.checkpoint.before-2"}) {
    Process cut = run({"--out", "cut"});
    ASSERT_TRUE(eventually([&] { return !newest_checkpoint().empty(); })) << cut.log();
    cut.kill(SIGKILL);
    cut.wait();
    const std::string saved = newest_checkpoint();
    Process again = run({"--out", "cut", "--fresh"});
    EXPECT_EQ(again.wait(), 0) << again.log();
    EXPECT_NE(again.log().find("starts again; moved the checkpoint of an earlier run to "), std::string::npos)
        << again.log();
    EXPECT_EQ(again.log().find("resuming"), std::string::npos) << again.log();
    EXPECT_TRUE(fs::exists(folder.path() / aside / saved));
    EXPECT_FALSE(fs::exists(checkpoint()));
    EXPECT_EQ(read("cut/model.bin"), read("whole/model.bin"));
  }
  // A checkpoint that was moved back works.
  fs::rename(folder.path() / ".cut.checkpoint.before", checkpoint());
  Process rest = run({"--out", "cut"});
  EXPECT_EQ(rest.wait(), 0) << rest.log();
  EXPECT_NE(rest.log().find("a checkpoint of round "), std::string::npos) << rest.log();
  EXPECT_EQ(read("cut/model.bin"), read("whole/model.bin"));
}

TEST_F(ResumeFixture, LeavesACheckpointAloneThatARunOverANetworkCannotUse) {
  const std::vector<std::string> few = {"--set", "faults.lost_replies=0", "--set", "faults.crashes=0",
                                        "--set", "run.rounds=1000000000"};
  std::vector<std::string> arguments = few;
  arguments.insert(arguments.end(), {"--out", "cut"});
  Process cut = run(arguments);
  ASSERT_TRUE(eventually([&] { return !newest_checkpoint().empty(); })) << cut.log();
  cut.kill(SIGKILL);
  cut.wait();
  const std::string saved = newest_checkpoint();
  arguments.insert(arguments.end(), {"--transport", "tcp", "--set", "run.rounds=20"});
  Process over_tcp = run(arguments);
  EXPECT_EQ(over_tcp.wait(), 0) << over_tcp.log();
  EXPECT_NE(over_tcp.log().find(" stays: a run over a network does not use it"), std::string::npos)
      << over_tcp.log();
  EXPECT_EQ(newest_checkpoint(), saved);
}

TEST_F(ResumeFixture, RefusesChangedDataAndTraces) {
  std::string rows;
  for (int k = 0; k < 64; ++k)
    rows += std::string(k % 2 == 0 ? "+1" : "-1") + " 1:" + std::to_string(k % 7) + " 2:0.5\n";
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder.path() / name) << text;
  };
  const std::string speeds = "1 2\n1\n2\n1\n3\n2\n1\n4\n";
  write("train.svm", rows);
  write("test.svm", rows.substr(0, rows.size() / 2));
  write("speeds.txt", speeds);
  write("run.toml",
        "name = \"data\"\n[problem]\nkind = \"logistic\"\ndata = \"libsvm:train.svm\"\ntest = "
        "\"libsvm:test.svm\"\n[clients]\ncount = 8\nlatency = \"file:speeds.txt\"\n[algorithm]\nname = "
        "\"gd\"\nstep_size = 0.1\n[run]\nrounds = 1000000000\nevaluate_every = 100000\n");
  Process cut = run({"--out", "cut"});
  ASSERT_TRUE(eventually([&] { return !newest_checkpoint().empty(); })) << cut.log();
  cut.kill(SIGKILL);
  cut.wait();
  const auto refusal = [&] {
    const auto result = run_gradwire(
        folder.path(), {"run", "run.toml", "--resume", "--out", "cut", "--checkpoint-every", "0.05"});
    EXPECT_EQ(result.code, 2);
    return result.err;
  };
  for (const char* name : {"train.svm", "test.svm"}) {
    const std::string before = read(name);
    std::string after = before;
    after[after.rfind("0.5") + 2] = '7';
    write(name, after);
    const std::string refused = refusal();
    EXPECT_NE(refused.find("is of a run with other data: a file that problem.data or problem.test reads"),
              std::string::npos)
        << refused;
    write(name, before);
  }
  write("speeds.txt", "9" + speeds);
  EXPECT_NE(refusal().find("is of a run with other traces"), std::string::npos);
  write("speeds.txt", speeds);
  Process rest = run({"--out", "cut", "--resume"});
  const std::string newest = newest_checkpoint();
  EXPECT_TRUE(eventually([&] { return newest_checkpoint() != newest; })) << rest.log();
  rest.kill(SIGKILL);
  rest.wait();
}

}  // namespace
}  // namespace gradwire
