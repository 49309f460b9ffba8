// Tests of claims of papers about the time of asynchronous algorithms, on the experiments of
// experiments/configs/e8. Each algorithm has the fastest parameters of a grid; medians over several seeds are
// compared.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "config/experiment_file.h"
#include "simulation/prepare.h"
#include "simulation/simulate.h"

namespace gradwire {
namespace {

// Returns the virtual seconds until the squared norm of the gradient reaches the target, as a median over
// three seeds.
double seconds_to_target(const std::string& name) {
  const auto file = std::filesystem::path(GRADWIRE_SOURCE_DIR) / "experiments/configs/e8" / (name + ".toml");
  std::vector<double> seconds;
  for (const char* seed : {"seed=1", "seed=2", "seed=3"}) {
    const std::vector<std::string> sets = {seed};
    const std::atomic<bool> stop{false};
    const RunResult result = simulate(prepare(load_experiment(file, sets)), false, 1, {}, stop);
    EXPECT_EQ(result.outcome, Outcome::kReachedTarget) << name << ", " << seed;
    EXPECT_TRUE(result.last.sim_seconds) << name;
    seconds.push_back(result.last.sim_seconds.value_or(0));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[1];
}

// arXiv:2305.12387, arXiv:2501.16168: algorithms that drop delayed gradients are faster than an algorithm
// that shortens steps along them, which is faster than plain ASGD.
TEST(AsynchronousTimes, AreShortestForRingmasterAndRennalaThenDelayAdaptiveAsgdAtFixedSpeeds) {
  const double ringmaster = seconds_to_target("ringmaster"), rennala = seconds_to_target("rennala"),
               delay_adaptive = seconds_to_target("delay_adaptive"), asgd = seconds_to_target("asgd");
  EXPECT_LT(std::max(ringmaster, rennala), 0.95 * delay_adaptive) << rennala << " s, " << delay_adaptive;
  EXPECT_LT(std::max(ringmaster, rennala), 2 * std::min(ringmaster, rennala))
      << ringmaster << " s, " << rennala;
  EXPECT_LT(delay_adaptive, 0.8 * asgd) << delay_adaptive << " s, " << asgd;
}

// arXiv:2410.04285: an algorithm that waits for all work that it started waits for the tail.
TEST(AsynchronousTimes, AreFarShorterForMindFlayerIfTimesHaveHeavyTails) {
  const double mindflayer = seconds_to_target("tails_mindflayer");
  for (const char* other : {"tails_rennala", "tails_ringmaster", "tails_asgd"})
    EXPECT_LT(mindflayer, seconds_to_target(other) / 8) << other;
}

TEST(AsynchronousDelays, WarnOnceIfTheyExceedThoseOfTheTheorem) {
  const auto warnings = [](std::vector<std::string> sets) {
    const std::atomic<bool> stop{false};
    RunObserver observer;
    std::vector<std::string> said;
    observer.on_note = [&](const LogLine& line) {
      if (line.level == LogLevel::kWarning) said.push_back(line.text);
    };
    simulate(prepare(parse_experiment("[problem]\nkind = \"quadratic\"\ndim = 4\n[clients]\ncount = 4\n"
                                      "[algorithm]\nname = \"asgd\"\n[run]\nrounds = 60\n",
                                      "a.toml", sets)),
             false, 1, observer, stop);
    return said;
  };
  EXPECT_EQ(warnings({}).size(), 0u) << "clients of equal speed are n - 1 steps late";
  const auto said = warnings({"clients.latency=linear"});
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("allows algorithm.max_delay = 3"), std::string::npos) << said[0];
  EXPECT_EQ(warnings({"clients.latency=linear", "algorithm.max_delay=40"}).size(), 0u);
  EXPECT_EQ(warnings({"clients.latency=linear", "algorithm.step_size=0.1"}).size(), 0u);
}

}  // namespace
}  // namespace gradwire
