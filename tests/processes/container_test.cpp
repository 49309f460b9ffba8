// Tests of programs as process 1 of a container: the kernel ignores all signals for which such a process has
// no handler. Tests of programs whose standard output cannot be written.
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/processes/process_fixture.h"

namespace gradwire {
namespace {

pid_t first_of_container = -1;

// Makes the program of this process become process 1 of a new process namespace. The process itself stays
// outside, forwards signals, and ends with the exit code of the program.
void enter_container() {
  if (::unshare(CLONE_NEWPID) != 0) ::_exit(126);
  first_of_container = ::fork();
  if (first_of_container == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    return;
  }
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM})
    std::signal(signal, [](int s) { ::kill(first_of_container, s); });
  int status = 0;
  while (::waitpid(first_of_container, &status, 0) != first_of_container) {
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

bool may_make_containers() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::unshare(CLONE_NEWPID) == 0 ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class ContainerTest : public ProcessTest {
 protected:
  void SetUp() override {
    if (!may_make_containers()) GTEST_SKIP() << "this user may not create process namespaces";
    write_config();
  }
  Process as_process_1(const std::string& name, const std::vector<std::string>& arguments) {
    return Process(name, arguments, folder.path() / (name + std::to_string(++started_) + ".log"),
                   enter_container);
  }
  static bool says(const Process& process, const std::string& text) {
    return eventually([&] { return process.log().find(text) != std::string::npos; });
  }

 private:
  int started_ = 0;
};

TEST_F(ContainerTest, EndsAClientOnEveryTerminatingSignal) {
  Process server = start_server();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    Process client = as_process_1("gradwire-client", {"--server", address, "--data", "synthetic#0/3"});
    ASSERT_TRUE(says(client, "joined")) << client.log();
    client.kill(signal);
    EXPECT_EQ(client.wait(), 128 + signal) << client.log();
  }
}

TEST_F(ContainerTest, EndsAClientWithoutAServerOnSigterm) {
  Process client = as_process_1("gradwire-client", {"--server", "127.0.0.1:1"});
  ASSERT_TRUE(says(client, "trying again")) << client.log();
  client.kill(SIGTERM);
  EXPECT_EQ(client.wait(), 128 + SIGTERM) << client.log();
}

TEST_F(ContainerTest, StopsServersAndRelaysOnSigtermAndEndsThemOnSighup) {
  for (const bool relay : {false, true}) {
    std::vector<std::string> arguments = {"--listen", "127.0.0.1:0", "--state", relay ? "relay" : "state"};
    if (relay) arguments.insert(arguments.begin(), {"relay", "--upstream", "127.0.0.1:1"});
    if (!relay) arguments.emplace_back("run.toml");
    for (const int signal : {SIGTERM, SIGHUP}) {
      Process server = as_process_1("gradwire-server", arguments);
      ASSERT_TRUE(says(server, "listening")) << server.log();
      server.kill(signal);
      EXPECT_EQ(server.wait(), signal == SIGTERM ? 0 : 128 + SIGHUP) << server.log();
    }
  }
}

TEST_F(ContainerTest, StopsARunAfterItsRoundOnSigtermAndEndsItOnSigquit) {
  for (const int signal : {SIGTERM, SIGQUIT}) {
    const std::string out = "out" + std::to_string(signal);
    Process run = as_process_1("gradwire", {"run", "run.toml", "--out", out, "--set", "run.rounds=400000000",
                                            "--set", "run.evaluate_every=100000000"});
    ASSERT_TRUE(says(run, "0/400000000")) << run.log();
    run.kill(signal);
    EXPECT_EQ(run.wait(), signal == SIGTERM ? 1 : 128 + SIGQUIT) << run.log();
    EXPECT_EQ(fs::exists(folder.path() / out / "model.bin"), signal == SIGTERM);
  }
}

// ---- standard output on a full disk ----

void fill_standard_output() { ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO); }

class FullOutputTest : public ProcessTest {
 protected:
  void expect_failure(const std::string& name, const std::vector<std::string>& arguments) {
    const fs::path log = folder.path() / "full.log";
    fs::remove(log);
    Process process(name, arguments, log, fill_standard_output);
    std::string command = name;
    for (const std::string& argument : arguments) command += " " + argument;
    EXPECT_EQ(process.wait(), 1) << command << ": " << process.log();
    EXPECT_NE(process.log().find("standard output cannot be written: No space left on device"),
              std::string::npos)
        << command << ": " << process.log();
  }
  void run_well(const std::string& name, const std::vector<std::string>& arguments) {
    Process process(name, arguments, folder.path() / "well.log");
    ASSERT_EQ(process.wait(), 0) << process.log();
  }
};

TEST_F(FullOutputTest, FailsEveryCommandOfGradwire) {
  write_config();
  std::ofstream(folder.path() / "sweep.toml") << kConfig << "[sweep]\nseed = [1, 2]\n";
  run_well("gradwire", {"run", "run.toml", "--quiet", "--out", "out"});
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"--version"},
                                             {"list"},
                                             {"list", "keys"},
                                             {"data", "list"},
                                             {"run", "--help"},
                                             {"run", "run.toml", "--out", "out"},
                                             {"run", "run.toml", "--out", "out", "--json"},
                                             {"sweep", "sweep.toml", "--dry-run"},
                                             {"plot", "out"},
                                             {"evaluate", "out/model.bin", "run.toml"},
                                             {"evaluate", "out/model.bin", "run.toml", "--json"},
                                             {"export", "out/model.bin", "model.npy"},
                                             {"bench", "--help"}})
    expect_failure("gradwire", arguments);
}

TEST_F(FullOutputTest, FailsEveryCommandOfServerAndClient) {
  write_config();
  for (const char* name : {"gradwire-server", "gradwire-client"})
    for (const char* option : {"--help", "--version"}) expect_failure(name, {option});
  run_well("gradwire-server", {"init", "identity", "--host", "localhost"});
  expect_failure("gradwire-server", {"enroll", "site", "--identity", "identity"});
  expect_failure("gradwire-server", {"clients", "--identity", "identity"});
  expect_failure("gradwire-server", {"certify", "site", "--identity", "identity", "--out", "site"});
  Process server = start_server();
  expect_failure("gradwire-server", {"status", "state"});
  expect_failure("gradwire-server", {"status", "state", "--json"});
}

TEST_F(FullOutputTest, RemovesAnIdentityWhoseTokensAreLost) {
  expect_failure("gradwire-server", {"init", "identity", "--clients", "3", "--host", "localhost"});
  EXPECT_FALSE(fs::exists(folder.path() / "identity" / "ca.key"));
  run_well("gradwire-server", {"init", "identity", "--clients", "3", "--host", "localhost"});
}

}  // namespace
}  // namespace gradwire
