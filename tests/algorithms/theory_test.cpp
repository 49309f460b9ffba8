// The inequalities of the theorems at the theory step sizes, on quadratics with known constants.
#include "tests/algorithms/theory.h"

#include <gtest/gtest.h>

#include "base/serialize.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of theorem tests

TEST(GdTheory, BoundsGapByOneMinusGammaMuARound) {
  const Federation<double> f(6, 15);
  const auto run_context = f.run_context(spec_of("gd"));
  EXPECT_DOUBLE_EQ(gamma_of(*run_context), 1 / f.smoothness.L);
  constexpr int kRounds = 50;
  const auto trace = run<double>(f, run_context, kRounds);
  const double gap0 = f.gap(f.x0), gamma = gamma_of(*run_context);
  EXPECT_LE(average_grad_norm_sq(trace), 2 * gap0 / (gamma * kRounds));
  EXPECT_LE(f.gap(trace.model), std::pow(1 - gamma * f.smoothness.mu, kRounds) * gap0);
}

// arXiv:2106.05203, Theorem 1, with G⁰ = 0.
TEST(Ef21Theory, BoundsAverageGradientByTheorem1) {
  const Federation<double> f(6, 15);
  for (const char* compressor : {"topk:k=1", "topk:k=5", "topk:k=15"}) {
    const auto run_context = f.run_context(spec_of("ef21", compressor));
    constexpr int kRounds = 200;
    const auto trace = run<double>(f, run_context, kRounds);
    EXPECT_LE(average_grad_norm_sq(trace), 2 * f.gap(f.x0) / (gamma_of(*run_context) * kRounds))
        << compressor;
  }
}

// arXiv:2106.05203, Theorem 2: Ψ^T ≤ (1 − γμ)^T Ψ⁰ with Ψ = f − f* + (γ/θ) G.
TEST(Ef21Theory, BoundsLyapunovFunctionByTheorem2) {
  const Federation<double> f(6, 15);
  const double alpha = 3.0 / 15, theta = 1 - std::sqrt(1 - alpha), beta = (1 - alpha) / theta;
  const double gamma = std::min(1 / (f.smoothness.L + f.smoothness.L_tilde() * std::sqrt(2 * beta / theta)),
                                theta / (2 * f.smoothness.mu));
  const auto run_context = f.run_context(spec_of("ef21", "topk:k=3", {}, std::to_string(gamma)));
  constexpr int kRounds = 100;
  const auto trace = run<double>(f, run_context, kRounds);
  EXPECT_LE(f.gap(trace.model), std::pow(1 - gamma * f.smoothness.mu, kRounds) * f.gap(f.x0) * 1.0001);
}

// arXiv:2102.07845, Theorem 2.1: E‖∇f(x̂)‖² ≤ 2 Δ⁰/(γ T).
TEST(MarinaTheory, BoundsMeanOverSeedsByTheorem21) {
  const Federation<double> f(6, 15);
  constexpr int kRounds = 100;
  double mean = 0, gamma = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const auto run_context = f.run_context(spec_of("marina", "randk:k=3"), static_cast<std::uint64_t>(seed));
    gamma = gamma_of(*run_context);
    mean += average_grad_norm_sq(run<double>(f, run_context, kRounds)) / kSeeds;
  }
  EXPECT_LE(mean, 2 * f.gap(f.x0) / (gamma * kRounds));
  EXPECT_GE(mean, 0.01 * f.gap(f.x0) / (gamma * kRounds)) << "the bound is too loose to test anything";
}

TEST(MarinaTheory, BoundsGapUnderPl) {
  const Federation<double> f(6, 15);
  const double p = 3.0 / 15, omega = 4, mu = f.smoothness.mu;
  const double gamma = std::min(
      1 / (f.smoothness.L + f.smoothness.L_tilde() * std::sqrt(2 * (1 - p) * omega / (p * 6))), p / (2 * mu));
  constexpr int kRounds = 150;
  double mean = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const auto run_context = f.run_context(spec_of("marina", "randk:k=3", {}, std::to_string(gamma)),
                                           static_cast<std::uint64_t>(seed));
    mean += f.gap(run<double>(f, run_context, kRounds).model) / kSeeds;
  }
  EXPECT_LE(mean, std::pow(1 - gamma * mu, kRounds) * f.gap(f.x0));
}

// arXiv:1901.09269, Theorem 1: E V^T ≤ max(1 − γμ, 1 − α/2)^T V⁰, V = ‖x − x*‖² + M γ² mean‖h_i − ∇f_i(x*)‖².
TEST(DianaTheory, BoundsLyapunovFunction) {
  const Federation<double> f(6, 15);
  const double omega = 4, alpha = 1 / (1 + omega), M = 4 * omega / (6 * alpha);
  std::vector<Vec<double>> at_optimum(6, Vec<double>(15));
  double norm_at_optimum = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    f.oracles[i]->loss_and_gradient(f.optimum, {}, at_optimum[i]);
    norm_at_optimum += squared_distance(at_optimum[i], Vec<double>(15)) / 6;
  }
  constexpr int kRounds = 120;
  double mean = 0, gamma = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const auto run_context = f.run_context(spec_of("diana", "randk:k=3"), static_cast<std::uint64_t>(seed));
    gamma = gamma_of(*run_context);
    const auto trace = run<double>(f, run_context, kRounds);
    double v = squared_distance(trace.model, f.optimum);
    for (std::size_t i = 0; i < 6; ++i) {
      Loader loader(trace.client_states[i]);
      Vec<double> h_i;
      loader(h_i);
      v += M * gamma * gamma * squared_distance(h_i, at_optimum[i]) / 6;
    }
    mean += v / kSeeds;
  }
  const double v0 = squared_distance(f.x0, f.optimum) + M * gamma * gamma * norm_at_optimum;
  EXPECT_LE(mean, std::pow(std::max(1 - gamma * f.smoothness.mu, 1 - alpha / 2), kRounds) * v0);
}

// The estimator is unbiased given the past. A test of convergence cannot show this.
TEST(DianaTheory, HasConditionallyUnbiasedEstimator) {
  const Federation<double> f(5, 8);
  constexpr int kTrials = 4000;
  constexpr std::uint32_t kPast = 10;
  const auto past = f.run_context(spec_of("diana", "randk:k=2"), 1);
  const auto before = run<double>(f, past, kPast);
  Vec<double> mean_step(8), square(8);
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto run_context =
        f.run_context(spec_of("diana", "randk:k=2"), static_cast<std::uint64_t>(1000 + trial));
    const auto server = make_server<double>(run_context);
    ASSERT_TRUE(server->load(before.server_state));
    std::vector<Scratch<double>> scratch(5);
    std::vector<std::unique_ptr<ClientAlgorithm<double>>> clients;
    std::vector<Uplink<double>> uplinks;
    const auto body = server->broadcast();
    for (ClientId i = 0; i < 5; ++i) {
      clients.push_back(make_client<double>(run_context));
      ASSERT_TRUE(clients[i]->load(before.client_states[i]));
      const ClientContext<double> ctx{
          i, run_context->seed, 1, false, *f.oracles[i], run_context->compressor, scratch[i]};
      uplinks.push_back(clients[i]->reply(body, ctx));
      uplinks[i].client = i;
    }
    server->apply(std::vector<UplinkView<double>>(uplinks.begin(), uplinks.end()));
    for (std::size_t j = 0; j < 8; ++j) {
      const double g = (before.model[j] - server->model()[j]) / gamma_of(*run_context);
      mean_step[j] += g / kTrials;
      square[j] += g * g / kTrials;
    }
  }
  Vec<double> exact(8), one(8);
  for (const auto& oracle : f.oracles) {
    oracle->loss_and_gradient(before.model, {}, one);
    for (std::size_t j = 0; j < 8; ++j) exact[j] += one[j] / 5;
  }
  for (std::size_t j = 0; j < 8; ++j) {
    const double deviation = std::sqrt((square[j] - mean_step[j] * mean_step[j]) / kTrials);
    EXPECT_NEAR(mean_step[j], exact[j], 5 * deviation) << "coordinate " << j;
  }
}

// arXiv:1806.06573: linear convergence to a neighbourhood of size 2γω/(μn) mean‖∇f_i(x*)‖².
TEST(DcgdTheory, BoundsDistanceByNeighbourhood) {
  const Federation<double> f(6, 15);
  double noise = 0;
  for (const auto& oracle : f.oracles) {
    Vec<double> g(15);
    oracle->loss_and_gradient(f.optimum, {}, g);
    noise += squared_distance(g, Vec<double>(15)) / 6;
  }
  constexpr int kRounds = 150;
  double mean = 0, gamma = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const auto run_context = f.run_context(spec_of("dcgd", "randk:k=3"), static_cast<std::uint64_t>(seed));
    gamma = gamma_of(*run_context);
    mean += squared_distance(run<double>(f, run_context, kRounds).model, f.optimum) / kSeeds;
  }
  const double mu = f.smoothness.mu, omega = 4;
  EXPECT_LE(mean, std::pow(1 - gamma * mu, kRounds) * squared_distance(f.x0, f.optimum) +
                      2 * gamma * omega / (mu * 6) * noise);
}

TEST(StepSizes, MatchFormulasOfTheorems) {
  const Federation<double> f(6, 15);
  const Smoothness& s = f.smoothness;
  const auto step = [&](const AlgorithmSpec& spec) { return gamma_of(*f.run_context(spec)); };
  const double omega = 4, alpha = 3.0 / 15, p = 3.0 / 15;
  EXPECT_DOUBLE_EQ(step(spec_of("gd", "identity", {}, "theory*8")), 8 / s.L);
  EXPECT_DOUBLE_EQ(step(spec_of("dcgd", "randk:k=3")), 1 / (s.L + 2 * s.L_max() * omega / 6));
  EXPECT_DOUBLE_EQ(step(spec_of("diana", "randk:k=20%")), 1 / (s.L_max() * (1 + 6 * omega / 6)));
  EXPECT_DOUBLE_EQ(step(spec_of("marina", "randseqk:k=3")),
                   1 / (s.L + s.L_tilde() * std::sqrt((1 - p) * omega / (p * 6))));
  EXPECT_DOUBLE_EQ(step(spec_of("ef21", "topk:k=3")),
                   1 / (s.L + s.L_tilde() * std::sqrt(1 - alpha) / (1 - std::sqrt(1 - alpha))));
  EXPECT_DOUBLE_EQ(step(spec_of("ef21", "natural")),
                   1 / (s.L + s.L_tilde() * std::sqrt(0.125) / (1 - std::sqrt(0.125))));
}

}  // namespace
}  // namespace gradwire
