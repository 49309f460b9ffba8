// algorithm.backprop_fraction: backward passes along some paths through a network.
#include <gtest/gtest.h>
#include <set>

#include "base/config_error.h"
#include "engine/forwarding_oracle.h"
#include "tests/algorithms/every_algorithm.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of algorithm tests

// An oracle that records the paths that it is asked for.
class Listening final : public ForwardingOracle<double, Listening> {
 public:
  explicit Listening(Oracle<double>& inner) : inner_(&inner) {}
  Oracle<double>& inner() const { return *inner_; }
  std::optional<double> compute(Reals x, Batch batch, RealsOut gradient,
                                const GradientOptions& options) override {
    asked.push_back(options.paths);
    return inner_->compute(x, batch, gradient, options);
  }
  std::vector<RandomPaths> asked;

 private:
  Oracle<double>* inner_;
};

constexpr std::size_t kPathsDim = 12;
constexpr std::uint32_t kPathsClients = 3, kPathsRounds = 5;
constexpr std::array kPathsAlgorithms = {
    "gd",         "dcgd",    "diana",      "ef21_p",    "asgd", "delay_adaptive_asgd",
    "mindflayer", "rennala", "ringleader", "ringmaster"};

// Returns the requested paths of some rounds, by client.
std::vector<std::vector<RandomPaths>> asked_by(const AlgorithmSpec& spec) {
  const Federation<double> federation(kPathsClients, kPathsDim);
  const auto run_context = federation.run_context(spec);
  const auto server = make_server<double>(run_context);
  std::vector<std::vector<RandomPaths>> asked;
  Scratch<double> scratch;
  for (std::uint32_t i = 0; i < kPathsClients; ++i) {
    Listening oracle(*federation.oracles[i]);
    const auto client = make_client<double>(run_context);
    for (std::uint32_t t = 0; t < kPathsRounds; ++t) {
      Downlink<double> down = server->broadcast();
      if (!find_algorithm(spec.name).traits.asynchronous) down.round = t;
      client->reply(down, {i, run_context->seed, t + 1, t == 0, oracle, run_context->compressor, scratch, t});
    }
    asked.push_back(oracle.asked);
  }
  return asked;
}

TEST(RandomPathsOfAlgorithms, DifferForEachGradientAndAreReproducible) {
  for (const char* name : kPathsAlgorithms) {
    SCOPED_TRACE(name);
    const AlgorithmSpec spec = spec_of(name, "identity", {{"backprop_fraction", "0.25"}}, "0.05");
    const auto asked = asked_by(spec), again = asked_by(spec);
    std::set<std::uint64_t> keys;
    for (std::uint32_t i = 0; i < kPathsClients; ++i) {
      ASSERT_EQ(asked[i].size(), kPathsRounds);
      for (std::uint32_t t = 0; t < kPathsRounds; ++t) {
        EXPECT_EQ(asked[i][t].share, 0.25);
        EXPECT_EQ(asked[i][t].key, again[i][t].key);
        keys.insert(asked[i][t].key);
      }
    }
    EXPECT_EQ(keys.size(), kPathsClients * kPathsRounds);
  }
}

TEST(RandomPathsOfAlgorithms, IncludeAllPathsByDefault) {
  for (const char* name : kPathsAlgorithms)
    for (const auto& of_client : asked_by(spec_of(name, "identity", {}, "0.05")))
      EXPECT_TRUE(of_client.empty()) << name;
}

TEST(RandomPathsOfAlgorithms, RejectInvalidShares) {
  for (const char* share : {"0", "-0.5", "1.5"}) {
    try {
      check_algorithm(spec_of("gd", "identity", {{"backprop_fraction", share}}, "0.1"));
      FAIL() << share;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.key(), "algorithm.backprop_fraction");
    }
  }
  EXPECT_THROW(check_algorithm(spec_of("marina", "randk:k=3", {{"backprop_fraction", "0.5"}}, "0.1")),
               ConfigError)
      << "its differences need the same paths at both points";
}

TEST(RandomPathsOfAlgorithms, WarnThatNoTheoremCoversThem) {
  Smoothness smoothness;
  smoothness.L = 2;
  Theory theory;
  theory.n = kPathsClients;
  theory.d = kPathsDim;
  theory.smoothness = &smoothness;
  const auto theory_of = [&](const char* share) {
    std::vector<std::string> warnings;
    resolve(spec_of("gd", "identity", {{"backprop_fraction", share}}, "theory"), theory, warnings);
    return warnings;
  };
  EXPECT_EQ(theory_of("1"), std::vector<std::string>());
  ASSERT_EQ(theory_of("0.5").size(), 1u);
  EXPECT_NE(theory_of("0.5")[0].find("algorithm.backprop_fraction"), std::string::npos);
}

}  // namespace
}  // namespace gradwire
