// Tests that gradwire under mpirun gives the results of one process, even if ranks are killed.
// GRADWIRE_MPIRUN is the launcher of the MPI of the build (option GRADWIRE_MPI). It is empty in builds
// without MPI.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>

#include "tests/support/data_files.h"
#include "tests/support/process.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

const std::string kLauncher = GRADWIRE_MPIRUN;

// Returns the launchers of this system.
std::vector<std::string> launchers() {
  std::vector<std::string> found;
  for (const char* path : {"/usr/bin/mpirun.openmpi", "/usr/bin/mpirun.mpich"})
    if (fs::exists(path)) found.push_back(path);
  return found;
}

constexpr unsigned kLong = 600, kManySamples = 40'000;

class LauncherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (launchers().empty()) GTEST_SKIP() << "no MPI is installed";
    // These settings let Open MPI run as root, and with more ranks than cores.
    for (const char* variable : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                                 "OMPI_MCA_rmaps_base_oversubscribe", "OMPI_MCA_mpi_yield_when_idle"})
      ::setenv(variable, "1", 1);
    ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);  // containers forbid the default
    ::setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
    folder_ = fs::path(::testing::TempDir()) /
              ("mpi_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override {
    if (!HasFailure()) fs::remove_all(folder_);
  }

  void write(const std::string& text, const std::string& file = "run.toml") const {
    std::ofstream(folder_ / file) << text;
  }
  // Returns an experiment with 40 clients. With many samples, a round takes milliseconds on any machine.
  std::string experiment(const std::string& algorithm, unsigned rounds = 15, unsigned samples = 400) const {
    return "seed = 5\n[problem]\nkind = \"logistic\"\ndata = \"synthetic\"\ndim = 100\nsamples = " +
           std::to_string(samples) +
           "\nclasses = 2\nlambda = 0.1\nregularizer = \"l2\"\n[clients]\ncount = 40\n[algorithm]\n" +
           algorithm + "\n[run]\nrounds = " + std::to_string(rounds) + "\nevaluate_every = 7\n";
  }
  Process start(unsigned ranks, const std::vector<std::string>& arguments,
                const std::string& launcher = kLauncher) const {
    fs::remove(folder_ / "log");
    std::vector<std::string> all = {"-n", std::to_string(ranks), program("gradwire").string()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return Process(launcher, all, folder_ / "log");
  }
  void expect_results(const std::string& a, const std::string& b) const {
    EXPECT_EQ(read_file(folder_ / a / "model.bin"), read_file(folder_ / b / "model.bin"));
    EXPECT_EQ(without_seconds(read_file(folder_ / a / "metrics.csv")),
              without_seconds(read_file(folder_ / b / "metrics.csv")));
    EXPECT_EQ(read_file(folder_ / a / "config.toml"), read_file(folder_ / b / "config.toml"));
    EXPECT_EQ(read_file(folder_ / a / "clients.csv"), read_file(folder_ / b / "clients.csv"));
    EXPECT_NE(read_file(folder_ / a / "model.bin"), "");
  }
  // Returns the process numbers of the ranks of a job.
  static std::vector<pid_t> ranks_of(pid_t mpirun) {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid <= 0) continue;
      const std::string name = read_file(entry.path() / "comm");
      if (name != "gradwire\n") continue;
      for (pid_t above = pid; above > 1;) {
        if (above == mpirun) found.push_back(pid);
        const std::string stat = read_file(fs::path("/proc") / std::to_string(above) / "stat");
        const std::size_t end = stat.rfind(')');
        if (end == std::string::npos) break;
        above = std::atoi(stat.c_str() + end + 4);
      }
    }
    std::ranges::sort(found);
    return found;
  }
  // Waits until the job reports its progress.
  static void wait_for_rounds(const Process& job) {
    const std::string total = "/" + std::to_string(kLong);
    for (int k = 0; k < 4000 && job.log().find(total) == std::string::npos; ++k)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_NE(job.log().find(total), std::string::npos) << job.log();
  }

  fs::path folder_;
};

class MpiTest : public LauncherTest {
 protected:
  void SetUp() override {
    if (kLauncher.empty()) GTEST_SKIP() << "the programs are built without MPI (GRADWIRE_MPI)";
    LauncherTest::SetUp();
  }
};

constexpr const char* kEf21 = "name = \"ef21\"\ncompressor = \"topk:k=3\"\nstep_size = 0.5";

TEST_F(MpiTest, WritesTheResultsOfOneProcess) {
  const std::vector<std::string> algorithms = {kEf21, "name = \"gd\"",
                                               "name = \"scaffold\"\nlocal_steps = 3\nlocal_step_size = 0.1",
                                               "name = \"fednl\"\ncompressor = \"randseqk:k=20\""};
  for (const std::string& algorithm : algorithms) {
    write(experiment(algorithm));
    ASSERT_EQ(run_gradwire(folder_, {"run", "run.toml", "--quiet", "--out", "alone", "--overwrite"}).code, 0);
    for (const unsigned ranks : {2u, 3u}) {
      Process job = start(ranks, {"run", "run.toml", "--threads", "2", "--out", "shared", "--overwrite"});
      EXPECT_EQ(job.wait(120), 0) << job.log();
      expect_results("alone", "shared");
    }
  }
}

TEST_F(MpiTest, ResumesWithAnotherNumberOfRanksAfterAKill) {
  write(experiment(kEf21, kLong, kManySamples));
  ASSERT_EQ(run_gradwire(folder_, {"run", "run.toml", "--quiet", "--out", "alone"}).code, 0);
  const std::vector<std::string> arguments = {
      "run", "run.toml", "--threads", "1", "--resume=auto", "--checkpoint-every", "0.01", "--out", "shared"};
  for (const unsigned ranks : {2u, 3u}) {
    Process job = start(ranks, arguments);
    wait_for_rounds(job);
    std::this_thread::sleep_for(std::chrono::milliseconds(300 + 137 * ranks));
    const std::vector<pid_t> pids = ranks_of(job.pid());
    ASSERT_EQ(pids.size(), ranks) << job.log();
    ::kill(pids[ranks - 1], SIGKILL);
    EXPECT_NE(job.wait(30), 0) << job.log();
    EXPECT_FALSE(fs::exists(folder_ / "shared"));
  }
  Process job = start(4, arguments);
  EXPECT_EQ(job.wait(240), 0) << job.log();
  expect_results("alone", "shared");
}

TEST_F(MpiTest, StopsAllRanksAfterTheSameRoundOnASignalToOne) {
  write(experiment(kEf21, kLong, kManySamples));
  ASSERT_EQ(run_gradwire(folder_, {"run", "run.toml", "--quiet", "--out", "alone"}).code, 0);
  Process job = start(3, {"run", "run.toml", "--threads", "1", "--out", "shared"});
  wait_for_rounds(job);
  const std::vector<pid_t> pids = ranks_of(job.pid());
  ASSERT_EQ(pids.size(), 3u) << job.log();
  ::kill(pids[1], SIGTERM);
  EXPECT_EQ(job.wait(30), 1) << job.log();
  EXPECT_NE(job.log().find("to continue, run the same command again"), std::string::npos) << job.log();
  // The run also resumes on one process.
  EXPECT_EQ(run_gradwire(folder_, {"run", "run.toml", "--quiet", "--resume", "--out", "shared"}).code, 0);
  expect_results("alone", "shared");
}

TEST_F(MpiTest, ReportsAnErrorOnceAndEndsAllRanksWithCode2) {
  write("[problem]\nkind = \"logistik\"\n[algorithm]\nname = \"gd\"\n", "typo.toml");
  write(experiment("name = \"ringmaster\""), "asynchronous.toml");
  write(experiment("name = \"ef21_plus\"\ncompressor = \"topk:k=3\"\nstep_size = 0.5"), "plus.toml");
  write(experiment(kEf21) + "[faults]\nlost_replies = 0.1\n", "faults.toml");
  write(experiment(kEf21), "good.toml");
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"typo.toml"}, "unknown kind"},
      {{"missing.toml"}, "missing.toml"},
      {{"asynchronous.toml"}, "several ranks cannot share this run: ringmaster"},
      {{"plus.toml"}, "several ranks cannot share this run: ef21_plus"},
      {{"faults.toml"}, "several ranks cannot share this run: [faults]"},
      {{"good.toml", "--resume"}, "--resume: there is no checkpoint"},
      {{"good.toml", "--transport", "encoded"}, "several ranks can share only a run in memory"}};
  for (const auto& [arguments, says] : mistakes) {
    std::vector<std::string> all = {"run"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    Process job = start(3, all);
    EXPECT_EQ(job.wait(30), 2) << job.log();
    const std::string log = job.log();
    std::size_t count = 0;
    for (const std::string& line : lines_of(log)) count += line.rfind("gradwire: ", 0) == 0;
    EXPECT_EQ(count, 1u) << log;
    EXPECT_NE(log.find(says), std::string::npos) << log;
  }
}

// This test also runs in builds without MPI.
TEST_F(LauncherTest, RejectsAnotherMpi) {
  write(experiment(kEf21));
  for (const std::string& launcher : launchers()) {
    if (!kLauncher.empty() && fs::canonical(launcher) == fs::canonical(kLauncher)) continue;
    Process job = start(2, {"run", "run.toml"}, launcher);
    EXPECT_EQ(job.wait(30), 2) << job.log();
    EXPECT_NE(
        job.log().find(kLauncher.empty() ? "built without MPI" : "start it with the mpirun of that MPI"),
        std::string::npos)
        << job.log();
    EXPECT_FALSE(fs::exists(folder_ / "results"));
  }
}

}  // namespace
}  // namespace gradwire
