// Tests of many clients: freeing memory does not change any bit, and registered clients cost almost nothing.
#include <atomic>
#include <gtest/gtest.h>
#include <set>

#include "config/experiment_spec.h"
#include "simulation/simulate.h"
#include "tests/algorithms/federation.h"

namespace gradwire {
namespace {

using namespace testing;

FaultSimulationOptions lean(FaultSimulationOptions options = {}) {
  options.runtime_bytes = options.evaluation_bytes = 0;
  return options;
}

template <class Real>
void expect_equal(const Trace<Real>& a, const Trace<Real>& b) {
  expect_same_steps(a, b);
  EXPECT_EQ(a.client_states, b.client_states);
}

TEST(Scale, KeepsTheBitsIfClientsFreeTheirMemory) {
  const Federation<double> federation(9, 12);
  for (const char* algorithm : {"gd", "dcgd", "fedavg", "diana", "marina", "ef21"}) {
    const AlgorithmTraits traits = find_algorithm(algorithm).traits;
    const char* compressor = traits.compressor_class == CompressorClass::kIdentity   ? "identity"
                             : traits.compressor_class == CompressorClass::kUnbiased ? "randk:k=2"
                                                                                     : "topk:k=2";
    for (const double participation : {1.0, 0.4}) {
      if (participation < 1 && !traits.partial) continue;
      SCOPED_TRACE(std::string(algorithm) + " " + std::to_string(participation));
      AlgorithmSpec spec = spec_of(algorithm, compressor);
      spec.participation = participation;
      const auto run_context = federation.run_context(spec);
      RoundLimits limits;
      limits.evaluate_every = 2;
      const auto wasteful = run<double>(federation, run_context, 12, {}, limits);
      EXPECT_NE(wasteful.model, run_context->x0);
      expect_equal(wasteful, run<double>(federation, run_context, 12, lean(), limits));
      expect_equal(wasteful, run<double>(federation, run_context, 12, lean({.threads = 3}), limits));
      expect_equal(wasteful, run<double>(federation, run_context, 12, lean({.encoded = true}), limits));
    }
  }
}

TEST(Scale, ReusesRuntimesOfStatelessClients) {
  const Federation<double> federation(20, 4);
  AlgorithmSpec spec = spec_of("gd");
  spec.participation = 0.2;
  const auto run_context = federation.run_context(spec);
  for (const bool zero_copy : {false, true}) {
    std::set<const void*> runtimes;
    RoundLimits limits;
    limits.evaluate_every = 0;
    run<double>(federation, run_context, 30, zero_copy ? lean() : FaultSimulationOptions{}, limits,
                [&](std::uint32_t, ServerAlgorithm<double>& server, FaultSimulation<double>& transport,
                    RunProgress&) {
                  // The round's cohort, as the algorithm draws it.
                  std::vector<ClientId> cohort;
                  server.cohort(cohort);
                  for (const ClientId c : cohort) runtimes.insert(&transport.runtime(c));
                });
    EXPECT_EQ(runtimes.size() <= 10, zero_copy) << runtimes.size();
  }
}

TEST(Scale, RunsAHundredThousandClientsInTurns) {
  const auto loaded = parse_experiment(
      "[problem]\nkind = \"quadratic\"\ndim = 10\nlambda = 0.1\nheterogeneity = 0.1\n[clients]\ncount = "
      "100000\n"
      "participation = 0.001\n[algorithm]\nname = \"gd\"\n[run]\nrounds = 50\nevaluate_every = 50\nx0 = "
      "\"model\"\n",
      "t.toml");
  std::vector<RoundRecord> records;
  RunObserver observer;
  observer.on_record = [&](const RoundRecord& record) { records.push_back(record); };
  const std::atomic<bool> stop{false};
  simulate(prepare(loaded), false, 2, observer, stop);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].replies, 100u);
  EXPECT_DOUBLE_EQ(records[1].grad_calls, 0.05);
  EXPECT_LT(records[1].grad_norm_sq, 0.1 * *records[0].grad_norm_sq);
}

TEST(Scale, GivesTheSameRowsIfThreadsShareManyReplies) {
  for (const char* algorithm : {"name = \"gd\"\n", "name = \"ef21\"\ncompressor = \"topk:k=2\"\n",
                                "name = \"dcgd\"\ncompressor = \"randseqk:k=2\"\n"}) {
    const auto loaded = parse_experiment(
        "[problem]\nkind = \"quadratic\"\ndim = 10\nheterogeneity = 0.1\n[clients]\ncount = 20000\n"
        "[algorithm]\nstep_size = 0.1\n" +
            std::string(algorithm) + "[run]\nrounds = 4\nevaluate_every = 1\n",
        "t.toml");
    std::vector<RoundRecord> alone, shared;
    for (const unsigned threads : {1u, 3u}) {
      RunObserver observer;
      observer.on_record = [&](const RoundRecord& r) { (threads == 1 ? alone : shared).push_back(r); };
      const std::atomic<bool> stop{false};
      simulate(prepare(loaded), false, threads, observer, stop);
    }
    ASSERT_EQ(alone.size(), 5u);
    ASSERT_EQ(shared.size(), 5u);
    EXPECT_LT(alone[4].loss, alone[0].loss);
    for (std::size_t k = 0; k < alone.size(); ++k) {
      EXPECT_EQ(alone[k].loss, shared[k].loss) << algorithm << k;
      EXPECT_EQ(alone[k].grad_norm_sq, shared[k].grad_norm_sq) << algorithm << k;
      EXPECT_EQ(alone[k].bits_up, shared[k].bits_up) << algorithm << k;
      EXPECT_EQ(alone[k].bytes_up, shared[k].bytes_up) << algorithm << k;
    }
  }
}

TEST(ClientRuntime, RebindsOnlyWithoutState) {
  const Federation<double> federation(2, 4);
  const auto oracles = federation.oracle_pointers();
  ClientRuntime<double> stateless(federation.run_context(spec_of("gd")), 0, *oracles[0]);
  EXPECT_NO_THROW(stateless.rebind(1, *oracles[1]));
  ClientRuntime<double> stateful(federation.run_context(spec_of("ef21", "topk:k=1")), 0, *oracles[0]);
  EXPECT_THROW(stateful.rebind(1, *oracles[1]), std::logic_error);
}

}  // namespace
}  // namespace gradwire
