// Algorithms compared with one-loop transcriptions of their listings.
#include "tests/algorithms/listing.h"

#include <set>

#include "tests/algorithms/every_algorithm.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: includes Vector's operators

TEST(Gd, MatchesPaperListing) {
  Case c(spec_of("gd"));
  Vector x = c.federation.x0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    Vector g(c.list.d);
    for (std::uint32_t i = 0; i < c.list.n; ++i) g = g + (1.0 / c.list.n) * c.list.grad(i, x);
    x = x - c.gamma * g;
  }
  expect_near(c.model, x, "x");
}

TEST(Dcgd, MatchesPaperListing) {
  Case c(spec_of("dcgd", "randk:k=3"));
  Vector x = c.federation.x0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    Vector m(c.list.d);
    for (std::uint32_t i = 0; i < c.list.n; ++i) m = m + (1.0 / c.list.n) * c.list.C(i, t, c.list.grad(i, x));
    x = x - c.gamma * m;
  }
  expect_near(c.model, x, "x");
}

TEST(FedAvg, MatchesPaperListing) {
  Case c(spec_of("fedavg", "identity", {{"local_steps", "4"}}, "0.7"));
  const double gamma_l = parameter(*c.run_context, "local_step_size");
  Vector x = c.federation.x0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    Vector change(c.list.d);
    for (std::uint32_t i = 0; i < c.list.n; ++i) {
      Vector y = x;
      for (int k = 0; k < 4; ++k) y = y - gamma_l * c.list.grad(i, y);
      change = change + (1.0 / c.list.n) * (y - x);
    }
    x = x + 0.7 * change;
  }
  expect_near(c.model, x, "x");
}

TEST(Diana, MatchesPaperListingWithOldShiftInEstimator) {
  Case c(spec_of("diana", "randk:k=3"));
  const double alpha = parameter(*c.run_context, "alpha");
  EXPECT_DOUBLE_EQ(alpha, 3.0 / 12);
  Vector x = c.federation.x0, h(c.list.d);
  std::vector<Vector> h_i(c.list.n, Vector(c.list.d));
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    Vector g = h;
    for (std::uint32_t i = 0; i < c.list.n; ++i) {
      const Vector m_i = c.list.C(i, t, c.list.grad(i, x) - h_i[i]);
      g = g + (1.0 / c.list.n) * m_i;
      h = h + (alpha / c.list.n) * m_i;
      h_i[i] = h_i[i] + alpha * m_i;
    }
    x = x - c.gamma * g;
  }
  expect_near(c.model, x, "x");
}

TEST(Marina, MatchesPaperListingWithOneCoinForAll) {
  Case c(spec_of("marina", "randk:k=3"));
  const double p = parameter(*c.run_context, "p");
  EXPECT_DOUBLE_EQ(p, 3.0 / 12);
  Vector x = c.federation.x0, x_prev, g;
  int whole_rounds = 0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    const bool whole = t == 0 || RngStream({1, kServerClient, t, RngDomain::kCoin}).uniform() < p;
    whole_rounds += whole;
    if (whole) g = Vector(c.list.d);
    for (std::uint32_t i = 0; i < c.list.n; ++i) {
      const Vector step =
          whole ? c.list.grad(i, x) : c.list.C(i, t, c.list.grad(i, x) - c.list.grad(i, x_prev));
      g = g + (1.0 / c.list.n) * step;
    }
    x_prev = x;
    x = x - c.gamma * g;
  }
  EXPECT_GT(whole_rounds, 5);
  EXPECT_LT(whole_rounds, 30);
  expect_near(c.model, x, "x");
}

// x^{t+1} = x^t − γ g^t;  c_i = C(∇f_i(x^{t+1}) − g_i^t);  g_i^{t+1} = g_i^t + c_i, numbered as in the paper.
Vector ef21_listing(const Case& c, std::vector<Vector> g_i, std::uint32_t first_draw) {
  Vector x = c.federation.x0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    Vector g(c.list.d);
    for (const Vector& v : g_i) g = g + (1.0 / c.list.n) * v;
    x = x - c.gamma * g;
    for (std::uint32_t i = 0; i < c.list.n; ++i)
      g_i[i] = g_i[i] + c.list.C(i, t + first_draw, c.list.grad(i, x) - g_i[i]);
  }
  return x;
}

TEST(Ef21, MatchesPaperListingFromGradients) {
  Case c(spec_of("ef21", "topk:k=2"));
  std::vector<Vector> g_i;
  for (std::uint32_t i = 0; i < c.list.n; ++i) g_i.push_back(c.list.grad(i, c.federation.x0));
  expect_near(c.model, ef21_listing(c, g_i, 1), "x");
}

TEST(Ef21, MatchesPaperListingFromCompressedGradients) {
  Case c(spec_of("ef21", "randk:k=2,scaled=false", {{"init", "compressed"}}));
  std::vector<Vector> g_i;
  for (std::uint32_t i = 0; i < c.list.n; ++i) g_i.push_back(c.list.C(i, 0, c.list.grad(i, c.federation.x0)));
  expect_near(c.model, ef21_listing(c, g_i, 1), "x");
}

TEST(Ef21, MatchesPaperListingFromZeroAndSendsNothingInRoundZero) {
  Case c(spec_of("ef21", "topk:k=2", {{"init", "zero"}}));
  expect_near(c.model, ef21_listing(c, std::vector<Vector>(c.list.n, Vector(c.list.d)), 1), "x");
  const auto trace = run<double>(c.federation, c.run_context, 2);
  EXPECT_EQ(trace.records[1].bits_up, 0);
  EXPECT_EQ(trace.records[1].loss, trace.records[0].loss);
  EXPECT_EQ(trace.records[2].bits_up, 2 * (64 + 4));
}

TEST(Batch, DependsOnSeedClientRoundAndLocalStep) {
  AlgorithmSpec spec = spec_of("fedavg", "identity", {{"local_steps", "3"}, {"local_step_size", "0.3"}});
  spec.batch = 2;
  Case c(spec);
  Vector x = c.federation.x0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    Vector change(c.list.d);
    for (std::uint32_t i = 0; i < c.list.n; ++i) {
      Vector y = x;
      for (std::uint32_t k = 0; k < 3; ++k) {
        RngStream stream({1, i, t, RngDomain::kMinibatch + k});
        const std::vector<std::uint32_t> batch = {stream.below(4), stream.below(4)};
        y = y - 0.3 * c.list.grad(i, y, batch);
      }
      change = change + (1.0 / c.list.n) * (y - x);
    }
    x = x + change;
  }
  expect_near(c.model, x, "x");
}

// Returns settings that make an algorithm gradient descent: no compression, one local step, and parameters
// that disable its additions. For the algorithms of kNeverPlain this is impossible: their steps are scaled by
// coordinates, accelerated, Newton's, extrapolated (FRECON), or along random directions.
AlgorithmSpec plain_spec(const AlgorithmInfo& algorithm) {
  AlgorithmSpec spec = spec_of(std::string(algorithm.traits.name), "identity", {}, "0.9");
  const std::vector<std::pair<std::string, std::pair<std::string, std::string>>> undo = {
      {"nesterov", {"mu", number_text(1 / 0.9)}},
      {"proxskip", {"p", "1"}},
      {"ef21_sgdm", {"eta", "1"}},
      {"ef21_hb", {"eta", "0"}}};
  for (const auto& [name, parameter] : undo)
    if (name == spec.name) spec.parameters.push_back(parameter);
  for (const auto& parameter : algorithm.parameters)
    if (parameter.name == "local_step_size") spec.parameters.emplace_back(parameter.name, "1");
  return spec;
}
const std::set<std::string> kNeverPlain = {"fedadagrad", "fedyogi", "fedadam", "adiana",
                                           "fednl",      "frecon",  "fwd_grad"};

TEST(EveryAlgorithm, EqualsGradientDescentUnderIdentityCompressor) {
  const Federation<double> federation(4, 9);
  const auto reference =
      run<double>(federation, federation.run_context(spec_of("gd", "identity", {}, "0.9")), 40);
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    if (kNeverPlain.contains(std::string(algorithm.traits.name))) continue;
    const AlgorithmSpec spec = plain_spec(algorithm);
    const auto trace = run<double>(federation, federation.run_context(spec), 40);
    expect_near(trace.model, reference.model, spec.name.c_str());
  }
}

TEST(Weights, EnterTheMeanOfEveryAlgorithm) {
  const Federation<double> federation(3, 6);
  const std::vector<double> weights = {0.5, 0.3, 0.2};
  Vector x = federation.x0;
  const Listing list{federation, Identity{}};
  for (int t = 0; t < 30; ++t) {
    Vector g(6);
    for (std::uint32_t i = 0; i < 3; ++i) g = g + weights[i] * list.grad(i, x);
    x = x - 0.9 * g;
  }
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    if (kNeverPlain.contains(std::string(algorithm.traits.name))) continue;
    const AlgorithmSpec spec = plain_spec(algorithm);
    const auto run_context = federation.run_context(spec);
    run_context->weights = weights;
    expect_near(run<double>(federation, run_context, 30).model, x, spec.name.c_str());
  }
}

TEST(Participation, AsksUniformSampleOfRoundedShare) {
  const Federation<double> federation(10, 6);
  AlgorithmSpec spec = spec_of("fedavg", "identity", {{"local_step_size", "0.3"}});
  spec.participation = 0.25;  // round(2.5) = 3: halves are rounded up
  const auto trace = run<double>(federation, federation.run_context(spec), 200);
  for (std::size_t k = 1; k < trace.records.size(); ++k) EXPECT_EQ(trace.records[k].replies, 3u);
  EXPECT_DOUBLE_EQ(trace.records.back().bits_up, 200 * 3 * 6 * 64.0 / 10);
  EXPECT_DOUBLE_EQ(trace.records.back().grad_calls, 200 * 3 * 4.0 / 10);
  std::vector<int> times(10);
  std::vector<ClientId> cohort;
  for (std::uint32_t t = 0; t < 2000; ++t) {
    sample_cohort(1, t, 10, 0.25, cohort);
    ASSERT_EQ(cohort.size(), 3u);
    for (const ClientId c : cohort) ++times[c];
  }
  for (const int count : times) EXPECT_NEAR(count, 600, 5 * std::sqrt(2000 * 0.3 * 0.7));
}

}  // namespace
}  // namespace gradwire
