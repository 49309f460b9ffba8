// A fixture: a server and its clients as processes, in a folder of the test.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "report/columns.h"
#include "simulation/simulate.h"
#include "storage/model_file.h"
#include "tests/support/data_files.h"
#include "tests/support/process.h"

namespace gradwire {

namespace fs = std::filesystem;

inline constexpr std::uint32_t kClients = 3;

// Limits this process to `count` descriptors. Call it in the child of a fork.
template <rlim_t count>
void allow_descriptors() {
  const rlimit limit{count, count};
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

inline constexpr const char* kConfig = R"(
name = "processes"
[problem]
kind = "logistic"
data = "synthetic"
samples = 60
dim = 11
regularizer = "l2"
lambda = 0.01
[clients]
count = 3
partition = "dirichlet"
dirichlet_alpha = 1.0
weights = "samples"
[algorithm]
name = "ef21"
compressor = "topk:k=2"
step_size = 0.3
[run]
rounds = 200
[server]
deadline_ms = 500
)";

class ProcessTest : public ::testing::Test {
 protected:
  void write_config(const std::string& text = kConfig) { std::ofstream(folder.path() / "run.toml") << text; }
  fs::path state() const { return folder.path() / "state"; }

  // mbedTLS 2.28, which the clients of boards may have, has no TLS 1.3.
  static bool needs_old_tls() { return std::getenv("GRADWIRE_EDGE") != nullptr; }
  std::vector<std::string> server_arguments(const std::string& listen,
                                            const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"run.toml", "--listen", listen, "--state", "state"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (needs_old_tls() && std::ranges::count(more, "--identity") > 0)
      arguments.insert(arguments.end(), {"--set", "server.tls_min=TLS1.2"});
    return arguments;
  }

  Process start_server(const std::vector<std::string>& more = {}) {
    fs::remove(state() / "address");
    Process server("gradwire-server", server_arguments("127.0.0.1:0", more), folder.path() / "server.log",
                   server_is_denied);
    EXPECT_TRUE(eventually([&] { return fs::exists(state() / "address"); })) << server.log();
    std::ifstream(state() / "address") >> address;
    return server;
  }
  // Starts the server again at its old address. Sets `took_ms` to the time until it served again. If the run
  // is over and each client knows, the server ends without listening.
  Process restart_server(const std::vector<std::string>& more = {}, double* took_ms = nullptr) {
    const auto started = std::chrono::steady_clock::now();
    fs::remove(state() / "address");
    Process server("gradwire-server", server_arguments(address, more), folder.path() / "server.log");
    EXPECT_TRUE(eventually([&] { return fs::exists(state() / "address") || server.ended(); }))
        << server.log();
    if (took_ms != nullptr)
      *took_ms =
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count();
    return server;
  }
  Process start_client(std::uint32_t part, const std::string& where,
                       const std::string& source = "synthetic") {
    const std::string data = source + "#" + std::to_string(part) + "/" + std::to_string(client_count);
    std::vector<std::string> arguments = {"--server", where, "--data", data};
    const std::string own = "client" + std::to_string(part);
    if (clients_remember) arguments.insert(arguments.end(), {"--state", own});
    return Process("gradwire-client", arguments, folder.path() / (own + ".log"));
  }
  std::vector<Process> start_clients(const std::string& where) {
    std::vector<Process> clients;
    for (std::uint32_t part = 0; part < client_count; ++part) clients.push_back(start_client(part, where));
    return clients;
  }
  std::size_t records() const { return lines_of(read_file(state() / "metrics.csv")).size(); }
  // Returns the round of the last record. An asynchronous server leaves out records while it evaluates.
  int last_record() const {
    const auto rows = lines_of(read_file(state() / "metrics.csv"));
    return rows.size() > 1 ? std::atoi(rows.back().c_str()) : 0;
  }

  // Expects the model and the metrics of the simulation, bit for bit.
  void expect_same_as_simulated(const std::vector<std::string>& overrides = {}) {
    Prepared prepared = prepare(load_experiment(folder.path() / "run.toml", overrides));
    prepared.experiment.evaluation.grad_norm = grad_norm_rows(prepared.experiment, /*over_network=*/true);
    const std::atomic<bool> never = false;
    std::string metrics = metrics_header() + "\n";
    RunObserver observer;
    observer.on_record = [&](const RoundRecord& record) { metrics += metrics_line(record) + "\n"; };
    const RunResult simulated = simulate(prepared, /*encoded=*/true, 1, observer, never);
    EXPECT_EQ(read_model(state() / "model.bin"), simulated.model);
    EXPECT_EQ(without_seconds(read_file(state() / "metrics.csv")), without_seconds(metrics));
  }
  // Expects only the model of the simulation. If messages were lost, the server counts more bytes.
  void expect_model_as_simulated(const std::vector<std::string>& overrides) {
    const std::atomic<bool> never = false;
    const Prepared prepared = prepare(parse_experiment(kConfig, "run.toml", overrides));
    EXPECT_EQ(read_model(state() / "model.bin"), simulate(prepared, false, 1, {}, never).model);
  }
  void expect_all_end_well(Process& server, std::vector<Process>& clients, int seconds = 30) {
    EXPECT_EQ(server.wait(seconds), 0) << server.log();
    for (Process& client : clients) EXPECT_EQ(client.wait(), 0) << client.log();
  }
  // Starts a program that must fail at once with this exit code and message.
  void expect_refusal(const std::string& name, const std::vector<std::string>& arguments, int code,
                      const std::string& message) {
    const fs::path log = folder.path() / "refusal.log";
    fs::remove(log);
    Process process(name, arguments, log);
    EXPECT_EQ(process.wait(), code);
    const std::string text = process.log();
    EXPECT_NE(text.find(message), std::string::npos) << text;
    EXPECT_EQ(lines_of(text).size(), 1u) << text;
  }

  TemporaryFolder folder;
  std::string address;
  bool clients_remember = false;  // each client has a state folder
  std::uint32_t client_count = kClients;
  void (*server_is_denied)() = nullptr;  // called in the process of the server before it begins
};

}  // namespace gradwire
