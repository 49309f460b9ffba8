// Tests that a run whose servers and clients are killed at random times gives the bits of an undisturbed run.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <random>
#include <sys/resource.h>

#include "tests/processes/process_fixture.h"
#include "tests/storage/snapshot_version.h"
#include "tests/support/sanitized.h"
#include "tests/support/test_seed.h"

namespace gradwire {
namespace {

// Returns the number of kills. Set GRADWIRE_KILLS=200 for a long test.
int kills() {
  const char* text = std::getenv("GRADWIRE_KILLS");
  return text != nullptr ? std::atoi(text) : 4;
}

// The number of rounds in which one process is killed, after a random number of them.
constexpr int kRoundsPerKill = scaled(1600);
constexpr int kRoundsPerRecord = 10;

std::string config_of(const std::string& algorithm, int rounds) {
  std::string text = kConfig;
  const std::size_t begin = text.find("[algorithm]"), end = text.find("[server]");
  return text.replace(begin, end - begin,
                      "[algorithm]\n" + algorithm + "[run]\nevaluate_every = " +
                          std::to_string(kRoundsPerRecord) + "\nrounds = " + std::to_string(rounds) + "\n");
}

class RestartTest : public ProcessTest {
 protected:
  std::string more_of_server;  // further lines of [server]
  bool is_asynchronous = false;

  // Kills a random process `count` times, each after a random number of rounds and a random time. Rounds and
  // not seconds decide, because the run is faster on some machines than on others.
  void run_with_kills(const std::string& algorithm, bool servers, bool clients_too, int count) {
    // A step of an asynchronous algorithm uses one reply, so more of them fit between two kills.
    const int steps = kRoundsPerKill * (count + 1) * (is_asynchronous ? 8 : 1);
    std::string config = config_of(algorithm, steps) + more_of_server;
    if (is_asynchronous) config.erase(config.find("weights"), std::string("weights = \"samples\"\n").size());
    write_config(config);
    std::mt19937 random(test_seed());
    Process server = start_server();
    std::vector<Process> clients = start_clients(address);
    ASSERT_TRUE(eventually([&] { return records() > 2; })) << server.log();
    const int steps_per_kill = steps / (count + 1);
    int killed = 0;
    for (int k = 0; k < count; ++k) {
      const int target = k * steps_per_kill + static_cast<int>(random() % std::uint32_t(steps_per_kill));
      ASSERT_TRUE(eventually([&] { return last_record() >= target; })) << server.log();
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 2'000));
      const std::uint32_t victim = static_cast<std::uint32_t>(random()) % kClients;
      if (servers && (!clients_too || random() % 2 == 0)) {
        server.kill(SIGKILL);
        if (server.wait() == 0) break;
        ++killed;
        server = restart_server();
      } else {
        clients[victim].kill(SIGKILL);
        if (clients[victim].wait() == 0) break;
        ++killed;
        clients[victim] = start_client(victim, address);
      }
    }
    EXPECT_GT(killed, count / 2) << "the run ended too soon";
    expect_all_end_well(server, clients, 120 + count);  // the disk may be slow, and many kills take long
    if (is_asynchronous) {
      expect_all_steps(steps);
    } else {
      expect_same_as_simulated();
    }
  }
  // Expects the full number of steps. The bits of an asynchronous run depend on the order of replies.
  void expect_all_steps(int steps) const {
    const auto rows = lines_of(read_file(state() / "metrics.csv"));
    ASSERT_GT(rows.size(), 2u);
    const auto round = [](const std::string& row) { return std::stoi(row); };
    const auto loss = [](const std::string& row) { return std::stod(row.substr(row.find(',') + 1)); };
    for (std::size_t k = 2; k < rows.size(); ++k) EXPECT_GT(round(rows[k]), round(rows[k - 1]));
    EXPECT_EQ(round(rows.back()), steps);
    // The loss is not always lower, because the client that replies most has the most weight.
    EXPECT_LT(loss(rows.back()), 2 * loss(rows[1]));
  }
};

TEST_F(RestartTest, ServersKeepTheBitsOfEf21) {
  run_with_kills("name = \"ef21\"\ncompressor = \"topk:k=2\"\nstep_size = 0.3\n", true, false, kills());
}
TEST_F(RestartTest, ServersAndClientsKeepTheBitsOfMarina) {
  run_with_kills("name = \"marina\"\ncompressor = \"randk:k=2\"\nstep_size = 0.1\n", true, true, kills());
}
TEST_F(RestartTest, ServersAndClientsKeepTheBitsOfDiana) {
  run_with_kills("name = \"diana\"\ncompressor = \"randk:k=2\"\nstep_size = 0.1\n", true, true, kills());
}
TEST_F(RestartTest, ServersAndClientsKeepTheBitsOfScaffold) {
  run_with_kills("name = \"scaffold\"\nlocal_steps = 3\nlocal_step_size = 0.1\n", true, true, kills());
}
TEST_F(RestartTest, ServersAndClientsKeepTheBitsOfFedAvg) {
  run_with_kills("name = \"fedavg\"\nbatch = 4\nlocal_steps = 3\nlocal_step_size = 0.1\n", true, true,
                 kills());
}
TEST_F(RestartTest, ServersAndClientsLoseNoStepOfRingmaster) {
  is_asynchronous = true;
  run_with_kills("name = \"ringmaster\"\ndelay_threshold = 10\nstep_size = 0.05\nbatch = 4\n", true, true,
                 kills());
}
TEST_F(RestartTest, ServersAndClientsLoseNoStepOfFedBuff) {
  is_asynchronous = true;
  run_with_kills("name = \"fedbuff\"\nbuffer = 4\nbatch = 4\nlocal_steps = 2\nlocal_step_size = 0.05\n", true,
                 true, kills());
}
TEST_F(RestartTest, ServersAndClientsLoseNoStepOfRennala) {
  is_asynchronous = true;
  run_with_kills("name = \"rennala\"\ngradients = 4\nstep_size = 0.05\nbatch = 4\n", true, true, kills());
}
TEST_F(RestartTest, ServersAndClientsLoseNoStepOfRingleader) {
  is_asynchronous = true;
  run_with_kills("name = \"ringleader\"\nbatch = 4\nstep_size = 0.05\n", true, true, kills());
}
TEST_F(RestartTest, ServersAndClientsLoseNoStepOfMindFlayer) {
  is_asynchronous = true;
  run_with_kills("name = \"mindflayer\"\nallotted_seconds = 0.05\nstep_size = 0.05\nbatch = 4\n", true, true,
                 kills());
}
// Only the client itself can restore its state.
TEST_F(RestartTest, ClientsWithStateFoldersKeepTheBitsOfEf14) {
  clients_remember = true;
  run_with_kills("name = \"ef14\"\ncompressor = \"topk:k=2\"\nstep_size = 0.1\n", true, true, kills());
}
TEST_F(RestartTest, ClientsWithStateFoldersKeepTheBitsOfDashaMvr) {
  clients_remember = true;
  more_of_server = "durability = \"process\"\n";  // the default for ef14 is "power"
  run_with_kills("name = \"dasha_mvr\"\ncompressor = \"randk:k=3\"\nstep_size = 0.1\nbatch = 4\n", true, true,
                 kills());
}

TEST_F(ProcessTest, RejectsASecondServerOnOneFolder) {
  write_config();
  Process server = start_server();
  expect_refusal("gradwire-server", {"run.toml", "--listen", "127.0.0.1:0", "--state", "state"}, 1,
                 "is in use by process ");
}

TEST_F(ProcessTest, ShowsTheStatusDuringARunAndAfterwards) {
  write_config();
  const auto status = [&] {
    Process show("gradwire-server", {"status", "state"}, folder.path() / "status.log");
    EXPECT_EQ(show.wait(), 0);
    const std::string text = show.log();
    fs::remove(folder.path() / "status.log");
    return text;
  };
  const auto says = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  };
  {
    Process server = start_server({"--set", "run.rounds=1000000"});
    says(status(), "waiting for its clients");
    std::vector<Process> clients = start_clients(address);
    ASSERT_TRUE(eventually([&] { return records() > 20; })) << server.log();
    const std::string text = status();
    says(text, "run         processes: ef21, 3 clients\n");
    says(text, "listening on " + address + "\n");
    says(text, " of 1000000 committed (");
    says(text, "evaluation  loss 0.");
  }
  says(status(), "not running; to resume, start it with the same arguments\n");
  expect_refusal("gradwire-server", {"status", "."}, 1, "holds no run of gradwire-server");
}

TEST_F(ProcessTest, RejectsAFolderOfAnotherExperiment) {
  write_config();
  {
    Process server = start_server({"--set", "run.rounds=1000000"});
    std::vector<Process> clients = start_clients(address);
    ASSERT_TRUE(eventually([&] { return records() > 20; })) << server.log();
  }
  expect_refusal(
      "gradwire-server",
      {"run.toml", "--listen", "127.0.0.1:0", "--state", "state", "--set", "algorithm.step_size=0.2"}, 2,
      "holds a run of another experiment: algorithm.step_size is 0.2 now and was ");
}

TEST_F(ProcessTest, RejectsAFolderOfAnotherVersionAndLeavesItUnchanged) {
  write_config();
  {
    Process server = start_server({"--set", "run.rounds=1000000"});
    std::vector<Process> clients = start_clients(address);
    ASSERT_TRUE(eventually([&] { return records() > 20; })) << server.log();
  }
  const auto names = [this] {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(state())) all.push_back(entry.path().filename());
    std::sort(all.begin(), all.end());
    return all;
  };
  for (const std::string& name : names())
    if (name.starts_with("ckpt-")) {
      std::string snapshot = read_file(state() / name);
      make_of_version(snapshot, '1');
      std::ofstream(state() / name, std::ios::binary) << snapshot;
    }
  const std::vector<std::string> before = names();
  const std::string advice =
      "is from another version of gradwire; use that version, or choose another folder";
  expect_refusal("gradwire-server", {"run.toml", "--listen", "127.0.0.1:0", "--state", "state"}, 2, advice);
  expect_refusal("gradwire-server", {"status", "state"}, 1, advice);
  EXPECT_EQ(names(), before);
}

TEST_F(ProcessTest, KeepsAFinishedRunUnlessTheUserRestartsIt) {
  write_config();
  for (const bool restart : {false, true}) {
    Process server = start_server(restart ? std::vector<std::string>{"--fresh"} : std::vector<std::string>{});
    std::vector<Process> clients = start_clients(address);
    expect_all_end_well(server, clients);
    expect_same_as_simulated();
    EXPECT_EQ(fs::exists(state() / "before/model.bin"), restart);
    EXPECT_EQ(fs::exists(state() / "before/journal"), restart);
    Process again("gradwire-server", {"run.toml", "--listen", "127.0.0.1:0", "--state", "state"},
                  folder.path() / "again.log");
    EXPECT_EQ(again.wait(), 0);
    EXPECT_NE(again.log().find("is over; --fresh runs it again"), std::string::npos) << again.log();
  }
}

TEST_F(ProcessTest, EndsOnAFullDiskWithAClearErrorAndLosesNoRound) {
  write_config();
  Process server = start_server({"--set", "run.rounds=3000"});
  std::vector<Process> clients = start_clients(address);
  ASSERT_TRUE(eventually([&] { return records() > 20; })) << server.log();
  const rlimit no_more{4096, RLIM_INFINITY};
  ASSERT_EQ(::prlimit(server.pid(), RLIMIT_FSIZE, &no_more, nullptr), 0);
  EXPECT_EQ(server.wait(), 1) << server.log();
  EXPECT_NE(server.log().find("cannot be written"), std::string::npos) << server.log();
  server = restart_server({"--set", "run.rounds=3000"});
  expect_all_end_well(server, clients);
  expect_same_as_simulated({"run.rounds=3000"});
}

std::vector<fs::path> files_of_kind(const fs::path& folder, const std::string& kind) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with(kind)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}
void damage(const fs::path& file) {
  std::fstream(file, std::ios::in | std::ios::out).seekp(100).put('?').put('!');
}

// Damages the only snapshot, config.toml and the log. This costs time, and the server reports it.
TEST_F(ProcessTest, KeepsTheBitsDespiteDamageEarlyInARun) {
  write_config();
  const std::string rounds = "run.rounds=" + std::to_string(2 * kRoundsPerKill);
  {
    Process server = start_server({"--set", rounds});
    std::vector<Process> clients = start_clients(address);
    const auto restart_with = [&](const std::string& said) {
      const std::size_t before = records();
      ASSERT_TRUE(eventually([&] { return records() > before + 30; })) << server.log();
      server.kill(SIGKILL);
      server.wait();
      if (said == "config.toml") fs::resize_file(state() / "config.toml", 0);
      if (said == "ckpt-000000000000.bin cannot be used") damage(state() / "ckpt-000000000000.bin");
      if (said == "metrics.csv has round")
        for (const fs::path& log : files_of_kind(state(), "log-")) fs::resize_file(log, 0);
      server = restart_server({"--set", rounds});
      EXPECT_TRUE(eventually([&] { return server.log().find(said) != std::string::npos; })) << server.log();
    };
    restart_with("ckpt-000000000000.bin cannot be used");
    restart_with("config.toml");
    EXPECT_TRUE(
        eventually([&] { return read_file(state() / "config.toml").find("ef21") != std::string::npos; }));
    restart_with("metrics.csv has round");
    EXPECT_NE(server.log().find("is empty"), std::string::npos) << server.log();
    expect_all_end_well(server, clients);
  }
  expect_same_as_simulated({rounds});
}

TEST_F(ProcessTest, DoesNotWaitForClientsOfAFinishedRunWithADamagedSnapshot) {
  write_config();
  Process server = start_server();
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
  damage(files_of_kind(state(), "ckpt-").back());
  Process again("gradwire-server", {"run.toml", "--listen", "127.0.0.1:0", "--state", "state"},
                folder.path() / "again.log");
  EXPECT_EQ(again.wait(), 0);
  EXPECT_NE(again.log().find("cannot be used: its"), std::string::npos) << again.log();
  EXPECT_NE(again.log().find("is over; --fresh runs it again"), std::string::npos) << again.log();
}

TEST_F(ProcessTest, KeepsForeignFilesInARestartFromTheBeginning) {
  write_config();
  fs::create_directories(state());
  const std::vector<std::string> others = {"log-2024.bin", "ckpt-best.bin", "ckpt-000000000000.bin.mine"};
  for (const std::string& name : others) std::ofstream(state() / name) << "foreign";
  for (const bool restart : {false, true}) {
    Process server = start_server(restart ? std::vector<std::string>{"--fresh"} : std::vector<std::string>{});
    std::vector<Process> clients = start_clients(address);
    expect_all_end_well(server, clients);
    for (const std::string& name : others) EXPECT_EQ(read_file(state() / name), "foreign") << name;
  }
}

TEST_F(ProcessTest, WaitsForClientsAfterARestartAsLongAsAtTheStart) {
  write_config();
  const std::vector<std::string> more = {"--set", "run.rounds=400", "--set", "server.deadline_ms=50"};
  {
    Process server = start_server(more);
    std::vector<Process> clients = start_clients(address);
    ASSERT_TRUE(eventually([&] { return records() > 20; })) << server.log();
    server.kill(SIGKILL);
    server.wait();
  }
  std::vector<std::string> hasty = more;
  hasty.insert(hasty.end(), {"--join-deadline-ms", "700"});
  Process gives_up = start_server(hasty);
  EXPECT_EQ(gives_up.wait(), 1);
  EXPECT_NE(gives_up.log().find("start the missing clients"), std::string::npos) << gives_up.log();
  Process server = start_server(more);
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
  expect_model_as_simulated({"run.rounds=400"});
}

TEST_F(ProcessTest, SlowServesAgainWithinTwoSecondsAfterAKill) {
  write_config();
  const std::vector<std::string> more = {"--set", "run.rounds=1000000"};
  Process server = start_server(more);
  std::vector<Process> clients = start_clients(address);
  ASSERT_TRUE(eventually([&] { return records() > 1000; })) << server.log();
  server.kill(SIGKILL);
  server.wait();
  const auto started = std::chrono::steady_clock::now();
  server = restart_server(more);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  EXPECT_LT(took.count(), 2);
}

TEST_F(ProcessTest, LosesNoRoundToADamagedSnapshot) {
  write_config();
  const std::string rounds = "run.rounds=" + std::to_string(4 * kRoundsPerKill);
  {
    Process server = start_server({"--set", rounds});
    std::vector<Process> clients = start_clients(address);
    ASSERT_TRUE(eventually([&] { return records() > 100; })) << server.log();
    server.kill(SIGTERM);  // writes a second snapshot
    EXPECT_EQ(server.wait(), 0);
    std::string newest;
    for (const auto& entry : fs::directory_iterator(state()))
      if (entry.path().filename().string().starts_with("ckpt-"))
        newest = std::max(newest, entry.path().string());
    std::fstream(newest, std::ios::in | std::ios::out).seekp(100).put('?').put('!');
    server = restart_server({"--set", rounds});
    expect_all_end_well(server, clients);
    EXPECT_NE(server.log().find("cannot be used: its"), std::string::npos) << server.log();
  }
  expect_same_as_simulated({rounds});
}

}  // namespace
}  // namespace gradwire
