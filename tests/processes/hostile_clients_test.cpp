// A server with slow unauthenticated peers, peers that send garbage, and clients that send invalid numbers.
// The model and the rounds must equal those of a server whose bad clients are silent.
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>

#include "benchmarks/load_clients.h"
#include "tests/processes/process_fixture.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

using bench::LoadOptions;
using bench::LoadProcess;

// Returns the number of correct clients. The large test sets GRADWIRE_HOSTILE=1000.
std::uint32_t good_clients() {
  const char* text = std::getenv("GRADWIRE_HOSTILE");
  return text != nullptr ? static_cast<std::uint32_t>(std::atoi(text)) : 100;
}

struct Figures {
  double round_ms = 0, peak_mb = 0;
  std::vector<double> model;
  std::string log;
  std::string counts;  // contents of metrics.prom

  double ended(const std::string& reason) const {
    const std::string name = "gradwire_connections_ended_total{reason=\"" + reason + "\"} ";
    const std::size_t at = counts.find(name);
    return at == std::string::npos ? -1 : std::stod(counts.substr(at + name.size()));
  }
};

class HostileClientsTest : public ProcessTest {
 protected:
  static constexpr std::uint32_t kDim = 512;  // 4 KB

  Figures run_among(LoadOptions load, std::uint32_t rounds) {
    fs::remove_all(state());
    fs::remove(folder.path() / "server.log");
    write_config("name = \"hostile\"\n[problem]\nkind = \"quadratic\"\ndim = " + std::to_string(kDim) +
                 "\nlambda = 0.1\n[clients]\ncount = " + std::to_string(load.clients()) +
                 "\n[algorithm]\nname = \"gd\"\nstep_size = 0.01\n[run]\nrounds = " + std::to_string(rounds) +
                 "\nevaluate_every = 0\n[server]\nzstd = \"off\"\njoin_deadline_ms = 60000\nquorum = " +
                 std::to_string((load.good - 0.5) / load.clients()) + "\n");
    Process server = start_server();
    load.server = address;
    load.dim = kDim;
    const LoadOptions others{load.server, 0, 0, {}, load.slow, load.garbage, kDim};
    load.slow = load.garbage = 0;
    const LoadProcess clients(load);
    // Bad peers and clients share one address. It would be banned if bad peers came before the first client.
    EXPECT_TRUE(eventually([&] { return server.log().find(" joined with ") != std::string::npos; }))
        << server.log();
    const LoadProcess unauthenticated(others);
    Figures figures;
    while (server.wait(0) == -1) {
      figures.peak_mb = std::max(figures.peak_mb, peak_mb(server.pid()));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    figures.log = read_file(folder.path() / "server.log");
    figures.counts = read_file(state() / "metrics.prom");
    EXPECT_EQ(server.wait(), 0) << figures.log.substr(0, 3000);
    figures.model = read_model(state() / "model.bin");
    const std::string summary = read_file(state() / "summary.json");
    figures.round_ms = 1000 * std::stod(summary.substr(summary.find("\"seconds\": ") + 11)) / rounds;
    return figures;
  }
  static double peak_mb(pid_t pid) {
    const std::string status = read_file("/proc/" + std::to_string(pid) + "/status");
    const std::size_t at = status.find("VmHWM:");
    return at == std::string::npos ? 0 : std::stod(status.substr(at + 6)) / 1024;
  }
};

TEST_F(HostileClientsTest, UnauthenticatedPeersAndInvalidRepliesChangeNoBitAndCostLittle) {
  const std::uint32_t good = good_clients();
  const bool is_large = good >= 1000;
  const std::uint32_t rounds = is_large ? 1000 : scaled(1000), turns = is_large ? 3 : 1;
  Figures best_quiet, best_hostile;
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    const Figures quiet = run_among({.good = good, .bad = 10}, rounds);
    const Figures hostile = run_among(
        {.good = good, .bad = 10, .kind = LoadOptions::Bad::kNan, .slow = 100, .garbage = 100}, rounds);
    ASSERT_EQ(hostile.model.size(), kDim);
    EXPECT_EQ(hostile.model, quiet.model);
    EXPECT_NE(hostile.model, std::vector<double>(kDim));
    EXPECT_NE(hostile.log.find("is not finite"), std::string::npos) << hostile.log.substr(0, 3000);
    EXPECT_GT(hostile.ended("foreign"), 0) << hostile.counts;
    EXPECT_GT(hostile.ended("kept_out"), 0) << hostile.counts;
    EXPECT_LT(hostile.peak_mb, quiet.peak_mb + 64 + kSanitizerMb);
    std::printf(
        "%u clients: a round takes %.2f ms, with hostile peers %.2f; the server has %.1f MB, and %.1f\n",
        good, quiet.round_ms, hostile.round_ms, quiet.peak_mb, hostile.peak_mb);
    if (turn == 0 || quiet.round_ms < best_quiet.round_ms) best_quiet = quiet;
    if (turn == 0 || hostile.round_ms < best_hostile.round_ms) best_hostile = hostile;
  }
  if (is_large) {
    EXPECT_LT(best_hostile.round_ms, 1.1 * best_quiet.round_ms);
  }
}

}  // namespace
}  // namespace gradwire
