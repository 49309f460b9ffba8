// The theorems with clients of unequal weights: f = Σ w_i f_i, means are weighted by w_i, and independent
// errors no longer shrink to 1/n.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "base/serialize.h"
#include "tests/algorithms/skewed.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of theorem tests

constexpr int kWeightedSeeds = 10;

// E‖∇f(x̂)‖² ≤ 2 Δ⁰/(γ T), as in theory_algorithms_test.cpp.
TEST(WeightedTheory, BoundsAverageGradientOfAlgorithmsWithExactStart) {
  const std::vector<AlgorithmSpec> specs = {
      spec_of("gd"),
      spec_of("marina", "randk:k=1"),
      spec_of("marina", "natural", {{"p", "0.1"}}),
      spec_of("marina", "permk"),
      spec_of("marina", "natural(permk)"),
      changed(spec_of("vr_marina", "randk:k=5"), 1),
      changed(spec_of("vr_marina", "identity", {{"p", "0.05"}}), 1),
      spec_of("pp_marina", "randk:k=5", {{"r", "2"}}),
      changed(spec_of("page"), 3),
      changed(spec_of("page", "identity", {{"p", "0.02"}}), 1),
      spec_of("dasha", "randk:k=1"),
      spec_of("dasha", "permk"),
      spec_of("dasha", "randk:k=5", {{"a", "0.05"}}),
      changed(spec_of("dasha_page", "randk:k=5"), 1),
      changed(spec_of("dasha_page", "identity", {{"p", "0.05"}}), 1),
      spec_of("dasha_mvr", "randk:k=5"),
      spec_of("ef21", "topk:k=1"),
      spec_of("ef21_w", "topk:k=1"),
      spec_of("ef21_w", "topk:k=1",
              {{"w", "0.01 0.34 0.065 0.065 0.065 0.065 0.065 0.065 0.065 0.065 0.065 0.065"}}),
      spec_of("ef21_plus", "topk:k=1"),
      spec_of("ef21_pp", "topk:k=3", {{"p", "0.5"}}),
      spec_of("ef21_bc", "topk:k=5", {{"compressor_down", "topk:k=5"}}),
      spec_of("ef21_hb", "topk:k=3", {{"eta", "0"}}),
      spec_of("ef21_p", "identity", {{"compressor_down", "topk:k=5"}}),
  };
  Skewed f;
  constexpr int kRounds = 150;
  for (const AlgorithmSpec& spec : specs) {
    const double gamma = gamma_of(*f.run_context(spec)), bound = 2 * f.gap(f.x0) / (gamma * kRounds);
    const double mean = f.average(spec, kRounds);
    EXPECT_LE(mean, bound) << spec.name << " " << spec.compressor;
    EXPECT_GE(mean, 0.01 * bound) << spec.name << " " << spec.compressor
                                  << ": the bound is too loose to test anything";
  }
}

// Shows why A needs the factor n max w_i: if all f_i have the same Hessian and L_pm = 0, PermK's theory for
// equal weights would allow the step size 1/L, and the run diverges.
TEST(WeightedTheory, FailsWithStepsForEqualWeights) {
  Skewed f(Curvatures::kAlike);
  EXPECT_LT(*f.smoothness.L_pm, 1e-6);
  constexpr int kRounds = 150;
  const auto diverges = [&](const char* name, const char* compressor) {
    Theory equal = f.theory();
    equal.weights = {};
    std::vector<std::string> warnings;
    const AlgorithmSpec spec = resolve(spec_of(name, compressor), equal, warnings);
    EXPECT_GT(std::stod(spec.step_size), 2 * gamma_of(*f.run_context(spec_of(name, compressor))))
        << name << " " << compressor;
    return f.average(spec, kRounds) > 1e3 * f.grad_norm_sq(f.x0);
  };
  EXPECT_TRUE(diverges("marina", "permk"));
  const AlgorithmSpec spec = spec_of("marina", "permk");
  EXPECT_LE(f.average(spec, kRounds), 2 * f.gap(f.x0) / (gamma_of(*f.run_context(spec)) * kRounds));
}

// arXiv:1806.06573, with A for ω/n: linear convergence to a neighbourhood of size (2γA/μ) Σ w_i ‖∇f_i(x*)‖².
TEST(WeightedTheory, BoundsDistanceOfDcgdByNeighbourhood) {
  Skewed f;
  constexpr int kRounds = 150;
  for (const char* compressor : {"randk:k=3", "permk"}) {
    const double A = (std::string(compressor) == "permk" ? 1 : 4.0 / 12) * kSkew, mu = f.smoothness.mu;
    double mean = 0, gamma = 0;
    for (int seed = 1; seed <= kWeightedSeeds; ++seed) {
      const auto run_context = f.run_context(spec_of("dcgd", compressor), static_cast<std::uint64_t>(seed));
      gamma = gamma_of(*run_context);
      mean += squared_distance(f.run(run_context, kRounds, 0).model, f.optimum) / kWeightedSeeds;
    }
    EXPECT_LE(mean, std::pow(1 - gamma * mu, kRounds) * squared_distance(f.x0, f.optimum) +
                        2 * gamma * A / mu * f.gradients_sq(f.optimum))
        << compressor;
  }
}

// arXiv:1901.09401, Theorem 3.1, applied to the functions n w_i f_i.
TEST(WeightedTheory, BoundsDistanceOfSgdNiceByNeighbourhood) {
  Skewed f;
  const double n = 12, tau = 3, mu = f.smoothness.mu;
  const double sigma_sq = (n - tau) / (tau * (n - 1)) * f.gradients_sq(f.optimum, 2);
  constexpr int kRounds = 300;
  double mean = 0, gamma = 0;
  for (int seed = 1; seed <= kWeightedSeeds; ++seed) {
    const auto run_context =
        f.run_context(changed(spec_of("sgd_nice"), 0, 0.25), static_cast<std::uint64_t>(seed));
    gamma = gamma_of(*run_context);
    mean += squared_distance(f.run(run_context, kRounds, 0).model, f.optimum) / kWeightedSeeds;
  }
  EXPECT_LE(mean, std::pow(1 - gamma * mu, kRounds) * squared_distance(f.x0, f.optimum) +
                      2 * gamma * sigma_sq / mu);
}

// arXiv:1901.09269, Theorem 1, with M = 4A/α and means weighted by w_i.
TEST(WeightedTheory, BoundsLyapunovFunctionOfDiana) {
  Skewed f;
  const double omega = 4, A = omega / 12 * kSkew, alpha = 1 / (1 + omega), M = 4 * A / alpha;
  constexpr int kRounds = 150;
  double mean = 0, gamma = 0;
  for (int seed = 1; seed <= kWeightedSeeds; ++seed) {
    const auto run_context = f.run_context(spec_of("diana", "randk:k=3"), static_cast<std::uint64_t>(seed));
    gamma = gamma_of(*run_context);
    const auto trace = f.run(run_context, kRounds, 0);
    double v = squared_distance(trace.model, f.optimum);
    for (std::uint32_t i = 0; i < Skewed::kClients; ++i) {
      Loader loader(trace.client_states[i]);
      Vec<double> h_i;
      loader(h_i);
      v += M * gamma * gamma * f.weights[i] * squared_distance(h_i, f.gradient(i, f.optimum));
    }
    mean += v / kWeightedSeeds;
  }
  const double v0 = squared_distance(f.x0, f.optimum) + M * gamma * gamma * f.gradients_sq(f.optimum);
  EXPECT_LE(mean, std::pow(std::max(1 - gamma * f.smoothness.mu, 1 - alpha / 2), kRounds) * v0);
  EXPECT_DOUBLE_EQ(gamma, 1 / (f.smoothness.L_max() * (1 + 6 * A)));
}

// Nonconvex DIANA and VR-DIANA, whose h_i start at 0: avg‖∇f‖² ≤ 2 (Δ⁰ + c H⁰)/(γT) with
// H = Σ w_i ‖h_i − ∇f_i(x)‖² and c = γA/α, as derived in diana.h.
TEST(WeightedTheory, BoundsNonconvexDianaAndVrDiana) {
  Skewed f;
  f.smoothness.convex = false;
  constexpr int kRounds = 300;
  const double omega = 2, A = omega / 12 * kSkew;
  for (const AlgorithmSpec& spec :
       {spec_of("diana", "randk:k=5"), spec_of("diana", "randk:k=5", {{"alpha", "0.02"}}),
        spec_of("vr_diana", "randk:k=5"), changed(spec_of("vr_diana", "randk:k=5"), 1),
        changed(spec_of("vr_diana", "randk:k=5", {{"p", "0.05"}}), 1)}) {
    const auto run_context = f.run_context(spec);
    const double gamma = gamma_of(*run_context), c = gamma * A / parameter(*run_context, "alpha");
    EXPECT_LE(f.average(spec, kRounds), 2 * (f.gap(f.x0) + c * f.gradients_sq(f.x0)) / (gamma * kRounds))
        << spec.name << " " << spec.batch;
  }
}

// If f is much smoother than the f_i, L~ limits the step size. DIANA's nonconvex step size in the literature
// does not contain L~.
TEST(WeightedTheory, LimitsNonconvexDianaByLTilde) {
  Skewed f;
  f.smoothness.convex = false;
  f.smoothness.L = 0.01;
  const double omega = 14, A = omega / 12 * kSkew;
  EXPECT_DOUBLE_EQ(gamma_of(*f.run_context(spec_of("diana", "randk:k=1"))),
                   1 / (0.01 + f.smoothness.L_tilde() * std::sqrt(2 * A * 15 * 31)));
}

// Algorithms with shifts converge to x* of the weighted f.
TEST(WeightedTheory, ReachesOptimumWithVarianceReduction) {
  Skewed f;
  const auto gap = [&](const AlgorithmSpec& spec, std::uint32_t rounds) {
    return f.gap(f.run(f.run_context(spec), rounds, 0).model);
  };
  const double start = f.gap(f.x0);
  EXPECT_GT(gap(spec_of("dcgd", "randk:k=5"), 3000), 1e-6);
  EXPECT_LT(gap(spec_of("diana", "randk:k=5"), 3000), 1e-12);
  EXPECT_LT(gap(spec_of("adiana", "randk:k=5"), 20000), 1e-12);
  EXPECT_LT(gap(changed(spec_of("vr_diana", "randk:k=5"), 2), 6000), 1e-2 * start);
  EXPECT_LT(gap(changed(spec_of("cofig", "randk:k=5", {}, "theory*4"), 0, 0.5), 15000), 1e-9);
  EXPECT_LT(gap(changed(spec_of("frecon", "randk:k=5", {}, "theory*2"), 0, 0.5), 30000), 1e-9);
  EXPECT_LT(gap(changed(spec_of("dasha_mvr", "randk:k=5", {{"b", "1"}}), 0), 6000), 1e-9);
  EXPECT_LT(gap(spec_of("proxskip"), 1000), 1e-12);
  EXPECT_LT(gap(spec_of("nesterov"), 400), 1e-12);
  EXPECT_LT(gap(changed(spec_of("scaffold", "identity", {{"local_steps", "5"}, {"local_step_size", "0.05"}}),
                        0, 0.25),
                4000),
            1e-12);
}

// arXiv:2112.13097 for the functions n w_i f_i; the shifts start at 0, H⁰ = (1/n) Σ ‖n w_i ∇f_i(x⁰)‖².
TEST(WeightedTheory, BoundsCofigAndFrecon) {
  Skewed f;
  constexpr int kRounds = 400;
  const double n = 12, S = 6, omega = 2, H = f.gradients_sq(f.x0, 2);
  const AlgorithmSpec cofig = changed(spec_of("cofig", "randk:k=5"), 0, 0.5),
                      frecon = changed(spec_of("frecon", "randk:k=5"), 0, 0.5);
  const double gamma = gamma_of(*f.run_context(cofig)), L = f.smoothness.L_max_weighted();
  const double c = 2 * L * gamma * gamma * (1 + omega) * (1 + omega) * n / (S * S);
  EXPECT_LE(f.average(cofig, kRounds), 2 * (f.gap(f.x0) + c * H) / (gamma * kRounds));
  const auto run_context = f.run_context(frecon);
  const double lambda = parameter(*run_context, "lambda"), spread = (1 + omega) / S;
  EXPECT_LE(f.average(frecon, kRounds),
            2 * f.gap(f.x0) / (gamma_of(*run_context) * kRounds) +
                (f.grad_norm_sq(f.x0) + lambda * lambda * spread * H) / (lambda * kRounds) +
                2 * spread * H / kRounds);
}

}  // namespace
}  // namespace gradwire
