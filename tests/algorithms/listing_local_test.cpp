// Algorithms with local steps, acceleration or a prox, compared with one-loop transcriptions of their
// listings.
#include "base/random.h"
#include "tests/algorithms/listing.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: includes Vector's operators

TEST(Nesterov, MatchesPaperListingEvaluatedAtX) {
  Case c(spec_of("nesterov"));
  const double mu = parameter(*c.run_context, "mu");
  EXPECT_DOUBLE_EQ(mu, c.federation.smoothness.mu);
  const double root = std::sqrt(1 / (c.gamma * mu)), b = (root - 1) / (root + 1);
  Vector x = c.federation.x0, x_prev = x;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    const Vector y = x + b * (x - x_prev);
    x_prev = x;
    x = y - c.gamma * c.list.mean([&](std::uint32_t i) { return c.list.grad(i, y); });
  }
  expect_near(c.model, x, "x");
}

TEST(SgdNice, MatchesPaperListingWithL1Prox) {
  AlgorithmSpec spec = spec_of("sgd_nice", "identity", {{"l1", "0.2"}});
  spec.participation = 0.6;
  Case c(spec);
  Vector x = c.federation.x0;
  int zeros = 0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    std::vector<ClientId> S;
    sample_cohort(1, t, c.list.n, 0.6, S);
    ASSERT_EQ(S.size(), 3u);
    Vector g(c.list.d);
    for (const ClientId i : S) g = g + (1.0 / 3) * c.list.grad(i, x);
    x = x - c.gamma * g;
    for (double& v : x) v = std::copysign(std::max(std::abs(v) - 0.2 * c.gamma, 0.0), v);
    zeros += static_cast<int>(std::count(x.begin(), x.end(), 0.0));
  }
  EXPECT_GT(zeros, 0) << "the prox had no effect";
  expect_near(c.model, x, "x");
}

TEST(FwdGrad, MatchesPaperListing) {
  for (const bool gaussian : {false, true}) {
    AlgorithmSpec spec =
        spec_of("fwd_grad", "identity",
                {{"directions", "3"}, {"distribution", gaussian ? "gaussian" : "rademacher"}}, "0.01");
    spec.batch = 2;
    Case c(spec);
    Vector x = c.federation.x0;
    for (std::uint32_t t = 0; t < kRounds; ++t) {
      x = x - 0.01 * c.list.mean([&](std::uint32_t i) {
        const Vector grad = c.list.grad(i, x, c.list.batch(i, t, 2));
        RngStream signs({1, i, t, RngDomain::kCompressor});
        Random normal(1, "directions", std::uint64_t{i} << 32 | t);
        Vector g(c.list.d);
        for (int k = 0; k < 3; ++k) {
          Vector v(c.list.d);
          const std::uint64_t word = gaussian ? 0 : signs.next();
          double s = 0;
          for (std::size_t j = 0; j < c.list.d; ++j) {
            v[j] = gaussian ? normal.normal() : (word >> j & 1) != 0 ? 1.0 : -1.0;
            s += grad[j] * v[j];
          }
          g = g + (s / 3) * v;
        }
        return g;
      });
    }
    expect_near(c.model, x, "x");
  }
}

TEST(FedProx, MatchesPaperListing) {
  Case c(spec_of("fedprox", "identity", {{"local_steps", "4"}, {"mu", "0.3"}}, "0.7"));
  const double gamma_l = parameter(*c.run_context, "local_step_size");
  EXPECT_DOUBLE_EQ(gamma_l, 1 / (4 * (c.federation.smoothness.L_max() + 0.3)));
  Vector x = c.federation.x0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    x = x + 0.7 * c.list.mean([&](std::uint32_t i) {
      Vector y = x;
      for (int k = 0; k < 4; ++k) y = y - gamma_l * (c.list.grad(i, y) + 0.3 * (y - x));
      return y - x;
    });
  }
  expect_near(c.model, x, "x");
}

Vector scaffold_listing(const Case& c, bool gradient_at_x, double gamma, double gamma_l, std::uint32_t K) {
  Vector x = c.federation.x0, mean_c(c.list.d);
  std::vector<Vector> c_i(c.list.n, Vector(c.list.d));
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    Vector change(c.list.d), next_c(c.list.d);
    for (std::uint32_t i = 0; i < c.list.n; ++i) {
      Vector y = x;
      for (std::uint32_t k = 0; k < K; ++k) y = y - gamma_l * (c.list.grad(i, y) - c_i[i] + mean_c);
      c_i[i] = gradient_at_x ? c.list.grad(i, x) : c_i[i] - mean_c + (1 / (K * gamma_l)) * (x - y);
      change = change + (1.0 / c.list.n) * (y - x);
      next_c = next_c + (1.0 / c.list.n) * c_i[i];
    }
    x = x + gamma * change;
    mean_c = next_c;
  }
  return x;
}

TEST(Scaffold, MatchesPaperListingWithOptionTwo) {
  Case c(spec_of("scaffold", "identity", {{"local_steps", "3"}, {"local_step_size", "0.2"}}));
  expect_near(c.model, scaffold_listing(c, false, 1, 0.2, 3), "x");
}

TEST(Scaffold, MatchesPaperListingWithOptionOne) {
  Case c(spec_of("scaffold", "identity", {{"local_steps", "3"}, {"local_step_size", "0.2"}, {"option", "1"}},
                 "0.8"));
  expect_near(c.model, scaffold_listing(c, true, 0.8, 0.2, 3), "x");
}

// c stays the mean of the c_i for any sample of the clients. Published code had defects here.
TEST(Scaffold, KeepsServerControlVariateAtMeanOfClientsUnderSampling) {
  AlgorithmSpec spec = spec_of("scaffold", "identity", {{"local_steps", "2"}, {"local_step_size", "0.2"}});
  spec.participation = 0.4;
  const Federation<double> federation(5, 12);
  const auto trace = run<double>(federation, federation.run_context(spec), 40);
  Vector mean(12);
  for (const std::string& state : trace.client_states) {
    Vector c_i;
    Loader loader(state);
    loader(c_i);
    ASSERT_TRUE(loader.done());
    mean = mean + 0.2 * c_i;
  }
  Vector x, c;
  std::uint32_t t = 0;
  Loader loader(trace.server_state);
  loader(x);
  loader(t);
  loader(c);
  expect_near(c, mean, "c");
}

// Checks an algorithm of the FedOpt family. rule(v, Δ²) returns v after one round.
void check_fedopt(const std::string& name, auto&& rule) {
  Case c(spec_of(name, "identity",
                 {{"local_steps", "2"}, {"local_step_size", "0.1"}, {"tau", "0.05"}, {"beta1", "0.8"}},
                 "0.03"));
  const double tau = 0.05;
  Vector x = c.federation.x0, m(c.list.d), v(c.list.d, tau * tau);
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    const Vector delta = c.list.mean([&](std::uint32_t i) {
      Vector y = x;
      for (int k = 0; k < 2; ++k) y = y - 0.1 * c.list.grad(i, y);
      return y - x;
    });
    for (std::size_t j = 0; j < c.list.d; ++j) {
      m[j] = 0.8 * m[j] + 0.2 * delta[j];
      v[j] = rule(v[j], delta[j] * delta[j]);
      x[j] += 0.03 * m[j] / (std::sqrt(v[j]) + tau);
    }
  }
  expect_near(c.model, x, name.c_str());
}

TEST(FedAdagrad, MatchesPaperListing) {
  check_fedopt("fedadagrad", [](double v, double square) { return v + square; });
}
TEST(FedYogi, MatchesPaperListing) {
  check_fedopt("fedyogi", [](double v, double square) {
    return v - (1 - 0.99) * square * ((v > square) - (v < square));
  });
}
TEST(FedAdam, MatchesPaperListingWithoutBiasCorrection) {
  check_fedopt("fedadam", [](double v, double square) { return 0.99 * v + (1 - 0.99) * square; });
}

TEST(ProxSkip, MatchesPaperListingAtEveryLocalStep) {
  Case c(spec_of("proxskip", "identity", {{"p", "0.3"}}));
  EXPECT_DOUBLE_EQ(c.gamma, 1 / c.federation.smoothness.L_max());
  std::vector<Vector> x_i(c.list.n, c.federation.x0), h_i(c.list.n, Vector(c.list.d));
  std::uint32_t steps = 0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    RngStream coins({1, kServerClient, t, RngDomain::kCoin});
    for (bool heads = false; !heads; ++steps) {
      heads = coins.uniform() < 0.3;
      for (std::uint32_t i = 0; i < c.list.n; ++i)
        x_i[i] = x_i[i] - c.gamma * (c.list.grad(i, x_i[i]) - h_i[i]);
    }
    const Vector x = c.list.mean([&](std::uint32_t i) { return x_i[i]; });
    for (std::uint32_t i = 0; i < c.list.n; ++i) {
      h_i[i] = h_i[i] + (0.3 / c.gamma) * (x - x_i[i]);
      x_i[i] = x;
    }
  }
  EXPECT_GT(steps, 2 * kRounds);
  expect_near(c.model, x_i[0], "x");
}

TEST(LocalEpochs, VisitShuffledSamplesInBatches) {
  Case c(changed(spec_of("fedavg", "identity", {{"local_epochs", "2"}, {"local_step_size", "0.2"}}), 3));
  Vector x = c.federation.x0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    x = x + c.list.mean([&](std::uint32_t i) {
      Vector y = x;
      for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
        std::vector<std::uint32_t> order;
        shuffle_samples(1, i, t, epoch, 4, order);
        EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), std::vector{0u, 1u, 2u, 3u}.begin()));
        y = y - 0.2 * c.list.grad(i, y, Batch(order).subspan(0, 3));
        y = y - 0.2 * c.list.grad(i, y, Batch(order).subspan(3, 1));
      }
      return y - x;
    });
  }
  expect_near(c.model, x, "x");
}

// Once the schedule reaches 0, the local model no longer moves. So c_i must follow from the directions of the
// local steps.
TEST(Scaffold, UpdatesControlVariatesIfStepIsZero) {
  constexpr std::uint32_t kHorizon = 3;
  static_assert(kHorizon < kRounds);
  Case c(spec_of("scaffold", "identity",
                 {{"local_steps", "2"},
                  {"local_step_size", "0.2"},
                  {"schedule", "cosine"},
                  {"horizon", std::to_string(kHorizon)}}));
  Vector x = c.federation.x0, mean_c = 0 * x;
  std::vector<Vector> c_i(c.list.n, mean_c);
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    const double step = t < kHorizon ? 0.2 * (1 + std::cos(std::acos(-1.0) * t / kHorizon)) / 2 : 0;
    std::vector<Vector> next;
    const Vector change = c.list.mean([&](std::uint32_t i) {
      Vector y = x, directions = 0 * x;
      for (int k = 0; k < 2; ++k) {
        const Vector gradient = c.list.grad(i, y);
        directions = directions + 0.5 * gradient;
        y = y - step * (gradient - c_i[i] + mean_c);
      }
      next.push_back(directions);
      return y - x;
    });
    x = x + change;
    mean_c = mean_c + c.list.mean([&](std::uint32_t i) { return next[i] - c_i[i]; });
    c_i = next;
  }
  expect_near(c.model, x, "x");
}

TEST(Schedule, ScalesStepOfEachRound) {
  for (const auto& [word, factor] : std::vector<std::pair<std::string, double (*)(double)>>{
           {"constant", [](double) { return 1.0; }},
           {"inverse_sqrt", [](double t) { return 1 / std::sqrt(t + 1); }},
           {"inverse", [](double t) { return 1 / (t + 1); }},
           {"cosine", [](double t) { return (1 + std::cos(std::acos(-1.0) * t / kRounds)) / 2; }}}) {
    Case c(spec_of("gd", "identity", {{"schedule", word}}, "0.5"));
    Vector x = c.federation.x0;
    for (std::uint32_t t = 0; t < kRounds; ++t)
      x = x - 0.5 * factor(t) * c.list.mean([&](std::uint32_t i) { return c.list.grad(i, x); });
    expect_near(c.model, x, word.c_str());
  }
}

}  // namespace
}  // namespace gradwire
