// The limits of the small static client of boards (docs/edge.md). tools/test_edge runs these tests with the
// client in $GRADWIRE_CLIENT, for the board in $GRADWIRE_EDGE. $GRADWIRE_EDGE_TLS is the client's
// GRADWIRE_TLS.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <elf.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include "tests/processes/identity_fixture.h"

namespace gradwire {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}
std::string board() { return variable("GRADWIRE_EDGE"); }
bool has_tls() { return variable("GRADWIRE_EDGE_TLS") != "off"; }

constexpr const char* kLogistic = R"(
name = "board"
[problem]
kind = "logistic"
data = "libsvm:board.txt"
regularizer = "l2"
lambda = 0.01
[algorithm]
name = "ef21"
compressor = "topk:k=1%"
step_size = 0.3
)";
constexpr const char* kNetwork = R"(
name = "board"
[problem]
kind = "mlp"
data = "digits"
hidden = [32]
[algorithm]
name = "ef21"
compressor = "topk:k=1%"
step_size = 0.1
)";

constexpr rlim_t kAddressSpace = rlim_t{8} << 20;
void allow_little_address_space() {
  const rlimit limit{kAddressSpace, kAddressSpace};
  ::setrlimit(RLIMIT_AS, &limit);
}

class EdgeClient : public IdentityProcess {
 protected:
  void SetUp() override {
    if (board().empty()) GTEST_SKIP() << "tools/test_edge runs this test";
    client_count = 1;
    write_samples();
  }
  // Writes 1,000 samples with 15 of 123 features each, like the data set a9a.
  void write_samples() {
    constexpr unsigned kSamples = 1000, kNonzero = 14, kApart = 123 / kNonzero;
    std::ofstream file(folder.path() / "board.txt");
    for (unsigned s = 0; s < kSamples; ++s) {
      file << (s * s % 3 == 0 ? "+1" : "-1");
      for (unsigned k = 0; k < kNonzero; ++k) file << ' ' << 1 + k * kApart + s * (k + 1) % kApart << ":1";
      file << " 123:1\n";
    }
  }
  // Begins a new run.
  void write_run(const std::string& problem, int rounds) {
    fs::remove_all(state());
    write_config(problem + "[clients]\ncount = 1\n[run]\nrounds = " + std::to_string(rounds) +
                 "\nevaluate_every = 1000\n");
  }
  void use_tls() { token_ = init("identity", 1).at(0); }
  Process start_run() { return token_.empty() ? start_server() : start_server({"--identity", "identity"}); }
  Process start(const std::string& data, void (*in_child)() = nullptr) {
    std::vector<std::string> arguments = {"--server", address, "--data", data};
    if (!token_.empty()) arguments.insert(arguments.end(), {"--identity", "me", "--token", token_});
    return Process("gradwire-client", arguments, folder.path() / "client.log", in_child);
  }
  // Returns the largest memory of the client during a run of 300 rounds, in KB.
  long peak_kb(const std::string& problem, const std::string& data) {
    write_run(problem, 300);
    Process server = start_run();
    Process client = start(data);
    const std::string status = "/proc/" + std::to_string(client.pid()) + "/status";
    long peak = 0;
    while (!client.ended() && !server.ended()) {
      const std::string text = read_file(status);
      if (const std::size_t at = text.find("VmHWM:"); at != text.npos)
        peak = std::max(peak, std::atol(text.c_str() + at + 6));
    }
    EXPECT_EQ(client.wait(), 0) << client.log();
    EXPECT_EQ(server.wait(), 0) << server.log();
    return peak;
  }
  // Returns the time from the start of a client to the end of its only round: the least of several.
  double answer_ms(double goal_ms) {
    using Clock = std::chrono::steady_clock;
    double least_ms = 1e9;
    for (int attempt = 0; attempt < 20 && least_ms > goal_ms; ++attempt) {
      write_run(kLogistic, 1);
      Process server = start_run();
      const auto started = Clock::now();
      Process client = start("libsvm:board.txt");
      EXPECT_EQ(client.wait(), 0) << client.log();
      least_ms =
          std::min(least_ms, std::chrono::duration<double, std::milli>(Clock::now() - started).count());
      EXPECT_EQ(server.wait(), 0) << server.log();
    }
    return least_ms;
  }

 private:
  std::string token_;  // empty without TLS
};

TEST_F(EdgeClient, IsASmallStaticFile) {
  // Without TLS, aarch64 misses its goal, 2.9. This limit keeps it from growing.
  const std::map<std::string, double> without_tls = {
      {"x86_64", 3.6}, {"aarch64", 3.1}, {"armv7", 2.3}, {"riscv64", 2.6}};
  const std::map<std::string, double> with_tls = {
      {"x86_64", 4.7}, {"aarch64", 3.8}, {"armv7", 2.9}, {"riscv64", 3.6}};
  const std::map<std::string, double>& most_mb = has_tls() ? with_tls : without_tls;
  std::string file = program("gradwire-client").string();
  if (file.ends_with(".sh")) file.resize(file.size() - 3);  // a script that starts it in an emulator
  const std::string bytes = read_file(file);
  EXPECT_LE(static_cast<double>(bytes.size()) / 1e6, most_mb.at(board())) << file;
  ASSERT_TRUE(bytes.starts_with(ELFMAG));
  EXPECT_EQ(bytes.find("/ld-linux"), bytes.npos) << "it names a dynamic linker";
}

TEST_F(EdgeClient, TakesLittleMemory) {
  if (program("gradwire-client").extension() == ".sh") GTEST_SKIP() << "an emulator has memory of its own";
  EXPECT_LE(peak_kb(kLogistic, "libsvm:board.txt"), 6'000);
  EXPECT_LE(peak_kb(kNetwork, "digits"), 5'000);
}

TEST_F(EdgeClient, RunsInALittleAddressSpace) {
  if (program("gradwire-client").extension() == ".sh") GTEST_SKIP() << "an emulator has memory of its own";
  for (const auto& [problem, data] :
       {std::pair(kLogistic, "libsvm:board.txt"), std::pair(kNetwork, "digits")}) {
    write_run(problem, 20);
    Process server = start_run();
    Process client = start(data, allow_little_address_space);
    EXPECT_EQ(client.wait(), 0) << client.log();
    EXPECT_EQ(server.wait(), 0) << server.log();
  }
}

TEST_F(EdgeClient, AnswersSoonAfterItsStart) {
  if (program("gradwire-client").extension() == ".sh") GTEST_SKIP() << "an emulator is slow";
  EXPECT_LE(answer_ms(100), 100);
}

TEST_F(EdgeClient, TakesLittleMoreMemoryAndTimeWithTls) {
  if (!has_tls()) GTEST_SKIP() << "a client without TLS";
  if (program("gradwire-client").extension() == ".sh") GTEST_SKIP() << "an emulator has memory of its own";
  use_tls();
  EXPECT_LE(peak_kb(kLogistic, "libsvm:board.txt"), 7'000);
  EXPECT_LE(peak_kb(kNetwork, "digits"), 6'000);
  EXPECT_LE(answer_ms(400), 400);
}

}  // namespace
}  // namespace gradwire
