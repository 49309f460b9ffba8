// The inequality of each algorithm's theorem, or another of its guarantees, at the theory step sizes, on
// quadratics with known constants. theory_test.cpp tests the first algorithms.
#include <gtest/gtest.h>

#include "algorithms/ef21_pp.h"
#include "algorithms/fwd_grad.h"
#include "base/serialize.h"
#include "tests/algorithms/theory.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of theorem tests

// E‖∇f(x̂)‖² ≤ 2 Δ⁰/(γ T): the theorems of MARINA (2102.07845, 2.1, 3.1, 4.1; 2110.03300, 4), PAGE
// (2008.10898, 1), DASHA (2202.01268, 6.1, 6.4), the EF21 family (2106.05203, 1 and 3; 2110.03294;
// 2402.10774, 1), and EF21-P and EF21-BC (derived in their headers). All start with exact gradients.
TEST(NonconvexTheory, BoundsAverageGradientOverSeeds) {
  const std::vector<AlgorithmSpec> specs = {
      spec_of("marina", "randk:k=3"),
      spec_of("marina", "natural"),
      spec_of("marina", "permk"),
      changed(spec_of("vr_marina", "randk:k=3"), 2, 1),
      spec_of("pp_marina", "randk:k=5", {{"r", "2"}}),
      changed(spec_of("page"), 3, 1),
      spec_of("dasha", "randk:k=3"),
      spec_of("dasha", "permk"),
      changed(spec_of("dasha_page", "randk:k=3"), 2, 1),
      spec_of("ef21_w", "topk:k=3"),
      spec_of("ef21_plus", "topk:k=3"),
      spec_of("ef21_pp", "topk:k=3", {{"p", "0.5"}}),
      spec_of("ef21_bc", "topk:k=5", {{"compressor_down", "topk:k=5"}}),
      spec_of("ef21_p", "identity", {{"compressor_down", "topk:k=5"}}),
  };
  const Federation<double> f(6, 15);
  constexpr int kRounds = 150;
  for (const AlgorithmSpec& spec : specs) {
    double mean = 0, gamma = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      const auto run_context = f.run_context(spec, static_cast<std::uint64_t>(seed));
      gamma = gamma_of(*run_context);
      mean += average_grad_norm_sq(run<double>(f, run_context, kRounds)) / kSeeds;
    }
    EXPECT_LE(mean, 2 * f.gap(f.x0) / (gamma * kRounds)) << spec.name << " " << spec.compressor;
    EXPECT_GE(mean, 0.01 * f.gap(f.x0) / (gamma * kRounds))
        << spec.name << ": the bound is too loose to test anything";
  }
}

// f(x^T) − f* ≤ (1 − 1/√κ)^T (f(x^0) − f* + (μ/2)‖x^0 − x*‖²).
TEST(NesterovTheory, BoundsGapByInverseRootOfKappa) {
  const Federation<double> f(6, 15, 1, 0.01);
  const auto run_context = f.run_context(spec_of("nesterov"));
  const double mu = f.smoothness.mu, kappa = f.smoothness.L / mu;
  for (const std::uint32_t rounds : {5u, 20u, 60u, 150u}) {
    const double bound = std::pow(1 - 1 / std::sqrt(kappa), rounds) *
                         (f.gap(f.x0) + mu / 2 * squared_distance(f.x0, f.optimum));
    EXPECT_LE(f.gap(run<double>(f, run_context, rounds).model), bound + 1e-15) << rounds;
  }
}

// arXiv:1901.09401, Theorem 3.1: E‖x^T − x*‖² ≤ (1−γμ)^T ‖x^0 − x*‖² + 2γσ²/μ.
TEST(SgdNiceTheory, BoundsDistanceByNeighbourhood) {
  const Federation<double> f(6, 15);
  double noise = 0;
  for (const auto& oracle : f.oracles) {
    Vec<double> g(15);
    oracle->loss_and_gradient(f.optimum, {}, g);
    noise += squared_distance(g, Vec<double>(15)) / 6;
  }
  const double n = 6, tau = 2, sigma_sq = (n - tau) / (tau * (n - 1)) * noise, mu = f.smoothness.mu;
  constexpr int kRounds = 150;
  double mean = 0, gamma = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const auto run_context =
        f.run_context(changed(spec_of("sgd_nice"), 0, 1.0 / 3), static_cast<std::uint64_t>(seed));
    gamma = gamma_of(*run_context);
    mean += squared_distance(run<double>(f, run_context, kRounds).model, f.optimum) / kSeeds;
  }
  const Smoothness& s = f.smoothness;
  EXPECT_DOUBLE_EQ(
      gamma, 1 / (2 * (n * (tau - 1) / (tau * (n - 1)) * s.L + (n - tau) / (tau * (n - 1)) * s.L_max())));
  EXPECT_LE(mean, std::pow(1 - gamma * mu, kRounds) * squared_distance(f.x0, f.optimum) +
                      2 * gamma * sigma_sq / mu);
}

// As for dcgd with ω = (d − 1)/K: E‖x^T − x*‖² ≤ (1−γμ)^T ‖x⁰ − x*‖² + (2γω/(μ n)) mean‖∇f_i(x*)‖².
TEST(FwdGradTheory, BoundsDistanceByNeighbourhood) {
  const Federation<double> f(6, 15);
  double noise = 0;
  for (const auto& oracle : f.oracles) {
    Vec<double> g(15);
    oracle->loss_and_gradient(f.optimum, {}, g);
    noise += squared_distance(g, Vec<double>(15)) / 6;
  }
  const double mu = f.smoothness.mu;
  constexpr int kRounds = 150;
  for (const char* distribution : {"rademacher", "gaussian"}) {
    const double omega = (*distribution == 'g' ? 16.0 : 14.0) / 4;
    double mean = 0, gamma = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      const auto run_context = f.run_context(
          spec_of("fwd_grad", "identity", {{"directions", "4"}, {"distribution", distribution}}),
          static_cast<std::uint64_t>(seed));
      gamma = gamma_of(*run_context);
      mean += squared_distance(run<double>(f, run_context, kRounds).model, f.optimum) / kSeeds;
    }
    EXPECT_DOUBLE_EQ(gamma, 1 / (f.smoothness.L + 2 * f.smoothness.L_max() * omega / 6));
    EXPECT_LE(mean, std::pow(1 - gamma * mu, kRounds) * squared_distance(f.x0, f.optimum) +
                        2 * gamma * omega / (mu * 6) * noise);
    EXPECT_GE(mean, 0.01 * 2 * gamma * omega / (mu * 6) * noise) << "the bound is too loose to test anything";
  }
}

// E g = ∇f and E‖g‖² = (1 + ω) ‖∇f‖².
TEST(FwdGradTheory, GivesMeanAndVarianceOfEstimate) {
  constexpr std::size_t kDim = 9;
  constexpr int kDraws = 40'000;
  Vec<double> grad(kDim), v(kDim);
  for (std::size_t j = 0; j < kDim; ++j) grad[j] = static_cast<double>(j) - 3.5;
  const double size = squared_distance(grad, Vec<double>(kDim));
  for (const bool gaussian : {false, true}) {
    for (const int K : {1, 3}) {
      Vec<double> mean(kDim);
      double second = 0;
      for (int draw = 0; draw < kDraws; ++draw) {
        DirectionStream<double> directions({5, 2, static_cast<std::uint32_t>(draw), RngDomain::kCompressor},
                                           gaussian);
        Vec<double> g(kDim);
        for (int k = 0; k < K; ++k) {
          directions.next(v);
          double s = 0;
          for (std::size_t j = 0; j < kDim; ++j) s += grad[j] * v[j];
          for (std::size_t j = 0; j < kDim; ++j) g[j] += s * v[j] / K;
        }
        for (std::size_t j = 0; j < kDim; ++j) mean[j] += g[j] / kDraws;
        second += squared_distance(g, Vec<double>(kDim)) / kDraws;
      }
      const double omega = (gaussian ? kDim + 1.0 : kDim - 1.0) / K;
      EXPECT_LE(squared_distance(mean, grad), 4 * omega * size / kDraws);
      EXPECT_NEAR(second / size, 1 + omega, 0.05 * (1 + omega)) << gaussian << K;
    }
  }
}

// arXiv:2202.09357, after T local steps: E Ψ^T ≤ (1 − min(γμ, p²))^T Ψ⁰ with
//   Ψ = Σ‖x_i − x*‖² + (γ/p)² Σ‖h_i − ∇f_i(x*)‖².
// Each round has at least one local step, so the bound also holds with the number of rounds as T.
TEST(ProxSkipTheory, BoundsLyapunovFunctionAndShiftsSumToZero) {
  const Federation<double> f(6, 15);
  std::vector<Vec<double>> at_optimum(6, Vec<double>(15));
  double norm_at_optimum = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    f.oracles[i]->loss_and_gradient(f.optimum, {}, at_optimum[i]);
    norm_at_optimum += squared_distance(at_optimum[i], Vec<double>(15));
  }
  constexpr int kRounds = 40;
  double mean = 0, rate = 0, scale = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const auto run_context = f.run_context(spec_of("proxskip"), static_cast<std::uint64_t>(seed));
    const double gamma = gamma_of(*run_context), p = parameter(*run_context, "p");
    EXPECT_DOUBLE_EQ(gamma, 1 / f.smoothness.L_max());
    EXPECT_DOUBLE_EQ(p, std::sqrt(gamma * f.smoothness.mu));
    rate = 1 - std::min(gamma * f.smoothness.mu, p * p);
    scale = std::pow(gamma / p, 2);
    const auto trace = run<double>(f, run_context, kRounds);
    double psi = 6 * squared_distance(trace.model, f.optimum);
    Vec<double> sum(15);
    for (std::size_t i = 0; i < 6; ++i) {
      Loader loader(trace.client_states[i]);
      Vec<double> h_i, sent;
      loader(h_i), loader(sent);
      ASSERT_TRUE(loader.done());
      for (std::size_t j = 0; j < sent.size(); ++j) h_i[j] += p / gamma * (trace.model[j] - sent[j]);
      for (std::size_t j = 0; j < 15; ++j) sum[j] += h_i[j];
      psi += scale * squared_distance(h_i, at_optimum[i]);
    }
    EXPECT_LT(squared_distance(sum, Vec<double>(15)), 1e-20);
    mean += psi / kSeeds;
  }
  EXPECT_LE(mean,
            std::pow(rate, kRounds) * (6 * squared_distance(f.x0, f.optimum) + scale * norm_at_optimum));
}

// With local steps on heterogeneous data, FedAvg stops far from x* and FedProx closer to it. SCAFFOLD and
// ProxSkip converge.
TEST(ClientDrift, IsSmallerForFedProxThanFedAvgAndZeroForScaffold) {
  const Federation<double> f(6, 15);
  const auto gap = [&](const AlgorithmSpec& spec, std::uint32_t rounds) {
    return f.gap(run<double>(f, f.run_context(spec), rounds).model);
  };
  const Options steps = {{"local_steps", "10"}, {"local_step_size", "0.3"}};
  Options proximal = steps;
  proximal.emplace_back("mu", "0.5");
  const double fedavg = gap(spec_of("fedavg", "identity", steps), 400);
  const double fedprox = gap(spec_of("fedprox", "identity", proximal), 400);
  EXPECT_GT(fedavg, 1e-4);
  EXPECT_LT(fedprox, 0.7 * fedavg);
  EXPECT_GT(fedprox, 1e-6);
  for (const char* option : {"1", "2"}) {
    Options scaffold = {{"local_steps", "10"}, {"local_step_size", "0.05"}, {"option", option}};
    EXPECT_LT(gap(spec_of("scaffold", "identity", scaffold), 400), 1e-12) << option;
  }
  EXPECT_LT(gap(spec_of("proxskip"), 400), 1e-12);
}

TEST(Scaffold, ConvergesLinearlyAtTheoryStep) {
  const Federation<double> f(6, 15);
  const auto run_context = f.run_context(spec_of("scaffold", "identity", {{"local_steps", "5"}}));
  EXPECT_DOUBLE_EQ(parameter(*run_context, "local_step_size"),
                   std::min(1 / (81 * 5 * f.smoothness.L_max()), 1 / (15 * f.smoothness.mu * 5)));
  const double first = f.gap(run<double>(f, run_context, 400).model),
               second = f.gap(run<double>(f, run_context, 800).model);
  EXPECT_LT(first, 0.2 * f.gap(f.x0));
  EXPECT_GT(second, 1e-12);
  EXPECT_LT(second, 0.1 * first);
}

// Adaptive server steps with momentum reach the optimum.
TEST(FedOpt, ReachesOptimumOfEqualClients) {
  const Federation<double> f(1, 15);
  for (const auto& [name, step] :
       {std::pair{"fedadagrad", "0.5"}, {"fedyogi", "0.05"}, {"fedadam", "0.05"}}) {
    const auto run_context =
        f.run_context(spec_of(name, "identity", {{"local_step_size", "0.5"}, {"tau", "0.1"}}, step));
    EXPECT_LT(f.gap(run<double>(f, run_context, 1500).model), 1e-6) << name;
  }
}

// These algorithms converge linearly to x*, while DCGD only reaches a neighbourhood.
TEST(VarianceReduction, RemovesNoiseOfCompressionSamplingAndBatches) {
  const Federation<double> f(6, 15);
  const auto gap = [&](const AlgorithmSpec& spec, std::uint32_t rounds) {
    return f.gap(run<double>(f, f.run_context(spec), rounds).model);
  };
  EXPECT_GT(gap(spec_of("dcgd", "randk:k=3"), 4000), 1e-6);
  EXPECT_LT(gap(spec_of("diana", "randk:k=3"), 4000), 1e-12);
  EXPECT_LT(gap(spec_of("adiana", "randk:k=3"), 4000), 1e-12);
  EXPECT_LT(gap(changed(spec_of("vr_diana", "randk:k=5", {}, "0.1"), 1, 1), 4000), 1e-12);
  EXPECT_LT(gap(changed(spec_of("cofig", "randk:k=5", {}, "0.1"), 0, 0.5), 4000), 1e-12);
  EXPECT_LT(gap(changed(spec_of("frecon", "randk:k=5", {}, "0.1"), 0, 0.5), 4000), 1e-10);
  EXPECT_LT(gap(changed(spec_of("dasha_mvr", "randk:k=5", {{"b", "0.2"}}, "0.1"), 0, 1), 4000), 1e-12);
}

// Acceleration gives a smaller gap after the same number of rounds if the conditioning is bad and the noise
// is small.
TEST(Adiana, OutperformsDianaOnIllConditionedProblems) {
  Federation<double> f(1, 50);
  for (std::size_t j = 0; j < 50; ++j) f.oracles[0]->a[j] = std::pow(10, -4.0 * static_cast<double>(j) / 49);
  f.smoothness.L = f.smoothness.L_i[0] = 1;
  f.smoothness.mu = 1e-4;
  const auto gap = [&](const char* name) {
    return f.gap(run<double>(f, f.run_context(spec_of(name, "natural")), 40000).model);
  };
  EXPECT_LT(gap("adiana"), 0.01 * gap("diana"));
}

// On batches of one sample, momentum lowers the level at which the gap stops falling (arXiv:2305.15155).
TEST(Ef21SgdmTheory, EndsCloserToOptimumThanEf21Sgd) {
  const Federation<double> f(6, 15);
  const auto gap = [&](const AlgorithmSpec& spec) {
    double mean = 0;
    for (int seed = 1; seed <= 5; ++seed)
      mean += f.gap(run<double>(f, f.run_context(changed(spec, 1, 1), static_cast<std::uint64_t>(seed)), 3000)
                        .model) /
              5;
    return mean;
  };
  const double plain = gap(spec_of("ef21_sgd", "topk:k=2", {}, "0.02"));
  EXPECT_LT(gap(spec_of("ef21_sgdm", "topk:k=2", {{"eta", "0.05"}}, "0.02")), 0.5 * plain);
}

// At steps well above theory EF14 stalls, while EF21 converges (arXiv:2106.05203, experiments).
TEST(Ef14, StallsAtConstantStepAtWhichEf21Converges) {
  const Federation<double> f(6, 15);
  const std::string step = "0.3";
  EXPECT_LT(f.gap(run<double>(f, f.run_context(spec_of("ef21", "topk:k=3", {}, step)), 3000).model), 1e-12);
  EXPECT_GT(f.gap(run<double>(f, f.run_context(spec_of("ef14", "topk:k=3", {}, step)), 3000).model), 1e-6);
}

TEST(StepSizes, MatchFormulasOfTheoremsForEveryAlgorithm) {
  const Federation<double> f(6, 15);
  const Smoothness& s = f.smoothness;
  const auto step = [&](const AlgorithmSpec& spec) { return gamma_of(*f.run_context(spec)); };
  const double omega = 4, alpha = 3.0 / 15, p = 3.0 / 15, n = 6, L = s.L, Lt = s.L_tilde(), Lm = s.L_max();
  const double xi = std::sqrt(1 - alpha) / (1 - std::sqrt(1 - alpha));
  EXPECT_DOUBLE_EQ(step(spec_of("nesterov")), 1 / L);
  EXPECT_DOUBLE_EQ(step(spec_of("fedavg")), 1);
  EXPECT_DOUBLE_EQ(step(spec_of("dasha", "randk:k=3")),
                   1 / (L + Lt * std::sqrt(16 * omega * (2 * omega + 1) / n)));
  EXPECT_DOUBLE_EQ(step(changed(spec_of("cofig", "randk:k=3"), 0, 0.5)),
                   std::min({1 / (2 * Lm), 3 / (5 * Lm * 5 * std::pow(n, 2.0 / 3)),
                             3 / (5 * Lm * std::pow(5, 1.5) * std::sqrt(n))}));
  EXPECT_DOUBLE_EQ(step(changed(spec_of("frecon", "randk:k=3"), 0, 0.5)),
                   1 / (Lm * (1 + std::sqrt(10 * 25 * n) / 3)));
  EXPECT_DOUBLE_EQ(step(spec_of("pp_marina", "randk:k=3", {{"r", "2"}})),
                   1 / (Lm * (1 + std::sqrt((1 - p * 2 / n) * 5 / (p * 2 / n * 2)))));
  const double b = 2, p_batch = std::min(p, b / (4 + b));
  EXPECT_DOUBLE_EQ(step(changed(spec_of("vr_marina", "randk:k=3"), 2, 1)),
                   1 / (L + std::sqrt((1 - p_batch) / (p_batch * n)) *
                                std::sqrt(omega * Lt * Lt + (1 + omega) * Lm * Lm / b)));
  EXPECT_DOUBLE_EQ(step(changed(spec_of("page"), 2, 1)),
                   1 / (Lm * (1 + std::sqrt((24.0 / 26) / (2.0 / 26 * 2)))));
  EXPECT_DOUBLE_EQ(step(spec_of("ef21_w", "topk:k=3")), 1 / (L + s.L_avg() * xi));
  EXPECT_DOUBLE_EQ(step(spec_of("ef21_plus", "topk:k=3")), 1 / (L + Lt * xi));
  EXPECT_DOUBLE_EQ(step(spec_of("ef21_p", "identity", {{"compressor_down", "topk:k=3"}})),
                   1 / (L * (1 + xi)));
  EXPECT_DOUBLE_EQ(step(spec_of("ef21_bc", "topk:k=3")), 1 / (L + Lt * xi));
  EXPECT_DOUBLE_EQ(step(spec_of("ef21_sgdm", "topk:k=3", {{"eta", "0.1"}})),
                   std::min(alpha / (20 * Lt), 0.1 / (7 * L)));
  EXPECT_DOUBLE_EQ(step(spec_of("ef21_pp", "topk:k=3", {{"p", "1"}})), 1 / (L + Lt * xi));
}

// Compares the best s and ρ with a grid.
TEST(Ef21PpTheory, FindsLargestStepOverFreeConstants) {
  for (const double alpha : {0.01, 0.2, 0.9})
    for (const double p : {0.05, 0.5, 1.0}) {
      double best = std::numeric_limits<double>::infinity();
      for (double s = 1e-4; s < alpha / (1 - alpha); s *= 1.05)
        for (double rho = 1e-5; rho < 1e3; rho *= 1.1) {
          const double theta = 1 - (1 + s) * (1 - alpha), beta = (1 + 1 / s) * (1 - alpha);
          const double theta_p = theta * p - rho * (1 - p);
          if (theta_p > 0) best = std::min(best, (beta * p + (1 + 1 / rho) * (1 - p)) / theta_p);
        }
      const double found = ef21_pp_ratio(alpha, p);
      EXPECT_LE(found, best * (1 + 1e-9));
      EXPECT_GE(found, best * 0.9) << alpha << " " << p;
    }
}

}  // namespace
}  // namespace gradwire
