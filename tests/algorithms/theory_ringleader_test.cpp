// The theorem about Ringleader ASGD, on quadratics that differ from client to client.
//
// Let τ = 2n − 2, and let g^k = ĝ^k + e^k be the mean that step k uses: ĝ^k without noise, e^k its noise.
// ∇f(x^k) − ĝ^k is a mean of ∇f_i(x^k) − ∇f_i(x^s) with k − s ≤ τ, so
//   ‖∇f(x^k) − ĝ^k‖² ≤ L~² γ² τ Σ_{s=k−τ}^{k−1} ‖g^s‖².
//
// Without noise,
//   f(x^{k+1}) ≤ f(x^k) − (γ/2)(‖∇f‖² + (1 − Lγ)‖g^k‖² − ‖∇f − g^k‖²).
// Summed over k, the last two terms are at most 0 if Lγ + (L~τγ)² ≤ 1, as for γ = 1/(L + τL~). So
//   avg ‖∇f(x^k)‖² ≤ 2Δ⁰/(γT).
//
// With noise, e^k is drawn after x^{k−τ}, so E⟨∇f(x^k), e^k⟩ = E⟨∇f(x^k) − ∇f(x^{k−τ}), e^k⟩. Its absolute
// value is at most
//   (Lγ/2) Σ_{s=k−τ}^{k−1} ‖g^s‖² + (Lτγ/2) ‖e^k‖².
// Let c = Lγ(1 + τ) + (L~τγ)². Summed over k,
//   Σ ‖∇f‖² ≤ 2Δ⁰/γ − Σ ‖ĝ‖² + c Σ ‖g‖² + Lτγ Σ ‖e‖²,  and ‖g‖² ≤ 2‖ĝ‖² + 2‖e‖²,  E‖e‖² ≤ σ²/n.
// For γ = 1/(8nL~), c is at most 1/4 + 1/16, so the ĝ cancel: avg E‖∇f‖² ≤ 2Δ⁰/(γT) + (2c + Lτγ) σ²/n.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <string>

#include "tests/algorithms/theory.h"
#include "tests/simulated/virtual_run.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of theorem tests

constexpr std::uint32_t kRingClients = 5, kRingTau = 2 * kRingClients - 2;

struct RingRun {
  double mean = 0;  // mean of ‖∇f(x^t)‖² over the steps
  double steps = 0;
  std::uint32_t oldest = 0;  // the largest delay of a gradient when it arrives
};

RingRun ring_run(const Federation<double>& f, const AlgorithmSpec& spec, std::uint32_t replies,
                 const std::function<double(ClientId, std::uint64_t)>& seconds, std::uint64_t seed) {
  const auto run_context = f.run_context(spec, seed);
  EventSimulation<double> clients(run_context, f.oracle_pointers(), with(seconds));
  const auto server = make_server<double>(run_context);
  const auto norm_at = [&](View<double> x) {
    Vec<double> sum(f.d());
    for (std::size_t i = 0; i < f.n(); ++i) {
      const Vec<double> g = gradient(f, i, x);
      for (std::size_t j = 0; j < f.d(); ++j) sum[j] += g[j] / f.n();
    }
    return norm_sq(sum);
  };
  RingRun run;
  Vec<double> before = f.x0;
  LoopHooks<double> hooks;
  hooks.on_commit = [&](const RoundCommit<double>& commit) {
    const std::uint32_t now = server->broadcast().round;
    if (now == run.steps) return;
    run.oldest = std::max(run.oldest, now - 1 - commit.replies[0].round);
    run.mean += norm_at(before);
    run.steps += 1;
    before.assign(server->model().begin(), server->model().end());
  };
  RoundLimits limits;
  limits.rounds = replies;
  limits.evaluate_every = 0;
  RunProgress progress;
  run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
  run.mean /= run.steps;
  return run;
}

// Returns random times, shorter for clients with larger numbers. Client 3 always takes 6.5 seconds.
double uneven(ClientId i, std::uint64_t request_id) { return i == 3 ? 6.5 : drawn(i, request_id) / (i + 1); }

TEST(RingleaderTheory, BoundsAverageGradientWithoutNoise) {
  const Federation<double> f(kRingClients, 15);
  const AlgorithmSpec spec = spec_of("ringleader", "identity", {}, "theory");
  const double gamma = gamma_of(*f.run_context(spec));
  EXPECT_DOUBLE_EQ(gamma, 1 / (f.smoothness.L + kRingTau * f.smoothness.L_tilde()));
  for (const auto& seconds : {std::function<double(ClientId, std::uint64_t)>(linear), {uneven}}) {
    const RingRun run = ring_run(f, spec, 3000, seconds, 1);
    EXPECT_GT(run.steps, 100);
    expect_bound(run.mean, 2 * f.gap(f.x0) / (gamma * run.steps), 0.1, "ringleader");
  }
}

TEST(RingleaderTheory, BoundsAverageGradientWithNoise) {
  const Federation<double> f(kRingClients, 15);
  const AlgorithmSpec spec = changed(spec_of("ringleader", "identity", {}, "theory"), 1);
  const double gamma = gamma_of(*f.run_context(spec)), L = f.smoothness.L, L_tilde = f.smoothness.L_tilde();
  EXPECT_DOUBLE_EQ(gamma, 1 / (8 * kRingClients * L_tilde));
  const double noise = mean_of_clients(f, [&](std::size_t i) {
    double sum = 0;
    for (std::uint32_t s = 0; s < 4; ++s)
      sum += squared_distance(gradient(f, i, f.x0, {&s, 1}), gradient(f, i, f.x0)) / 4;
    return sum;
  });
  double mean = 0, steps = 0;
  std::uint32_t oldest = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto seconds = [seed](ClientId i, std::uint64_t request_id) {
      return uneven(i, request_id + 1000000 * seed);
    };
    const RingRun run = ring_run(f, spec, 3000, seconds, seed);
    mean += run.mean / kSeeds;
    steps += run.steps / kSeeds;
    oldest = std::max(oldest, run.oldest);
  }
  EXPECT_LE(oldest, kRingTau);
  const double share = gamma * L * (3 * kRingTau + 2) + 2 * std::pow(gamma * L_tilde * kRingTau, 2);
  expect_bound(mean, 2 * f.gap(f.x0) / (gamma * steps) + share * noise / kRingClients, 0.05, "ringleader");
}

// A round of n steps takes at least the slowest client's time and at most twice that, for any speeds of the
// others. Synchronous SGD takes the slowest client's time for a single step.
TEST(RingleaderTheory, BoundsTimeOfARoundBySlowestClientForSquareRootSpeeds) {
  const auto roots = [](ClientId i, std::uint64_t) { return std::sqrt(i + 1.0); };
  const auto seconds_of_a_step = [&](std::uint32_t n) {
    const Federation<double> f(n, 2);
    const auto run_context = f.run_context(spec_of("ringleader", "identity", {}, "1e-9"));
    EventSimulation<double> clients(run_context, f.oracle_pointers(), with(roots));
    const auto server = make_server<double>(run_context);
    const std::uint32_t steps = 10 * n;
    std::atomic<bool> stop = false;
    LoopHooks<double> hooks;
    hooks.on_round = [&](std::uint32_t) { stop = server->broadcast().round >= steps; };
    hooks.stop = &stop;
    RoundLimits limits;
    limits.rounds = 100'000'000;
    limits.evaluate_every = 0;
    RunProgress progress;
    run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
    return clients.now() / steps;
  };
  for (const std::uint32_t n : {16u, 256u}) {
    EXPECT_GE(seconds_of_a_step(n), 0.9 * std::sqrt(n) / n) << n;
    EXPECT_LE(seconds_of_a_step(n), 2 * std::sqrt(n) / n) << n;
  }
  const double slope = std::log(seconds_of_a_step(256) / seconds_of_a_step(16)) / std::log(16);
  EXPECT_NEAR(slope / -0.5, 1, 0.1) << slope;
}

}  // namespace
}  // namespace gradwire
