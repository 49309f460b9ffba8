// Theorems about asynchronous algorithms, on quadratics that all clients share, with the noise of single
// samples. Comments derive the constants. f is L-smooth, and E‖∇f(x; ξ) − ∇f(x)‖² ≤ σ². g_s is the gradient
// that was started at x^s, and G_s = ‖∇f(x^s)‖².
#include <algorithm>
#include <atomic>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/value.h"
#include "tests/algorithms/theory.h"
#include "tests/simulated/virtual_run.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of theorem tests

constexpr std::uint32_t kWorkers = 5;

Federation<double> equal_federation() {
  Federation<double> f(kWorkers, 15);
  for (auto& oracle : f.oracles) {
    oracle->a = f.oracles[0]->a;
    oracle->b = f.oracles[0]->b;
  }
  f.optimum = f.oracles[0]->b;
  f.smoothness.L = *std::max_element(f.oracles[0]->a.begin(), f.oracles[0]->a.end());
  f.smoothness.L_i.assign(kWorkers, f.smoothness.L);
  return f;
}

// Returns σ² of single samples, which is the same at every x.
double noise_of(const Federation<double>& f) {
  double sum = 0;
  for (std::uint32_t s = 0; s < 4; ++s)
    sum += squared_distance(gradient(f, 0, f.x0, {&s, 1}), gradient(f, 0, f.x0)) / 4;
  return sum;
}

struct Gradients {
  std::vector<double> G;            // ‖∇f‖² at x^0, x^1, ...
  std::vector<std::uint32_t> from;  // by reply: the x at which its gradient was started
  std::vector<std::uint32_t> at;    // by reply: the x that the server had
  std::size_t cuts = 0;             // replies with empty parts
};

Gradients run_of(const Federation<double>& f, const AlgorithmSpec& spec, std::uint32_t replies,
                 const std::function<double(ClientId, std::uint64_t)>& seconds, std::uint64_t seed) {
  const auto run_context = f.run_context(spec, seed);
  EventSimulation<double> clients(run_context, f.oracle_pointers(), with(seconds));
  const auto server = make_server<double>(run_context);
  Gradients run{{norm_sq(gradient(f, 0, f.x0))}, {}, {}};
  LoopHooks<double> hooks;
  hooks.on_commit = [&](const RoundCommit<double>& commit) {
    run.from.push_back(commit.replies[0].round);
    run.at.push_back(static_cast<std::uint32_t>(run.G.size() - 1));
    run.cuts += commit.replies[0].parts[0].shape == Shape::kNothing;
    if (server->broadcast().round == run.G.size()) run.G.push_back(norm_sq(gradient(f, 0, server->model())));
  };
  RoundLimits limits;
  limits.rounds = replies;
  limits.evaluate_every = 0;
  RunProgress progress;
  run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
  return run;
}

AlgorithmSpec noisy(const std::string& name, const Options& parameters) {
  return changed(spec_of(name, "identity", parameters, "theory"), 1);
}

double mean_of_all_but_last(const std::vector<double>& G) {
  double sum = 0;
  for (std::size_t t = 0; t + 1 < G.size(); ++t) sum += G[t];
  return sum / static_cast<double>(G.size() - 1);
}

// The noise of g_s does not depend on delays. So, with t = s + δ,
//   E f(x^{t+1}) ≤ f(x^t) − (γ/2)(G_t + G_s − L²‖x^t − x^s‖²) + (Lγ²/2)(G_s + σ²),
//   Σ_t ‖x^t − x^s‖² ≤ 2γ² Σ_s (τ² G_s + τσ²).
// For γ ≤ 1/(2L(τ+1)) the G_s cancel: avg G_t ≤ 2Δ⁰/(γT) + σ²(Lγ + 2γ²L²τ).
TEST(AsgdTheory, BoundsAverageGradientForDelaysUpToTau) {
  const Federation<double> f = equal_federation();
  constexpr std::uint32_t kSteps = 1500, kTau = 12;
  const AlgorithmSpec spec = noisy("asgd", {{"max_delay", std::to_string(kTau)}});
  const double gamma = gamma_of(*f.run_context(spec)), L = f.smoothness.L;
  EXPECT_DOUBLE_EQ(gamma, 1 / (2 * L * (kTau + 1)));
  double mean = 0;
  std::uint32_t longest = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Gradients run = run_of(f, spec, kSteps, linear, seed);
    ASSERT_EQ(run.G.size(), kSteps + 1);
    mean += mean_of_all_but_last(run.G) / kSeeds;
    for (std::size_t k = 0; k < run.at.size(); ++k) longest = std::max(longest, run.at[k] - run.from[k]);
  }
  EXPECT_LE(longest, kTau);
  EXPECT_GT(longest, kTau / 2);
  expect_bound(
      mean,
      2 * f.gap(f.x0) / (gamma * kSteps) + noise_of(f) * (L * gamma + 2 * std::pow(gamma * L, 2) * kTau),
      0.05, "asgd");
}

// Let x̂^t = x^t − Σ γ_δ g over the gradients that are being computed at t, except the one just started. If
// γ_a is the step that g_t will make,
//   x̂^{t+1} = x̂^t − γ_a g_t.
// So
//   E f(x̂^{t+1}) ≤ f(x̂^t) − (γ_a/2)(G_t (1 − Lγ_a) − L²‖x̂^t − x^t‖²) + Lγ_a²σ²/2,
//   E‖x̂^t − x^t‖² ≤ 2 Σ γ_δ² ((n−1) G_s + σ²).
// Summed over t, g_s occurs δ times. Since δγ_δ and nγ are at most 1/(4L),
//   Σ γ_δ G_s (1/2 − 1/16 − 1/16) ≤ Δ⁰ + (3/4) Lγσ² Σ γ_δ.
TEST(DelayAdaptiveAsgdTheory, BoundsWeightedGradientForAnyDelays) {
  const Federation<double> f = equal_federation();
  constexpr std::uint32_t kSteps = 2000;
  const AlgorithmSpec spec = noisy("delay_adaptive_asgd", {});
  const double gamma = gamma_of(*f.run_context(spec)), L = f.smoothness.L;
  EXPECT_DOUBLE_EQ(gamma, 1 / (4 * kWorkers * L));
  const auto seconds = [](ClientId i, std::uint64_t) { return i == 4 ? 60.0 : 1 + 0.1 * i; };
  double mean = 0, total = 0;
  std::uint32_t longest = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Gradients run = run_of(f, spec, kSteps, seconds, seed);
    double sum = 0;
    total = 0;
    for (std::size_t k = 0; k < kSteps; ++k) {
      const std::uint32_t delay = run.at[k] - run.from[k];
      const double step = 1 / (4 * L * std::max(kWorkers, delay));
      sum += step * run.G[run.from[k]];
      total += step;
      longest = std::max(longest, delay);
    }
    mean += sum / total / kSeeds;
  }
  EXPECT_GT(longest, 100u);
  expect_bound(mean, 8.0 / 3 * f.gap(f.x0) / total + 2 * gamma * L * noise_of(f), 0.05, "delay-adaptive");
}

// The S gradients at x^t are an unbiased minibatch: E f(x^{t+1}) ≤ f(x^t) − γ(1 − Lγ/2) G_t + Lγ²σ²/(2S).
TEST(RennalaTheory, BoundsAverageGradient) {
  const Federation<double> f = equal_federation();
  const double L = f.smoothness.L;
  for (const std::uint32_t S : {1u, 4u}) {
    const AlgorithmSpec spec = noisy("rennala", {{"gradients", std::to_string(S)}});
    const double gamma = gamma_of(*f.run_context(spec));
    EXPECT_DOUBLE_EQ(gamma, 1 / (2 * L));
    double mean = 0, steps = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const Gradients run = run_of(f, spec, 1200, linear, seed);
      mean += mean_of_all_but_last(run.G) / kSeeds;
      steps = static_cast<double>(run.G.size() - 1);
    }
    EXPECT_GT(steps, 100);
    expect_bound(mean, 2 * f.gap(f.x0) / (gamma * steps) + L * gamma * noise_of(f) / S, 0.1,
                 "S = " + std::to_string(S));
  }
  EXPECT_DOUBLE_EQ(gamma_of(*f.run_context(spec_of("rennala"))), 1 / L) << "without noise";
}

// M of the trials are in time, with E M = B and E M² = B² + V. So
//   E f(x^{t+1}) ≤ f(x^t) − γ G_t + (Lγ²/2)((1 + V/B²) G_t + σ²/B).
TEST(MindFlayerTheory, BoundsAverageGradientIfHalfOfTheTrialsAreCut) {
  const Federation<double> f = equal_federation();
  const double L = f.smoothness.L;
  for (const int trials : {1, 3}) {
    const Options options = {{"trials", std::to_string(trials)},
                             {"allotted_seconds", "1"},
                             {"p", "0.5"}};  // times are drawn from 0.5 to 1.5
    const AlgorithmSpec spec = noisy("mindflayer", options);
    const double gamma = gamma_of(*f.run_context(spec)), B = kWorkers * trials * 0.5, V = B / 2;
    EXPECT_DOUBLE_EQ(gamma, 1 / (2 * L));
    EXPECT_DOUBLE_EQ(gamma_of(*f.run_context(spec_of("mindflayer", "identity", options))),
                     1 / (L * (1 + V / (B * B))));
    constexpr std::uint32_t kSteps = 200;
    const std::uint32_t replies = kSteps * kWorkers * static_cast<std::uint32_t>(trials);
    double mean = 0, cuts = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const auto seconds = [seed](ClientId i, std::uint64_t request_id) {
        return drawn(i, request_id + 1000000 * seed);
      };
      const Gradients run = run_of(f, spec, replies, seconds, seed);
      ASSERT_EQ(run.G.size(), kSteps + 1);
      mean += mean_of_all_but_last(run.G) / kSeeds;
      cuts += static_cast<double>(run.cuts) / replies / kSeeds;
    }
    EXPECT_NEAR(cuts, 0.5, 0.02);
    expect_bound(mean, 2 * f.gap(f.x0) / (gamma * kSteps) + L * gamma * noise_of(f) / B, 0.1,
                 std::to_string(trials) + " trials");
  }
}

// The server uses the gradients of the fastest clients. Which ones these are does not depend on the noise.
// The bound is that of ASGD for delays up to R − 1, for any speeds.
TEST(RingmasterTheory, BoundsAverageGradientForAnySpeeds) {
  const Federation<double> f = equal_federation();
  constexpr std::uint32_t kReplies = 2000, R = 4;
  const double L = f.smoothness.L;
  const auto seconds = [](ClientId i, std::uint64_t) { return i == 4 ? 60.0 : 1.0 + i; };
  for (const char* outdated : {"stop", "ignore"}) {
    const AlgorithmSpec spec =
        noisy("ringmaster", {{"delay_threshold", std::to_string(R)}, {"outdated", outdated}});
    const double gamma = gamma_of(*f.run_context(spec));
    EXPECT_DOUBLE_EQ(gamma, 1 / (4 * L * R));
    double mean = 0, steps = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const Gradients run = run_of(f, spec, kReplies, seconds, seed);
      mean += mean_of_all_but_last(run.G) / kSeeds;
      steps = static_cast<double>(run.G.size() - 1);
    }
    EXPECT_GT(steps, kReplies / 2);
    expect_bound(
        mean,
        2 * f.gap(f.x0) / (gamma * steps) + noise_of(f) * (L * gamma + 2 * std::pow(gamma * L, 2) * (R - 1)),
        0.05, outdated);
  }
}

// One local step without noise. Let h = γγ_l, and for the replies of a buffer let a_k = 1/(B√(1+δ_k)),
// A_t = Σ a_k ≤ 1 and D_t = Σ a_k G_{s_k}. Then
//   f(x^{t+1}) ≤ f(x^t) − (h/2)(A_t G_t + (1 − Lh) D_t) + (hL²/2) Σ a_k ‖x^t − x^{s_k}‖²,
//   ‖x^t − x^s‖² ≤ δh² Σ D_j over s ≤ j < t.
// For delays up to τ and h ≤ 1/(2L(τ+1)) the D cancel: Σ A_t G_t ≤ 2Δ⁰/h.
TEST(FedBuffTheory, BoundsWeightedGradientForDelaysUpToTau) {
  const Federation<double> f = equal_federation();
  constexpr std::uint32_t kReplies = 3000, kBuffer = 2, kTau = 8;
  const double h = 1 / (2 * f.smoothness.L * (kTau + 1));
  const AlgorithmSpec spec = spec_of(
      "fedbuff", "identity",
      {{"buffer", std::to_string(kBuffer)}, {"local_steps", "1"}, {"local_step_size", number_text(h)}}, "1");
  const auto seconds = [](ClientId i, std::uint64_t) { return i == 4 ? 4.0 : 1 + 0.1 * i; };
  const Gradients run = run_of(f, spec, kReplies, seconds, 1);
  double sum = 0;
  std::uint32_t longest = 0;
  for (std::size_t k = 0; k < run.at.size(); ++k) {
    const std::uint32_t delay = run.at[k] - run.from[k];
    sum += run.G[run.at[k]] / (kBuffer * std::sqrt(1.0 + delay));
    longest = std::max(longest, delay);
  }
  EXPECT_LE(longest, kTau);
  EXPECT_GT(longest, kTau / 2);
  expect_bound(sum, 2 * f.gap(f.x0) / h, 0.3, "fedbuff");
}

// The time of R steps in seconds: Lemma 4.1 of arXiv:2501.16168 gives t(R) = 2 min_m (R + m) / Σ_{i≤m} 1/τ_i.
TEST(RingmasterTheory, BoundsTimeOfRStepsForSquareRootSpeeds) {
  constexpr std::uint32_t kMany = 1000, kBlocks = 20;
  const Federation<double> f(kMany, 2);
  const auto roots = [](ClientId i, std::uint64_t) { return std::sqrt(i + 1.0); };
  const auto theorem = [](double R) {
    double rate = 0, least = 0;
    for (int m = 1; m <= static_cast<int>(kMany); ++m) {
      rate += 1 / std::sqrt(m);
      least = m == 1 ? 2 * (R + 1) : std::min(least, 2 * (R + m) / rate);
    }
    return least;
  };
  for (const char* outdated : {"stop", "ignore"}) {
    const auto measured = [&](std::uint32_t R) {
      const auto run_context =
          f.run_context(spec_of("ringmaster", "identity",
                                {{"delay_threshold", std::to_string(R)}, {"outdated", outdated}}, "1e-9"));
      EventSimulation<double> clients(run_context, f.oracle_pointers(), with(roots));
      const auto server = make_server<double>(run_context);
      RunProgress progress;
      RoundLimits limits;
      limits.rounds = 1'000'000;
      limits.evaluate_every = 0;
      std::atomic<bool> stop = false;
      LoopHooks<double> hooks;
      hooks.on_round = [&](std::uint32_t) { stop = server->broadcast().round == R * kBlocks; };
      hooks.stop = &stop;
      run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
      EXPECT_EQ(server->broadcast().round, R * kBlocks);
      return clients.now() / kBlocks;
    };
    for (const std::uint32_t R : {1u, 16u}) {
      EXPECT_LE(measured(R), theorem(R)) << R;
      EXPECT_GE(measured(R), theorem(R) / 4) << R;
    }
    const double slope = std::log(measured(256) / measured(4)) / std::log(64);
    EXPECT_NEAR(slope / (std::log(theorem(256) / theorem(4)) / std::log(64)), 1, 0.1) << slope;
  }
}

}  // namespace
}  // namespace gradwire
