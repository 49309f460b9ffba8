// algorithm.partial_gradient: clients compute only the coordinates that they send.
#include <gtest/gtest.h>
#include <limits>

#include "base/config_error.h"
#include "engine/forwarding_oracle.h"
#include "rounds/runtime.h"
#include "tests/algorithms/every_algorithm.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of algorithm tests

// An oracle whose gradients with options have only the wanted coordinates; all others are nan.
class Sparing final : public ForwardingOracle<double, Sparing> {
 public:
  explicit Sparing(Oracle<double>& inner) : inner_(&inner) {}
  Oracle<double>& inner() const { return *inner_; }
  std::optional<double> compute(Reals x, Batch batch, RealsOut gradient,
                                const GradientOptions& options) override {
    Vec<double> whole(gradient.size());
    const double loss = inner_->loss_and_gradient(x, batch, whole);
    std::fill(gradient.begin(), gradient.end(), std::numeric_limits<double>::quiet_NaN());
    options.wanted.for_runs(gradient.size(), [&](std::size_t first, std::size_t end) {
      for (std::size_t j = first; j < end; ++j) gradient[j] = whole[j];
      computed += end - first;
    });
    return loss;
  }
  std::size_t computed = 0;

 private:
  Oracle<double>* inner_;
};

constexpr std::uint32_t kPartialClients = 4, kRounds = 30;
constexpr std::size_t kPartialDim = 12;

struct Ran {
  Vec<double> model;
  std::size_t computed = 0;  // coordinates computed by compute()
};

Ran run_of(const AlgorithmSpec& spec, std::uint32_t batch) {
  const Federation<double> federation(kPartialClients, kPartialDim);
  AlgorithmSpec with_batch = spec;
  with_batch.batch = batch;
  const std::shared_ptr<const RunContext<double>> run_context = federation.run_context(with_batch);
  const auto server = make_server<double>(run_context);
  std::vector<std::unique_ptr<Sparing>> oracles;
  std::vector<std::unique_ptr<ClientAlgorithm<double>>> clients;
  for (std::uint32_t i = 0; i < kPartialClients; ++i) {
    oracles.push_back(std::make_unique<Sparing>(*federation.oracles[i]));
    clients.push_back(make_client<double>(run_context));
  }
  Scratch<double> scratch;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    const Downlink<double> down = server->broadcast();
    std::vector<Uplink<double>> uplinks;
    for (std::uint32_t i = 0; i < kPartialClients; ++i) {
      uplinks.push_back(clients[i]->reply(
          down, {i, run_context->seed, t + 1, t == 0, *oracles[i], run_context->compressor, scratch, t}));
      uplinks.back().client = i;
    }
    server->apply(std::vector<UplinkView<double>>(uplinks.begin(), uplinks.end()));
    for (std::uint32_t i = 0; i < kPartialClients; ++i) clients[i]->commit(uplinks[i]);
  }
  Ran ran;
  ran.model.assign(server->model().begin(), server->model().end());
  for (const auto& oracle : oracles) ran.computed += oracle->computed;
  return ran;
}

TEST(PartialGradient, EqualsWholeGradientAndComputesOnlyDrawnCoordinates) {
  for (const char* name : {"dcgd", "diana", "ef21_p"})
    for (const char* compressor : {"randk:k=3", "randseqk:k=3", "natural(randk:k=3)"})
      for (const std::uint32_t batch : {0u, 2u}) {
        SCOPED_TRACE(std::string(name) + " " + compressor + " batch " + std::to_string(batch));
        const Ran whole = run_of(spec_of(name, compressor, {}, "0.05"), batch);
        const Ran partial = run_of(spec_of(name, compressor, {{"partial_gradient", "true"}}, "0.05"), batch);
        EXPECT_EQ(partial.model, whole.model);
        EXPECT_EQ(whole.computed, 0u);
        EXPECT_EQ(partial.computed, kRounds * kPartialClients * 3u);
      }
}

TEST(PartialGradient, FollowsRequestIdInAsynchronousAlgorithms) {
  const Federation<double> federation(1, kPartialDim);
  for (const char* name :
       {"asgd", "delay_adaptive_asgd", "mindflayer", "rennala", "ringleader", "ringmaster"}) {
    SCOPED_TRACE(name);
    Vec<double> sent[2];
    for (const bool partial : {false, true}) {
      const auto run_context = federation.run_context(
          spec_of(name, "randk:k=3", {{"partial_gradient", partial ? "true" : "false"}}, "0.1"));
      const auto server = make_server<double>(run_context);
      const auto client = make_client<double>(run_context);
      Sparing oracle(*federation.oracles[0]);
      Scratch<double> scratch;
      for (std::uint32_t draw = 0; draw < 5; ++draw) {
        const Uplink<double> up = client->reply(
            server->broadcast(),
            {0, run_context->seed, draw + 1, false, oracle, run_context->compressor, scratch, draw});
        sent[partial].insert(sent[partial].end(), up.parts[0].values.begin(), up.parts[0].values.end());
      }
      EXPECT_EQ(oracle.computed, partial ? 5u * 3u : 0u);
    }
    EXPECT_EQ(sent[1], sent[0]);
  }
}

TEST(PartialGradient, RequiresCompressorThatDrawsCoordinates) {
  for (const char* compressor : {"natural", "permk", "identity"}) {
    try {
      check_algorithm(spec_of("dcgd", compressor, {{"partial_gradient", "true"}}, "0.1"));
      FAIL() << compressor;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.key(), "algorithm.partial_gradient");
      EXPECT_NE(std::string(error.what()).find("randk, randseqk"), std::string::npos) << error.what();
    }
  }
  check_algorithm(spec_of("dcgd", "natural", {{"partial_gradient", "false"}}, "0.1"));
}

TEST(PartialGradient, RejectsGdAndSuggestsAlternatives) {
  for (const char* compressor : {"identity", "randk:k=3"}) {
    try {
      check_algorithm(spec_of("gd", compressor, {{"partial_gradient", "true"}}, "0.1"));
      FAIL() << compressor;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.key(), "algorithm.partial_gradient");
      EXPECT_EQ(
          std::string(error.what()),
          "gd sends and computes whole gradients; for partial_gradient use dcgd with randk or randseqk, "
          "or leave it out");
    }
  }
  check_algorithm(spec_of("gd", "identity", {{"partial_gradient", "false"}}, "0.1"));
}

}  // namespace
}  // namespace gradwire
