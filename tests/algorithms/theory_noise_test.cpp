// Theorems about noise (batches of one, momentum), the PL condition, and clients with individual
// probabilities, on quadratics with known constants. R = ‖x⁺ − x‖². Comments derive the constants that the
// papers leave open.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "algorithms/core/params.h"
#include "algorithms/ef21_pp.h"
#include "base/config_error.h"
#include "tests/algorithms/theory.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of theorem tests

double mean_average_gradient(const Federation<double>& f, const AlgorithmSpec& spec, std::uint32_t rounds) {
  return mean_over_seeds(f, spec, rounds, kSeeds,
                         [](const Trace<double>& trace, const auto&) { return average_grad_norm_sq(trace); });
}

// Returns mean_i E‖∇f_i(x; ξ) − ∇f_i(x)‖² of single samples.
double sample_noise(const Federation<double>& f, View<double> x) {
  return mean_of_clients(f, [&](std::size_t i) {
    double sum = 0;
    for (std::uint32_t s = 0; s < 4; ++s)
      sum += squared_distance(gradient(f, i, x, {&s, 1}), gradient(f, i, x)) / 4;
    return sum;
  });
}

// arXiv:2202.01268, Theorem 6.7. h_i⁺ − ∇f_i(x⁺) = (1−b)(h_i − ∇f_i(x)) + noise of at most
// (2b²σ² + 2(1−b)²L_s²R)/B per client. With EF21's kind of Lyapunov function and
// γ ≤ 1/(L + √(16ω(2ω+1)/n (L~² + (1+2b)(1−b)²L_s²/B) + 4(1−b)²L_s²/(bnB))),
//   mean_t E‖∇f(x^t)‖² ≤ 2Δ⁰/(γT) + (σ²/B)(16ω(2ω+1)b²(1+2b) + 4b)/n.
// The test measures σ² along the run.
TEST(DashaMvrTheory, BoundsAverageGradientOnBatchesOfOneWithMomentum) {
  const Federation<double> f = sampled_federation();
  const Smoothness& k = f.smoothness;
  const double n = 6, omega = 4, ww = omega * (2 * omega + 1);
  for (const double b : {0.05, 0.3}) {
    const double rest = std::pow((1 - b) * k.L_s, 2);
    const double largest =
        1 /
        (k.L + std::sqrt(16 * ww / n * (std::pow(k.L_tilde(), 2) + (1 + 2 * b) * rest) + 4 * rest / (b * n)));
    for (const std::string& step : {std::string("theory"), number_text(largest)}) {
      const AlgorithmSpec spec = changed(spec_of("dasha_mvr", "randk:k=3", {{"b", number_text(b)}}, step), 1);
      const double gamma = gamma_of(*f.run_context(spec));
      EXPECT_LE(gamma, largest);
      constexpr std::uint32_t kRounds = 400;
      double mean = 0, noise = 0;
      for (int seed = 1; seed <= kSeeds; ++seed) {
        const auto run_context = f.run_context(spec, static_cast<std::uint64_t>(seed));
        const auto trace =
            run<double>(f, run_context, kRounds, {}, {},
                        [&](std::uint32_t, ServerAlgorithm<double>& server, FaultSimulation<double>&,
                            RunProgress&) { noise += sample_noise(f, server.model()) / kRounds / kSeeds; });
        mean += average_grad_norm_sq(trace) / kSeeds;
      }
      const double bound =
          2 * f.gap(f.x0) / (gamma * kRounds) + noise * (16 * ww * b * b * (1 + 2 * b) + 4 * b) / n;
      expect_bound(mean, bound, 0.01, "b = " + number_text(b) + ", step " + step);
    }
  }
}

// arXiv:2305.15155, Theorem 3. With v_i⁺ − v_i = η(noise + ∇f_i(x⁺) − ∇f_i(x) + ∇f_i(x) − v_i) and EF21's
// recursion for ‖g_i − v_i‖²,
//   mean_t E‖∇f(x^t)‖² ≤ 2Δ⁰/(γT) + 2σ²(η/n + (β/θ)η²(1+2η))
// for γ ≤ 1/(L + √(4(1+η²)(β/θ)L~² + 2L²/η²)).
TEST(Ef21SgdmTheory, BoundsAverageGradientOnBatchesOfOne) {
  const Federation<double> f(6, 15);
  const Smoothness& k = f.smoothness;
  const double noise = sample_noise(f, f.x0);  // the same everywhere
  for (const double coordinates : {3.0, 10.0})
    for (const double eta : {0.02, 0.2}) {
      const ErrorFeedback c(coordinates / 15);
      const double largest =
          1 / (k.L + std::sqrt(4 * (1 + eta * eta) * c.beta / c.theta * std::pow(k.L_tilde(), 2) +
                               2 * std::pow(k.L / eta, 2)));
      for (const std::string& step : {std::string("theory"), number_text(largest)}) {
        const AlgorithmSpec spec = changed(
            spec_of("ef21_sgdm", "topk:k=" + number_text(coordinates), {{"eta", number_text(eta)}}, step), 1);
        const double gamma = gamma_of(*f.run_context(spec));
        EXPECT_LE(gamma, largest);
        constexpr std::uint32_t kRounds = 1000;
        const double mean = mean_average_gradient(f, spec, kRounds);
        const double bound = 2 * f.gap(f.x0) / (gamma * kRounds) +
                             2 * noise * (eta / 6 + c.beta / c.theta * eta * eta * (1 + 2 * eta));
        expect_bound(mean, bound, 0.01, spec.compressor + ", eta = " + number_text(eta) + ", step " + step);
      }
    }
}

// arXiv:2110.03294, Theorem 6. With z^t = x^t − (γη/(1−η)) v^{t−1}, so that z⁺ = z − (γ/(1−η)) g, and
// Σ‖v^t‖² ≤ Σ‖g^t‖²/(1−η)²,
//   mean_t ‖∇f(x^t)‖² ≤ 2(1−η)Δ⁰/(γT)  for  γ ≤ 1/((1+η)L/(1−η)² + (L~/(1−η)) √(β/θ)).
TEST(Ef21HbTheory, BoundsAverageGradient) {
  const Federation<double> f(6, 15);
  for (const double coordinates : {1.0, 5.0})
    for (const double eta : {0.1, 0.5, 0.9}) {
      const ErrorFeedback c(coordinates / 15);
      const double largest = 1 / ((1 + eta) * f.smoothness.L / std::pow(1 - eta, 2) +
                                  f.smoothness.L_tilde() / (1 - eta) * c.xi());
      for (const std::string& step : {std::string("theory"), number_text(largest)}) {
        const auto run_context = f.run_context(
            spec_of("ef21_hb", "topk:k=" + number_text(coordinates), {{"eta", number_text(eta)}}, step));
        const double gamma = gamma_of(*run_context);
        EXPECT_LE(gamma, largest) << run_context->algorithm.compressor << " " << eta;
        constexpr std::uint32_t kRounds = 300;
        const double mean = average_grad_norm_sq(run<double>(f, run_context, kRounds));
        const double bound = 2 * (1 - eta) * f.gap(f.x0) / (gamma * kRounds);
        expect_bound(mean, bound, 0.01,
                     run_context->algorithm.compressor + ", eta = " + number_text(eta) + ", step " + step);
      }
    }
}

// Returns clients whose f has whole lines of minimisers. It satisfies the PL condition with its smallest
// nonzero curvature, but is not strongly convex.
Federation<double> flat_federation() {
  Federation<double> f = sampled_federation();
  f.smoothness.mu = 1;
  for (std::size_t j = 0; j < 15; ++j) {
    if (j < 4)
      for (auto& oracle : f.oracles) oracle->a[j] = 0;
    const double curvature = mean_of_clients(f, [&](std::size_t i) { return f.oracles[i]->a[j]; });
    if (j >= 4) f.smoothness.mu = std::min(f.smoothness.mu, curvature);
  }
  return f;
}

// arXiv:2102.07845, Theorems 2.2, 3.2, 4.2; arXiv:2008.10898; arXiv:2106.05203, Theorems 2 and 4;
// arXiv:2402.10774: E f(x^T) − f* ≤ (1−γμ)^T Δ⁰.
TEST(PlTheory, BoundsGapByOneMinusGammaMuARound) {
  const Federation<double> f = flat_federation();
  const Options pl = {{"mu", "theory"}};
  const std::vector<AlgorithmSpec> specs = {
      spec_of("marina", "randk:k=3", pl),
      spec_of("marina", "permk", pl),
      changed(spec_of("vr_marina", "randk:k=3", pl), 1),
      spec_of("pp_marina", "randk:k=5", {{"r", "2"}, {"mu", "theory"}}),
      changed(spec_of("page", "identity", pl), 3),
      spec_of("ef21", "topk:k=3", pl),
      spec_of("ef21", "randk:k=3,scaled=false", pl),
      spec_of("ef21_w", "topk:k=3", pl),
      spec_of("ef21_plus", "topk:k=3", pl),
  };
  for (const AlgorithmSpec& spec : specs) {
    const double gamma = gamma_of(*f.run_context(spec));
    for (const std::uint32_t rounds : {30u, 200u, 600u}) {
      if (std::pow(1 - gamma * f.smoothness.mu, rounds) < 1e-12) continue;  // below the rounding errors
      const double mean =
          mean_over_seeds(f, spec, rounds, kSeeds,
                          [&](const Trace<double>& trace, const auto&) { return f.gap(trace.model); });
      const double bound = std::pow(1 - gamma * f.smoothness.mu, rounds) * f.gap(f.x0);
      expect_bound(mean, bound, rounds == 30 ? 0.01 : 0, spec.name + " " + spec.compressor);
    }
  }
}

TEST(PlTheory, MatchesFormulasOfTheorems) {
  const Federation<double> f(6, 15);
  const Smoothness& s = f.smoothness;
  const auto step = [&](const char* name, const char* compressor, Options parameters) {
    return gamma_of(*f.run_context(spec_of(name, compressor, std::move(parameters))));
  };
  const double p = 0.2, omega = 4, n = 6;
  const ErrorFeedback c(0.2);
  EXPECT_DOUBLE_EQ(
      step("marina", "randk:k=3", {{"mu", "theory"}}),
      std::min(1 / (s.L + s.L_tilde() * std::sqrt(2 * (1 - p) * omega / (p * n))), p / (2 * s.mu)));
  EXPECT_DOUBLE_EQ(step("marina", "randk:k=3", {{"mu", "0.6"}, {"p", "0.05"}}), 0.05 / 1.2);
  EXPECT_DOUBLE_EQ(step("ef21", "topk:k=3", {{"mu", "0.01"}}),
                   1 / (s.L + s.L_tilde() * std::sqrt(2 * c.beta / c.theta)));
  EXPECT_DOUBLE_EQ(step("ef21_w", "topk:k=3", {{"mu", "0.01"}}),
                   1 / (s.L + s.L_avg() * std::sqrt(2 * c.beta / c.theta)));
  EXPECT_DOUBLE_EQ(step("ef21", "topk:k=14", {{"mu", "0.5"}}),
                   std::min(1 / (s.L + s.L_tilde() * std::sqrt(2) * ErrorFeedback(14.0 / 15).xi()),
                            ErrorFeedback(14.0 / 15).theta));
  EXPECT_DOUBLE_EQ(step("ef21", "topk:k=3", {{"mu", "none"}}), step("ef21", "topk:k=3", {}));
}

TEST(PlTheory, RejectsConstantsThatNoFunctionHas) {
  const Federation<double> f(6, 15);
  const auto complaint = [&](const std::string& mu) -> std::string {
    try {
      f.run_context(spec_of("marina", "randk:k=3", {{"mu", mu}}));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(complaint("1.5").find("which no PL constant is"), std::string::npos) << complaint("1.5");
  EXPECT_NE(complaint("0").find("mu must be \"none\", \"theory\" or a positive number"), std::string::npos)
      << complaint("0");
  EXPECT_NE(complaint("some").find("mu must be \"none\", \"theory\" or a positive number"), std::string::npos)
      << complaint("some");
  Federation<double> unknown(6, 15);
  unknown.smoothness.mu = 0;
  EXPECT_THROW(unknown.run_context(spec_of("ef21", "topk:k=3", {{"mu", "theory"}})), ConfigError);
}

TEST(PlTheory, WritesConstantOutAndKeepsIt) {
  const Federation<double> f(6, 15);
  for (const char* name : {"marina", "vr_marina", "pp_marina"}) {
    const AlgorithmSpec once = f.run_context(spec_of(name, "randk:k=3", {{"mu", "theory"}}))->algorithm;
    EXPECT_EQ(parameter(*f.run_context(once), "mu"), f.smoothness.mu) << name;
    EXPECT_EQ(f.run_context(once)->algorithm.parameters, once.parameters) << name;
  }
  const auto with_number = f.run_context(spec_of("ef21", "topk:k=3", {{"mu", "theory"}}, "0.1"));
  EXPECT_EQ(parameter(*with_number, "mu"), f.smoothness.mu);
  EXPECT_EQ(needed_constants(spec_of("ef21", "topk:k=3", {{"mu", "theory"}}, "0.1")).convexity,
            "algorithm.mu");
  EXPECT_EQ(needed_constants(spec_of("ef21", "topk:k=3", {{"mu", "7"}})).smoothness, "algorithm.step_size");
}

// ef21_pp.h: γ = 1/(L + √(Σ w_i L_i² r_i)); then mean_t E‖∇f(x^t)‖² ≤ 2Δ⁰/(γT).
TEST(Ef21PpTheory, BoundsAverageGradientWithOneProbabilityPerClient) {
  const Federation<double> f(6, 15);
  const std::vector<double> p = {0.2, 1, 0.5, 0.9, 0.3, 0.7};
  const AlgorithmSpec spec =
      spec_of("ef21_pp", "topk:k=3", {{"p", TextCodec<std::vector<double>>::write(p)}});
  const double gamma = gamma_of(*f.run_context(spec));
  double spread = 0;
  for (std::size_t i = 0; i < 6; ++i)
    spread += std::pow(f.smoothness.L_i[i], 2) / 6 * ef21_pp_ratio(0.2, p[i]);
  EXPECT_DOUBLE_EQ(gamma, 1 / (f.smoothness.L + std::sqrt(spread)));
  const auto with_one = [&](const char* one) {
    return gamma_of(*f.run_context(spec_of("ef21_pp", "topk:k=3", {{"p", one}})));
  };
  EXPECT_GT(gamma, with_one("0.2"));
  EXPECT_LT(gamma, with_one("1"));
  EXPECT_NEAR(with_one("0.4 0.4 0.4 0.4 0.4 0.4"), with_one("0.4"), 1e-15);
  constexpr std::uint32_t kRounds = 300;
  const double mean = mean_average_gradient(f, spec, kRounds), bound = 2 * f.gap(f.x0) / (gamma * kRounds);
  expect_bound(mean, bound, 0.01, "p_i");
}

TEST(Ef21Pp, AsksEachClientWithItsOwnProbability) {
  const Federation<double> f(6, 15);
  const std::vector<double> p = {0.2, 1, 0.5, 0.9, 0.3, 0.7};
  const auto run_context =
      f.run_context(spec_of("ef21_pp", "topk:k=3", {{"p", TextCodec<std::vector<double>>::write(p)}}));
  std::vector<double> asked(6);
  constexpr std::uint32_t kRounds = 2000;
  run<double>(f, run_context, kRounds, {}, {},
              [&](std::uint32_t, ServerAlgorithm<double>& server, FaultSimulation<double>&, RunProgress&) {
                std::vector<ClientId> cohort;
                server.cohort(cohort);
                for (const ClientId i : cohort) asked[i] += 1.0 / kRounds;
              });
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(asked[i], p[i], 0.06) << "client " << i;
}

TEST(Ef21Pp, RejectsProbabilityListsOfWrongLength) {
  const Federation<double> f(6, 15);
  for (const char* p : {"0.5 0.5", "0.5 0.5 0.5 0.5 0.5 0", "0.5 0.5 0.5 0.5 0.5 1.5", "0.5 x"})
    EXPECT_THROW(f.run_context(spec_of("ef21_pp", "topk:k=3", {{"p", p}})), ConfigError) << p;
}

}  // namespace
}  // namespace gradwire
