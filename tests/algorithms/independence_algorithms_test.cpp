// Independence of the draws of one algorithm in different rounds, clients and message parts, tested from
// outside for every algorithm of the list.
#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/algorithms/every_algorithm.h"
#include "tests/algorithms/independence.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of algorithm tests

// f_i(x) = ½‖x − b_i‖² over very many samples. Records the batches that it is asked for.
class WatchedOracle final : public Oracle<double> {
 public:
  std::vector<std::vector<std::uint32_t>> asked;  // in order; an empty batch means all samples
  WatchedOracle(std::size_t d, std::size_t samples, double b) : d_(d), samples_(samples), b_(b) {}
  std::size_t dim() const override { return d_; }
  std::size_t sample_count() const override { return samples_; }
  double loss_and_gradient(View<double> x, Batch batch, Out<double> gradient) override {
    asked.emplace_back(batch.begin(), batch.end());
    for (std::size_t j = 0; j < d_; ++j) gradient[j] = x[j] - b_ - 0.01 * static_cast<double>(j);
    return 1;
  }
  bool hessian(View<double>, Out<double> upper) override {
    std::fill(upper.begin(), upper.end(), 0.5);
    return true;
  }

 private:
  std::size_t d_, samples_;
  double b_;
};

constexpr std::size_t kManySamples = 1'000'000'000;  // two small batches are never equal by chance

// Runs the server and the clients of an algorithm in lockstep.
class Lockstep {
 public:
  struct Reply {
    Uplink<double> up;
    std::vector<std::vector<std::uint32_t>> asked;
  };
  std::function<void(std::uint32_t t, const std::vector<ClientId>& cohort, const Downlink<double>& down,
                     const std::vector<Reply>& replies)>
      watch;

  Lockstep(const AlgorithmSpec& spec, std::uint32_t n, std::size_t d, std::size_t samples = kManySamples)
      : run_context_(make_run_context(spec, n, d)) {
    server_ = make_server<double>(run_context_);
    for (ClientId i = 0; i < n; ++i) {
      oracles_.push_back(std::make_unique<WatchedOracle>(d, samples, 1.0 + i));
      clients_.push_back(make_client<double>(run_context_));
    }
    scratch_.resize(n);
    heard_.resize(n);
  }

  void run(std::uint32_t rounds) {
    for (std::uint32_t t = 0; t < rounds; ++t) {
      std::vector<ClientId> cohort;
      server_->cohort(cohort);
      const Downlink<double> down = server_->broadcast();
      std::vector<Reply> replies;
      for (const ClientId i : cohort) replies.push_back(ask(i, down));
      if (watch) watch(t, cohort, down, replies);
      std::vector<Uplink<double>> uplinks;
      for (const Reply& reply : replies) uplinks.push_back(reply.up);
      server_->apply(std::vector<gradwire::UplinkView<double>>(uplinks.begin(), uplinks.end()));
      for (const Uplink<double>& up : uplinks) clients_[up.client]->commit(up), heard_[up.client] = true;
    }
  }

 private:
  static std::shared_ptr<const RunContext<double>> make_run_context(const AlgorithmSpec& spec,
                                                                    std::uint32_t n, std::size_t d) {
    auto run_context = Federation<double>(n, d).run_context(spec);
    run_context->keep_client_state_replicas = true;
    return run_context;
  }
  Reply ask(ClientId i, const Downlink<double>& down) {
    const ClientContext<double> ctx{i,           run_context_->seed, 1,
                                    !heard_[i],  *oracles_[i],       run_context_->compressor,
                                    scratch_[i], down.round};
    oracles_[i]->asked.clear();
    Uplink<double> up = clients_[i]->reply(down, ctx);
    if (up.status != ReplyStatus::kReply) {
      clients_[i]->adopt(server_->resync(i, up.status).value(), ctx);
      oracles_[i]->asked.clear();
      up = clients_[i]->reply(down, ctx);
    }
    up.client = i;
    EXPECT_EQ(up.status, ReplyStatus::kReply);
    EXPECT_TRUE(server_->accepts(up)) << run_context_->algorithm.name << ": both ends must draw the same";
    return {up, oracles_[i]->asked};
  }

  std::shared_ptr<const RunContext<double>> run_context_;
  std::unique_ptr<ServerAlgorithm<double>> server_;
  std::vector<std::unique_ptr<WatchedOracle>> oracles_;
  std::vector<std::unique_ptr<ClientAlgorithm<double>>> clients_;
  std::vector<Scratch<double>> scratch_;
  std::vector<char> heard_;
};

bool compressor_class(const AlgorithmInfo& algorithm, std::string_view parameter) {
  return std::any_of(algorithm.parameters.begin(), algorithm.parameters.end(),
                     [&](const ParameterHelp& p) { return p.name == parameter; });
}

// Returns a spec that uses every kind of draw of the algorithm, with fair coins.
AlgorithmSpec drawing(const AlgorithmInfo& algorithm, std::uint32_t batch, double participation) {
  const AlgorithmTraits& traits = algorithm.traits;
  AlgorithmSpec spec = spec_of(std::string(traits.name), "identity", {}, "0.01");
  if (traits.compressor_class != CompressorClass::kIdentity) spec.compressor = "randk:k=25%";
  if (traits.compressor_class == CompressorClass::kContractive) spec.compressor += ",scaled=false";
  if (traits.stochastic) spec.batch = batch;
  if (traits.name == "fwd_grad") spec.parameters.emplace_back("directions", "1");  // all share one batch
  if (traits.partial) spec.participation = participation;
  if (compressor_class(algorithm, "p")) spec.parameters.emplace_back("p", "0.5");
  if (compressor_class(algorithm, "local_steps")) spec.parameters.emplace_back("local_steps", "3");
  if (compressor_class(algorithm, "compressor_down"))
    spec.parameters.emplace_back("compressor_down", "randk:k=25%,scaled=false");
  return spec;
}

// If many outcomes are possible, an outcome that repeats means that the same draw was used twice.
TEST(Independence, HoldsForSupportsBatchesAndCohortsOfAllAlgorithms) {
  constexpr std::uint32_t kN = 24, kRounds = 12;
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    const std::string name(algorithm.traits.name);
    std::map<std::vector<std::uint32_t>, std::string> supports, batches, cohorts;
    const auto once = [&](auto& seen, const std::vector<std::uint32_t>& drawn, const std::string& where) {
      const auto [it, fresh] = seen.emplace(drawn, where);
      EXPECT_TRUE(fresh) << name << ": " << where << " repeats the draw for " << it->second;
    };
    const auto parts = [&](const Parts<double>& message, const std::string& where) {
      for (std::size_t k = 0; k < message.size(); ++k)
        if (message[k].key != nullptr)
          once(supports, {message[k].indices.begin(), message[k].indices.end()},
               where + ", part " + std::to_string(k));
    };
    bool in_pairs = false;  // batches only: each is requested at two points
    for (const char* paired : {"vr_marina", "page", "vr_diana", "dasha_page", "dasha_mvr"})
      in_pairs |= name == paired;
    Lockstep lockstep(drawing(algorithm, name == "page" ? kN : 4, 0.5), kN, 64);
    lockstep.watch = [&](std::uint32_t t, const auto& cohort, const Downlink<double>& down,
                         const auto& replies) {
      const std::string round = "round " + std::to_string(t);
      if (cohort.size() < kN) once(cohorts, cohort, round);
      // Two samples of n/2 clients; they are equal by chance once in 2.7 million rounds.
      EXPECT_TRUE(name != "cofig" || cohort.size() > kN / 2) << "the two samples are equal";
      parts(down.parts, round + ", server");
      for (const auto& reply : replies) {
        const std::string where = round + ", client " + std::to_string(reply.up.client);
        parts(reply.up.parts, where);
        std::size_t calls = 0, own = 0;
        const std::vector<std::uint32_t>* last = nullptr;
        for (const auto& batch : reply.asked) {
          if (batch.empty()) continue;
          ++calls;
          if (in_pairs && last != nullptr && *last == batch) continue;
          once(batches, batch, where + ", call " + std::to_string(++own));
          last = &batch;
        }
        EXPECT_EQ(calls, in_pairs ? 2 * own : own) << name;
      }
    };
    lockstep.run(kRounds);
    EXPECT_EQ(supports.size() > 20, algorithm.traits.compressor_class != CompressorClass::kIdentity) << name;
    EXPECT_EQ(batches.size() > 20, algorithm.traits.stochastic) << name;
    EXPECT_EQ(cohorts.size() > 2, algorithm.traits.partial || name == "page") << name;
  }
}

TEST(Independence, HoldsForSampleOrdersOfAllAlgorithms) {
  constexpr std::size_t kSamples = 64;
  int shuffling = 0;
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    if (!compressor_class(algorithm, "local_epochs")) continue;
    ++shuffling;
    AlgorithmSpec spec =
        spec_of(std::string(algorithm.traits.name), "identity", {{"local_epochs", "3"}}, "0.01");
    spec.parameters.emplace_back("local_step_size", "0.01");
    spec.batch = kSamples / 2;
    std::map<std::vector<std::uint32_t>, std::string> orders;
    Lockstep lockstep(spec, 6, 4, kSamples);
    lockstep.watch = [&](std::uint32_t t, const auto&, const auto&, const auto& replies) {
      for (const auto& reply : replies) {
        const std::string where =
            "round " + std::to_string(t) + ", client " + std::to_string(reply.up.client);
        EXPECT_EQ(reply.asked.size(), 6u) << spec.name;
        for (const auto& batch : reply.asked) {
          const auto [it, fresh] = orders.emplace(batch, where);
          EXPECT_TRUE(fresh) << spec.name << ": " << where << " repeats the order of " << it->second;
        }
      }
    };
    lockstep.run(8);
  }
  EXPECT_GT(shuffling, 4);
}

// Compares what is visible of each round: which clients are asked, their batch sizes and message shapes, and
// which vectors of the broadcast after the first are new. Some of this depends on a coin of the algorithm.
TEST(Independence, HoldsForCoinsOfNeighbouringRounds) {
  constexpr std::uint32_t kRounds = 800;
  std::set<std::string> tossing;
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    const std::string name(algorithm.traits.name);
    std::vector<std::string> looks;
    std::vector<Vec<double>> before(kMaxParts);
    Lockstep lockstep(drawing(algorithm, 3, 1), 3, 4);
    lockstep.watch = [&](std::uint32_t, const auto&, const Downlink<double>& down, const auto& replies) {
      std::string look;
      for (std::size_t k = 1; k < down.parts.size(); ++k) {
        const Vec<double> now(down.parts[k].values.begin(), down.parts[k].values.end());
        look += now == before[k] ? '=' : '#';
        before[k] = now;
      }
      for (const auto& reply : replies) {
        look += " client " + std::to_string(reply.up.client) + ":";
        for (const auto& batch : reply.asked) look += " " + std::to_string(batch.size());
        for (std::size_t k = 0; k < reply.up.parts.size(); ++k)
          look += reply.up.parts[k].shape == Shape::kSparse ? 'c' : 'd';
      }
      looks.push_back(look);
    };
    lockstep.run(kRounds);
    looks.erase(looks.begin(), looks.begin() + 3);  // skips the start
    if (std::set<std::string>(looks.begin(), looks.end()).size() > 1) tossing.insert(name);
    for (const std::size_t lag : {1u, 2u, 3u}) {
      std::vector<std::pair<std::string, std::string>> pairs;
      for (std::size_t t = lag; t < looks.size(); ++t) pairs.emplace_back(looks[t - lag], looks[t]);
      expect_agreement_of_chance(pairs, name + ", " + std::to_string(lag) + " rounds on");
    }
  }
  EXPECT_EQ(tossing, (std::set<std::string>{"proxskip", "vr_diana", "adiana", "marina", "vr_marina",
                                            "pp_marina", "page", "dasha_page", "ef21_pp"}));
}

}  // namespace
}  // namespace gradwire
