// Formulas of steps and constants with clients of unequal weights.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "config/experiment_file.h"
#include "fl_server/plan_of_joins.h"
#include "simulation/prepare.h"
#include "tests/algorithms/skewed.h"
#include "tests/config/experiment_text.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of theorem tests

TEST(WeightedTheory, MatchesFormulasWithWeights) {
  Skewed f;
  const Smoothness& s = f.smoothness;
  const auto step = [&](const AlgorithmSpec& spec) { return gamma_of(*f.run_context(spec)); };
  const double n = 12, omega = 4, A = omega * 0.78, p = 0.2, L = s.L, Lt = s.L_tilde(), Lm = s.L_max(),
               Lw = 12 * 0.78 * s.L_i[0];
  EXPECT_NEAR(s.L_max_weighted(), Lw, 1e-14);
  EXPECT_DOUBLE_EQ(step(spec_of("dcgd", "randk:k=3")), 1 / (L + 2 * Lm * A));
  EXPECT_DOUBLE_EQ(step(spec_of("marina", "randk:k=3")), 1 / (L + Lt * std::sqrt((1 - p) * A / p)));
  const double q = 1 / n;
  EXPECT_DOUBLE_EQ(
      step(spec_of("marina", "permk")),
      1 / (L + std::sqrt((1 - q) / q * ((kSkew - 1) * *s.L_plus * *s.L_plus + *s.L_pm * *s.L_pm))));
  EXPECT_DOUBLE_EQ(step(changed(spec_of("vr_marina", "randk:k=3", {{"p", "0.2"}}), 2)),
                   1 / (L + std::sqrt((1 - p) / p * (A * Lt * Lt + (A + 0.78) * s.L_s * s.L_s / 2))));
  EXPECT_DOUBLE_EQ(step(spec_of("pp_marina", "randk:k=3", {{"r", "2"}, {"p", "0.1"}})),
                   1 / (Lm * (1 + std::sqrt(0.9 * 5 * kSkew / (0.1 * 2)))));
  EXPECT_DOUBLE_EQ(step(changed(spec_of("page", "identity", {{"p", "0.1"}}), 3)),
                   1 / (s.L_s * (1 + std::sqrt(0.9 * kSkew / (0.1 * 3)))));
  EXPECT_DOUBLE_EQ(step(spec_of("dasha", "randk:k=3")), 1 / (L + Lt * std::sqrt(16 * A * 9)));
  EXPECT_DOUBLE_EQ(step(changed(spec_of("dasha_page", "randk:k=3", {{"p", "0.2"}}), 2)),
                   1 / (L + std::sqrt(48 * A * 9 * (0.8 * s.L_s * s.L_s / 2 + Lt * Lt) +
                                      2 * 0.8 * s.L_s * s.L_s / 2 * 0.78 / 0.2)));
  EXPECT_DOUBLE_EQ(step(changed(spec_of("dasha_mvr", "randk:k=3", {{"b", "0.2"}}), 2)),
                   1 / (L + std::sqrt(96 * A * 9 * (0.64 * s.L_s * s.L_s / 2 + Lt * Lt) +
                                      4 * 0.64 * s.L_s * s.L_s / 2 * 0.78 / 0.2)));
  EXPECT_DOUBLE_EQ(step(changed(spec_of("sgd_nice"), 0, 0.25)),
                   1 / (2 * (n * 2 / (3 * 11) * L + 9 / (3 * 11.0) * Lw)));
  EXPECT_DOUBLE_EQ(step(changed(spec_of("cofig", "randk:k=3"), 0, 0.5)),
                   std::min({1 / (2 * Lw), 6 / (5 * Lw * 5 * std::pow(n, 2.0 / 3)),
                             6 / (5 * Lw * std::pow(5, 1.5) * std::sqrt(n))}));
  EXPECT_DOUBLE_EQ(step(changed(spec_of("frecon", "randk:k=3"), 0, 0.5)),
                   1 / (Lw * (1 + std::sqrt(10 * 25 * n) / 6)));
  const double pa = std::max(1.0, std::sqrt(1 / (32 * A)) - 1) / 10, inner = 2 * pa * 5 + 1;
  EXPECT_DOUBLE_EQ(step(spec_of("adiana", "randk:k=3")),
                   std::min(1 / (2 * Lm), 1 / (64 * A * inner * inner * Lm)));
  EXPECT_DOUBLE_EQ(step(changed(spec_of("vr_diana", "randk:k=3"), 1)),
                   1 / (10 * s.L_sample_max * std::sqrt(1 + A) * (5 + std::pow(4, 2.0 / 3))));
}

// A shift parameter below its theory value gives a smaller step size, as a larger omega would.
TEST(WeightedTheory, GivesSmallerStepsForSlowerShifts) {
  Skewed f;
  f.smoothness.convex = false;
  const auto step = [&](const char* name, Options options) {
    return gamma_of(*f.run_context(changed(spec_of(name, "randk:k=3", std::move(options)), 0,
                                           name[0] == 'c' || name[0] == 'f' ? 0.5 : 1)));
  };
  for (const char* name : {"diana", "vr_diana", "cofig", "frecon", "adiana"}) {
    EXPECT_LT(step(name, {{"alpha", "0.02"}}), 0.5 * step(name, {})) << name;
    EXPECT_EQ(step(name, {{"alpha", "0.2"}}), step(name, {})) << name;
  }
  EXPECT_LT(step("dasha", {{"a", "0.01"}}), 0.5 * step("dasha", {}));
  EXPECT_LT(step("frecon", {{"lambda", "0.005"}}), 0.5 * step("frecon", {}));
}

// Equal weights that are given as numbers count as equal.
TEST(WeightedTheory, HasSkewOneForEqualShares) {
  for (std::uint32_t n = 1; n < 200; ++n) {
    const std::vector<double> shares(n, 7.0 / (7.0 * n));
    Theory theory;
    theory.n = n;
    theory.weights = shares;
    EXPECT_EQ(theory.skew(), 1) << n;
    Smoothness s;
    s.L_i.assign(n, 0.3);
    s.weights = shares;
    EXPECT_EQ(s.L_max_weighted(), 0.3) << n;
  }
}

// E‖Σ w_i C_i(a_i) − Σ w_i a_i‖² ≤ A Σ w_i ‖a_i‖² − B ‖Σ w_i a_i‖², with equality if only the heaviest
// client's vector is not zero.
TEST(WeightedConstants, SatisfiesWeightedAbInequality) {
  struct Case {
    const char* compressor;
    std::uint32_t n;
    std::size_t d;
  };
  for (const Case& c : {Case{"permk", 4, 12}, Case{"permk", 4, 14}, Case{"permk", 12, 4},
                        Case{"permk", 11, 4}, Case{"randk:k=2", 5, 6}, Case{"natural(permk)", 4, 12}}) {
    std::vector<double> weights(c.n, 0.4 / (c.n - 1));
    weights[1] = 0.6;
    const Compressor compressor = parse_compressor(c.compressor, c.d, c.n);
    const CompressorConstants q = constants(compressor, c.d, c.n).weighted(c.n * 0.6);
    Random random(3, "ab");
    for (const bool alone : {false, true}) {
      std::vector<Vec<double>> a(c.n, Vec<double>(c.d));
      Vec<double> mean(c.d);
      double square = 0;
      for (std::uint32_t i = 0; i < c.n; ++i) {
        for (std::size_t j = 0; j < c.d; ++j) {
          a[i][j] = alone && i != 1 ? 0 : random.normal();
          mean[j] += weights[i] * a[i][j];
        }
        square += weights[i] * squared_distance(a[i], Vec<double>(c.d));
      }
      constexpr std::uint32_t kDraws = 20'000;
      double error = 0;
      Scratch<double> scratch;
      PayloadBuffer<double> buffer;
      for (std::uint32_t t = 0; t < kDraws; ++t) {
        Vec<double> sum(c.d);
        for (std::uint32_t i = 0; i < c.n; ++i) {
          Vec<double> v = a[i];
          add_decoded<double>(compress(compressor, v, {1, i, t, RngDomain::kCompressor}, scratch, buffer),
                              weights[i], sum);
        }
        error += squared_distance(sum, mean) / kDraws;
      }
      const double bound = q.A * square - q.B * squared_distance(mean, Vec<double>(c.d));
      EXPECT_LE(error, 1.05 * bound) << c.compressor << " " << c.n << " " << c.d;
      if (alone && c.compressor[0] != 'n') {
        EXPECT_GE(error, 0.95 * bound) << c.compressor << " " << c.n << " " << c.d;
      }
    }
  }
}

// From the experiment file to the step: the numbers of samples give the weights, and the weights give the
// constants.
TEST(WeightedTheory, GivesEqualStepsInSimulationAndServer) {
  const LoadedExperiment loaded = parse(
      "[problem]\nkind = \"least_squares\"\ndata = \"synthetic\"\nsamples = 300\ndim = 20\n"
      "[clients]\ncount = 5\npartition = \"dirichlet\"\ndirichlet_alpha = 0.1\nweights = \"samples\"\n"
      "[algorithm]\nname = \"marina\"\ncompressor = \"randk:k=2\"\nstep_size = \"theory\"\n");
  const Prepared simulated = prepare(loaded);
  const Smoothness& s = *simulated.smoothness;
  const double heaviest = *std::max_element(simulated.weights.begin(), simulated.weights.end());
  EXPECT_GT(heaviest, 0.3);
  const double noise = s.L_tilde() * std::sqrt(0.9 * 9 * heaviest / 0.1);
  EXPECT_NEAR(std::stod(algorithm_spec(simulated.experiment).step_size) * (s.L + noise), 1, 1e-12);

  ClientTable table(5);
  for (ClientId i = 0; i < 5; ++i) {
    ClientInfo info;
    info.name = "c" + std::to_string(i);
    info.columns = 20;
    info.sample_count = simulated.data.train_count(i);
    info.smoothness = s.L_i[i];
    ASSERT_EQ(table.assign(info.name, {}, {}).value(), i);
    ASSERT_TRUE(table.join(i, info));
  }
  const RunPlan agreed = plan_of_joins(loaded, table);
  EXPECT_EQ(agreed.weights, simulated.weights);
  EXPECT_NEAR(std::stod(algorithm_spec(agreed.experiment).step_size) * (s.L_avg() + noise), 1, 1e-12);
}

}  // namespace
}  // namespace gradwire
