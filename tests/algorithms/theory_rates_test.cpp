// Lyapunov functions of the algorithms with shifts and control variates, and their rates, on quadratics with
// known constants. If a paper leaves constants open, the comment derives them. D = f(x) − f*, R = ‖x⁺ − x‖²,
// H = mean‖h_i − target‖², and L is the smoothness constant of the single f_i (or samples).
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "algorithms/core/params.h"
#include "tests/algorithms/theory.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of theorem tests

constexpr double kOmega = 4;  // randk:k=3 in R^15

double distance_of_shifts(const Federation<double>& f, const SavedServer& server, View<double> target) {
  return mean_of_clients(
      f, [&](std::size_t i) { return squared_distance(server.h_of[i], gradient(f, i, target)); });
}

// L-SVRG on samples inside DIANA (arXiv:1904.05115). With S = mean_ij ‖∇f_ij(w) − ∇f_ij(x*)‖²,
//   E‖g‖² ≤ 2LD + ((1+2ω)(4LD + 2S) + 2ωH)/n,  E H⁺ ≤ (1−α)H + α(4LD + 2S),  E S⁺ ≤ (1−p)S + 2pLD.
// So V = ‖x−x*‖² + Mγ²H + Nγ²S with M = 4ω/(nα), N = (4+24ω)/(np) shrinks by the factor
//   max(1−γμ, 1−α/2, 1−p/2)  for  γ ≤ 1/(L(1 + (6+36ω)/n)).
TEST(VrDianaTheory, BoundsLyapunovFunctionOnBatchesOfOne) {
  const Federation<double> f = sampled_federation();
  const double L = f.smoothness.L_sample_max, n = 6, mu = f.smoothness.mu, alpha = 1 / (1 + kOmega), p = 0.25;
  const double largest = 1 / (L * (1 + (6 + 36 * kOmega) / n));
  const double M = 4 * kOmega / (n * alpha), N = (4 + 24 * kOmega) / (n * p);
  const auto spread_at = [&](View<double> w) {
    return mean_of_clients(f, [&](std::size_t i) {
      double sum = 0;
      for (std::uint32_t s = 0; s < 4; ++s)
        sum += squared_distance(gradient(f, i, w, {&s, 1}), gradient(f, i, f.optimum, {&s, 1})) / 4;
      return sum;
    });
  };
  for (const std::string& step : {std::string("theory"), number_text(largest)}) {
    const AlgorithmSpec spec = changed(spec_of("vr_diana", "randk:k=3", {}, step), 1);
    const double gamma = gamma_of(*f.run_context(spec));
    EXPECT_LE(gamma, largest);
    const double start =
        squared_distance(f.x0, f.optimum) +
        gamma * gamma *
            (M * mean_of_clients(f, [&](std::size_t i) { return norm_sq(gradient(f, i, f.optimum)); }) +
             N * spread_at(f.x0));
    const double rate = std::max({1 - gamma * mu, 1 - alpha / 2, 1 - p / 2});
    for (const std::uint32_t rounds : {20u, 200u, 1500u}) {
      const double mean =
          mean_over_seeds(f, spec, rounds, kSeeds, [&](const Trace<double>& trace, const auto& run_context) {
            EXPECT_DOUBLE_EQ(parameter(run_context, "p"), p);
            const SavedServer server(trace, 1);
            return squared_distance(server.x, f.optimum) +
                   gamma * gamma *
                       (M * distance_of_shifts(f, server, f.optimum) + N * spread_at(server.further[0]));
          });
      expect_bound(mean, std::pow(rate, rounds) * start, rounds == 20 ? 0.1 : 0,
                   std::string(step) + ", " + std::to_string(rounds) + " rounds");
    }
  }
}

// arXiv:2002.11364. Let F = f − f*, β = 1−γμ and
//   Z = ‖z−x*‖² + (2γβ/θ1) F(y) + (2γβθ2(1+θ1)/(pθ1)) F(w) + N mean‖h_i − ∇f_i(w)‖².
// The steps of its proof, with E‖g−∇f(x)‖² ≤ (2ω/n)(mean‖∇f_i(x)−∇f_i(w)‖² + H) and N = 16ωγβη/(nαθ1), give
//   E Z⁺ ≤ max(β, 1−θ1/2, 1−pθ1/(1+θ1), 1−α/4) Z
// for η ≤ min(1/(2L), n/(8ωL(1+4p(1+ω))²), n/(128ωLp(1+ω)(1+2p(1+ω)))). The step size of gradwire is smaller.
TEST(AdianaTheory, BoundsLyapunovFunction) {
  const Federation<double> f(6, 15, 1, 0.01);
  const double n = 6, L = f.smoothness.L_max(), mu = f.smoothness.mu;
  for (const auto& [compressor, omega] : {std::pair{"randk:k=3", kOmega}, {"natural", 0.125}}) {
    const AlgorithmSpec spec = spec_of("adiana", compressor);
    const auto run_context = f.run_context(spec);
    const double eta = gamma_of(*run_context), p = parameter(*run_context, "p"), alpha = 1 / (1 + omega),
                 q = p / alpha;
    EXPECT_LE(eta, std::min({1 / (2 * L), n / (8 * omega * L * std::pow(1 + 4 * q, 2)),
                             n / (128 * omega * L * q * (1 + 2 * q))}));
    const double theta1 = std::min(0.25, std::sqrt(eta * mu / p)), gamma = eta / (2 * (theta1 + eta * mu));
    const double beta = 1 - gamma * mu, of_y = 2 * gamma * beta / theta1;
    const double of_w = of_y * 0.5 * (1 + theta1) / p,
                 N = 16 * omega * gamma * beta * eta / (n * alpha * theta1);
    const double rate = std::max({beta, 1 - theta1 / 2, 1 - p * theta1 / (1 + theta1), 1 - alpha / 4});
    const double start = squared_distance(f.x0, f.optimum) + (of_y + of_w) * f.gap(f.x0) +
                         N * mean_of_clients(f, [&](std::size_t i) { return norm_sq(gradient(f, i, f.x0)); });
    for (const std::uint32_t rounds : {20u, 200u, 2000u}) {
      if (std::pow(rate, rounds) < 1e-12) continue;  // below the rounding errors
      const double mean =
          mean_over_seeds(f, spec, rounds, kSeeds, [&](const Trace<double>& trace, const auto&) {
            const SavedServer server(trace, 3);
            const auto &y = server.further[0], &z = server.further[1], &w = server.further[2];
            return squared_distance(z, f.optimum) + of_y * f.gap(y) + of_w * f.gap(w) +
                   N * distance_of_shifts(f, server, w);
          });
      expect_bound(mean, std::pow(rate, rounds) * start, rounds == 20 ? 0.05 : 0,
                   std::string(compressor) + ", " + std::to_string(rounds) + " rounds");
    }
  }
}

// arXiv:2112.13097. With s = |S| of n clients,
//   E‖g‖² ≤ 2LD + ((1+ω)/s)(4LD + 2H),  E H⁺ ≤ (1−αs/n)H + (αs/n) 2LD.
// So V = ‖x−x*‖² + Mγ²H with M = 4(1+ω)n/(αs²) shrinks by the factor
//   max(1−γμ, 1−αs/(2n))  for  γ ≤ 1/(L(1 + 6(1+ω)/s)).
TEST(CofigTheory, BoundsLyapunovFunctionWithHalfOfTheClients) {
  const Federation<double> f(6, 15);
  const double n = 6, s = 3, alpha = 1 / (1 + kOmega), L = f.smoothness.L_max(), mu = f.smoothness.mu;
  const double largest = 1 / (L * (1 + 6 * (1 + kOmega) / s)), M = 4 * (1 + kOmega) * n / (alpha * s * s);
  for (const std::string& step : {std::string("theory"), number_text(largest)}) {
    const AlgorithmSpec spec = changed(spec_of("cofig", "randk:k=3", {}, step), 0, s / n);
    const double gamma = gamma_of(*f.run_context(spec)),
                 rate = std::max(1 - gamma * mu, 1 - alpha * s / (2 * n));
    EXPECT_LE(gamma, largest);
    const double start =
        squared_distance(f.x0, f.optimum) + M * gamma * gamma * mean_of_clients(f, [&](std::size_t i) {
                                              return norm_sq(gradient(f, i, f.optimum));
                                            });
    for (const std::uint32_t rounds : {20u, 200u, 1000u}) {
      const double mean =
          mean_over_seeds(f, spec, rounds, kSeeds, [&](const Trace<double>& trace, const auto&) {
            const SavedServer server(trace, 0);
            return squared_distance(server.x, f.optimum) +
                   M * gamma * gamma * distance_of_shifts(f, server, f.optimum);
          });
      expect_bound(mean, std::pow(rate, rounds) * start, rounds == 20 ? 0.1 : 0,
                   std::string(step) + ", " + std::to_string(rounds) + " rounds");
    }
  }
}

// arXiv:2112.13097, nonconvex. Let H' = mean‖h_i − ∇f_i(x)‖² and q = αs/n.
// COFIG: f − f* + cH' with c = 2Lγ²(1+ω)/(qs) gives
//   mean_t E‖∇f(x^t)‖² ≤ (2/(γT))(Δ⁰ + cH'⁰)  for  γ ≤ min(1/(2L), q √(s/(12(1+ω)))/L~).
// FRECON: let e = g − ∇f(x) be the error. Then f − f* + (γ/2λ)‖e‖² + (γ(1+ω)/s)H' gives the same bound, with
// its own initial value, for
//   γ ≤ 1/(L + √(L² + 10(1+ω)²n L~²/s² + 3(1+ω)L~²/s)).
TEST(CofigAndFreconTheory, BoundsAverageGradientWithHalfOfTheClients) {
  const Federation<double> f(6, 15);
  const Smoothness& k = f.smoothness;
  const double n = 6, s = 3, spread = 1 + kOmega, q = s / (spread * n), lambda = q / 2;
  const double tilde_sq = k.L_tilde() * k.L_tilde();
  const double shifts = mean_of_clients(f, [&](std::size_t i) { return norm_sq(gradient(f, i, f.x0)); });
  Vec<double> at_start(15);
  for (std::size_t i = 0; i < 6; ++i) {
    const Vec<double> g = gradient(f, i, f.x0);
    for (std::size_t j = 0; j < 15; ++j) at_start[j] += g[j] / 6;
  }
  struct Case {
    const char* name;
    double largest;
    std::function<double(double)> start;  // the term that the bound adds to Δ⁰, at γ
  };
  const Case cases[] = {
      {"cofig", std::min(1 / (2 * k.L), q * std::sqrt(s / (12 * spread)) / k.L_tilde()),
       [&](double gamma) { return 2 * k.L * gamma * gamma * spread / (q * s) * shifts; }},
      {"frecon",
       1 / (k.L +
            std::sqrt(k.L * k.L + 10 * spread * spread * n * tilde_sq / (s * s) + 3 * spread * tilde_sq / s)),
       [&](double gamma) {
         // g^0 = λ mean u_i
         const double error =
             std::pow(1 - lambda, 2) * norm_sq(at_start) + lambda * lambda * spread / s * shifts;
         return gamma / (2 * lambda) * error + gamma * spread / s * shifts;
       }},
  };
  for (const Case& c : cases)
    for (const std::string& step : {std::string("theory"), number_text(c.largest)}) {
      const AlgorithmSpec spec = changed(spec_of(c.name, "randk:k=3", {}, step), 0, s / n);
      const double gamma = gamma_of(*f.run_context(spec));
      EXPECT_LE(gamma, c.largest * 1.02) << c.name;  // the constants of the paper's proof are slightly better
      constexpr std::uint32_t kRounds = 300;
      const double mean = mean_over_seeds(
          f, spec, kRounds, kSeeds,
          [](const Trace<double>& trace, const auto&) { return average_grad_norm_sq(trace); });
      const double bound = 2 / (gamma * kRounds) * (f.gap(f.x0) + c.start(gamma));
      expect_bound(mean, bound, 0.01, c.name + (" " + step));
    }
}

// arXiv:1910.06378, Lemma 15 with σ = 0. Let γ~ = K γ_l γ. Then
//   V = ‖x−x*‖² + (9n γ~²/|S|) mean‖c_i − ∇f_i(x*)‖²
// shrinks by the factor 1 − μγ~/2 in each round.
TEST(ScaffoldTheory, BoundsLyapunovFunctionInEveryRoundAndUnderSampling) {
  const Federation<double> f(6, 15);
  const double mu = f.smoothness.mu;
  const double at_optimum =
      mean_of_clients(f, [&](std::size_t i) { return norm_sq(gradient(f, i, f.optimum)); });
  for (const char* option : {"1", "2"})
    for (const double share : {1.0, 0.5}) {
      const AlgorithmSpec spec =
          changed(spec_of("scaffold", "identity", {{"local_steps", "5"}, {"option", option}}), 0, share);
      const double step = 5 * parameter(*f.run_context(spec), "local_step_size"),
                   weight = 9 * step * step / share;
      const auto lyapunov = [&](std::uint32_t rounds, int seeds) {
        return mean_over_seeds(f, spec, rounds, seeds, [&](const Trace<double>& trace, const auto&) {
          const SavedServer server(trace, 0);
          return squared_distance(server.x, f.optimum) + weight * distance_of_shifts(f, server, f.optimum);
        });
      };
      const double start = squared_distance(f.x0, f.optimum) + weight * at_optimum, rate = 1 - mu * step / 2;
      double before = start;
      for (std::uint32_t rounds = 1; share == 1 && rounds < 30; ++rounds) {
        const double now = lyapunov(rounds, 1);
        EXPECT_LE(now, rate * before) << "option " << option << ", round " << rounds;
        before = now;
      }
      for (const std::uint32_t rounds : {50u, 1000u})
        expect_bound(lyapunov(rounds, share == 1 ? 1 : kSeeds), std::pow(rate, rounds) * start,
                     rounds == 50 ? 0.1 : 0,
                     "option " + std::string(option) + ", " + number_text(share) + " of the clients");
    }
}

}  // namespace
}  // namespace gradwire
