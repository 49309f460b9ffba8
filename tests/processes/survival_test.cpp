// Tests of real servers and clients that are stopped, lose connections, or have no descriptors or no writable
// folder.
#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <linux/capability.h>
#include <random>
#include <sys/resource.h>

#include "tests/processes/process_fixture.h"
#include "tests/processes/relay.h"
#include "tests/support/test_seed.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kMany = 10;

std::string config_with(const std::string& clients, const std::string& algorithm, const std::string& run,
                        const std::string& server) {
  return "name = \"survival\"\n[problem]\nkind = \"logistic\"\ndata = \"synthetic\"\nsamples = 200\ndim = "
         "11\n"
         "regularizer = \"l2\"\nlambda = 0.01\n[clients]\n" +
         clients + "[algorithm]\n" + algorithm + "[run]\n" + run + "[server]\n" + server;
}

constexpr const char* kTop2 = "name = \"ef21\"\ncompressor = \"topk:k=2\"\nstep_size = 0.3\n";

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class SurvivalTest : public ProcessTest {
 protected:
  bool server_said(const std::string& part) const {
    return read_file(folder.path() / "server.log").find(part) != std::string::npos;
  }
  std::string server_log() const { return read_file(folder.path() / "server.log"); }
};

// ---- clients that are stopped ----

class StoppedClients : public SurvivalTest {
 protected:
  static constexpr std::uint32_t kStopped = 3;  // number of stopped clients, out of ten

  void start(const std::string& config) {
    client_count = kMany;
    write_config(config);
    server.emplace(start_server());
    clients = start_clients(address);
  }
  void signal_stopped(int signal) {
    for (std::uint32_t c = 0; c < kStopped; ++c) clients[c].kill(signal);
  }

  std::optional<Process> server;
  std::vector<Process> clients;
};

TEST_F(StoppedClients, AreNotWaitedForByASmallerQuorum) {
  start(config_with("count = 10\n", kTop2, "rounds = 1000\nevaluate_every = 20\n",
                    "quorum = 0.7\ndeadline_ms = 60000\n"));
  ASSERT_TRUE(eventually([&] { return records() > 2; })) << server_log();
  signal_stopped(SIGSTOP);
  // The server does all rounds without them; only the shutdown waits for them.
  ASSERT_TRUE(eventually([&] { return server_said("clients to confirm the shutdown, first client "); }))
      << server_log();
  EXPECT_TRUE(fs::exists(state() / "model.bin")) << "the results come before the shutdown";
  EXPECT_FALSE(server_said("gives up in")) << server_log();
  signal_stopped(SIGCONT);
  expect_all_end_well(*server, clients);
}

TEST_F(StoppedClients, ChangeNoBitOfCodedGradientDescentIfOthersHoldTheirData) {
  start(config_with("count = 10\nreplication = 5\nplacement = \"groups\"\n",
                    "name = \"coded_gd\"\nstep_size = 0.5\n", "rounds = 1000\nevaluate_every = 20\n",
                    "quorum = 0.7\ndeadline_ms = 60000\n"));
  ASSERT_TRUE(eventually([&] { return records() > 2; })) << server_log();
  signal_stopped(SIGSTOP);
  ASSERT_TRUE(eventually([&] { return server_said("clients to confirm the shutdown, first client "); }))
      << server_log();
  signal_stopped(SIGCONT);
  expect_all_end_well(*server, clients);
  const std::vector<std::string> all = {"server.quorum=1"};
  const std::atomic<bool> never = false;
  EXPECT_EQ(read_model(state() / "model.bin"),
            simulate(prepare(load_experiment(folder.path() / "run.toml", all)), false, 1, {}, never).model);
}

TEST_F(StoppedClients, AreNotWaitedForWithOverSelection) {
  start(config_with("count = 10\nparticipation = 0.5\n",
                    "name = \"fedavg\"\nlocal_steps = 2\nlocal_step_size = 0.1\n",
                    "rounds = 3000\nevaluate_every = 0\n", "over_selection = 1.0\ndeadline_ms = 60000\n"));
  ASSERT_TRUE(eventually([&] { return server_said("the run begins"); })) << server_log();
  signal_stopped(SIGSTOP);
  EXPECT_FALSE(fs::exists(state() / "model.bin")) << "the run ended too soon";
  ASSERT_TRUE(eventually([&] { return fs::exists(state() / "model.bin"); })) << server_log();
  EXPECT_FALSE(server_said("gives up in")) << server_log();
  signal_stopped(SIGCONT);
  expect_all_end_well(*server, clients);
}

TEST_F(StoppedClients, AreNamedAndEndTheRunInBoundedTimeIfTheyAreNeeded) {
  start(config_with("count = 10\n", kTop2, "rounds = 1000000\n", "quorum = 0.8\ndeadline_ms = 100\n"));
  ASSERT_TRUE(eventually([&] { return records() > 2; })) << server_log();
  signal_stopped(SIGSTOP);
  EXPECT_EQ(server->wait(), 1) << server_log();
  EXPECT_TRUE(server_said("warning: round ")) << server_log();
  EXPECT_TRUE(server_said(" for 3 clients: 0 '")) << server_log();
  EXPECT_TRUE(server_said("' (connected, no reply yet); gives up in ")) << server_log();
  EXPECT_TRUE(server_said("waiting for clients 0, 1, 2 after 10 deadlines of 0.1")) << server_log();
  EXPECT_TRUE(server_said("start the missing clients, or lower server.quorum")) << server_log();
  // Nothing is lost: the same run continues once the clients run again.
  signal_stopped(SIGCONT);
  const std::size_t before = records();
  *server = restart_server({"--set", "server.deadline_ms=1000"});
  EXPECT_TRUE(eventually([&] { return records() > before + 20; })) << server_log();
}

TEST_F(StoppedClients, DelayAStoppingServerByAtMostOneDeadline) {
  const std::vector<std::string> rounds = {"--set", "run.rounds=1000"};
  write_config();
  server.emplace(start_server(rounds));
  clients = start_clients(address);
  ASSERT_TRUE(eventually([&] { return records() > 2; })) << server_log();
  clients[1].kill(SIGSTOP);
  server->kill(SIGTERM);
  EXPECT_EQ(server->wait(), 0) << server_log();
  clients[1].kill(SIGCONT);
  EXPECT_TRUE(server_said("waiting for clients 1; stopping without them")) << server_log();
  *server = restart_server(rounds);
  expect_all_end_well(*server, clients);
  expect_same_as_simulated({"run.rounds=1000"});
}

// ---- connections that are reset ----

// Returns the number of resets. Set GRADWIRE_RESETS=300 for a long test.
int resets() {
  const char* text = std::getenv("GRADWIRE_RESETS");
  return text != nullptr ? std::atoi(text) : 10;
}

TEST_F(SurvivalTest, ResetsOfATenthOfTheConnectionsAtRandomMomentsChangeNoBit) {
  constexpr int kRoundsPerReset = 300;
  const int wanted = resets();
  client_count = kMany;
  write_config(config_with("count = 10\nweights = \"samples\"\n", kTop2,
                           "evaluate_every = 50\nrounds = " + std::to_string(kRoundsPerReset * wanted) + "\n",
                           "deadline_ms = 500\n"));
  Process server = start_server();
  Relay relay(address, 0);
  const auto started = std::chrono::steady_clock::now();
  std::vector<Process> clients = start_clients(relay.address());
  ASSERT_TRUE(eventually([&] { return records() > 2; })) << server_log();
  std::mt19937 random(test_seed());
  for (int k = 0; k < wanted; ++k) {
    const int round = kRoundsPerReset * k * 3 / 4 + static_cast<int>(random() % (kRoundsPerReset / 2));
    ASSERT_TRUE(eventually([&] { return last_record() >= round; })) << server_log();
    const auto reset = [&] {
      relay.reset(0.1);
      return relay.resets() > k;
    };
    ASSERT_TRUE(eventually(reset)) << "the run ended too soon";
  }
  if (std::getenv("GRADWIRE_RESETS") != nullptr) {
    while (!fs::exists(state() / "model.bin")) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::cout << relay.resets() << " resets in " << kRoundsPerReset * wanted << " rounds and "
              << seconds_since(started) << " s\n";
  }
  expect_all_end_well(server, clients);
  expect_same_as_simulated();
}

// ---- a server without descriptors ----

TEST_F(SurvivalTest, ReportsMissingDescriptorsAndAcceptsClientsLater) {
  write_config(config_with("count = 3\n", kTop2, "rounds = 1000000\nevaluate_every = 20\n",
                           "quorum = 0.6\ndeadline_ms = 500\n"));
  Process server = start_server();
  std::vector<Process> clients = start_clients(address);
  ASSERT_TRUE(eventually([&] { return records() > 2; })) << server_log();
  clients[2].kill(SIGKILL);
  ASSERT_TRUE(eventually([&] { return server_said(" disconnected: "); })) << server_log();
  rlimit before{};
  ASSERT_EQ(::prlimit(server.pid(), RLIMIT_NOFILE, nullptr, &before), 0);
  const rlimit none_left{3, before.rlim_max};  // open descriptors stay open
  ASSERT_EQ(::prlimit(server.pid(), RLIMIT_NOFILE, &none_left, nullptr), 0);
  clients[2] = start_client(2, address);
  ASSERT_TRUE(eventually([&] { return server_said("no file descriptors are left"); })) << server_log();
  EXPECT_TRUE(server_said("raise 'ulimit -n'")) << server_log();
  const std::size_t rows = records();
  EXPECT_TRUE(eventually([&] { return records() > rows + 20; })) << "two clients continue\n" << server_log();
  ASSERT_EQ(::prlimit(server.pid(), RLIMIT_NOFILE, &before, nullptr), 0);
  EXPECT_TRUE(eventually([&] { return server_said("client 2 joined"); })) << server_log();
  server.kill(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server_log();
}

// ---- a state folder that cannot be written ----

// Drops the capabilities with which root ignores permissions.
void obey_permissions() {
  ::prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0);
  ::prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH, 0, 0, 0);
}

class UnwritableFolder : public SurvivalTest {
 protected:
  UnwritableFolder() { server_is_denied = obey_permissions; }
  ~UnwritableFolder() override { make_writable(true); }
  void make_writable(bool writable) const {
    std::error_code ignored;
    fs::permissions(state(), writable ? fs::perms(0755) : fs::perms(0555), ignored);
  }
};

TEST_F(UnwritableFolder, IsNamedInOneErrorLineAtTheStart) {
  write_config();
  fs::create_directory(state());
  make_writable(false);
  Process server("gradwire-server", {"run.toml", "--listen", "127.0.0.1:0", "--state", "state"},
                 folder.path() / "server.log", obey_permissions);
  EXPECT_EQ(server.wait(), 2);
  EXPECT_EQ(lines_of(server_log()).size(), 1u) << server_log();
  EXPECT_TRUE(server_said("state/lock: cannot be created: Permission denied; make it writable for this user"))
      << server_log();
  make_writable(true);
}

TEST_F(UnwritableFolder, EndsTheServerWithAClearErrorAndLosesNoRound) {
  write_config();
  const std::vector<std::string> more = {"--set", "run.rounds=6000", "--set", "run.evaluate_every=50"};
  Process server = start_server(more);
  std::vector<Process> clients = start_clients(address);
  ASSERT_TRUE(eventually([&] { return records() > 10; })) << server_log();
  make_writable(false);
  EXPECT_EQ(server.wait(), 1) << server_log();  // when it needs a new file, after a few thousand rounds
  EXPECT_TRUE(
      server_said("cannot be written: Permission denied; make it writable for this user, then start again"))
      << server_log();
  make_writable(true);
  server = restart_server(more);
  expect_all_end_well(server, clients);
  expect_same_as_simulated({"run.rounds=6000", "run.evaluate_every=50"});
}

}  // namespace
}  // namespace gradwire
