// Algorithms for unbiased compressors, compared with one-loop transcriptions of their listings.
#include <array>

#include "tests/algorithms/listing.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: includes Vector's operators

TEST(VrDiana, MatchesPaperListingWithOneCoinForAllClients) {
  Case c(changed(spec_of("vr_diana", "randk:k=3"), 2));
  const double alpha = parameter(*c.run_context, "alpha"), p = parameter(*c.run_context, "p");
  EXPECT_DOUBLE_EQ(p, 0.5);
  Vector x = c.federation.x0, w = x, h(c.list.d);
  std::vector<Vector> h_i(c.list.n, Vector(c.list.d));
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    Vector g = h;
    for (std::uint32_t i = 0; i < c.list.n; ++i) {
      const auto B = c.list.batch(i, t, 2);
      const Vector k_i = c.list.grad(i, x, B) - c.list.grad(i, w, B) + c.list.grad(i, w);
      const Vector m_i = c.list.C(i, t, k_i - h_i[i]);
      g = g + (1.0 / c.list.n) * m_i;
      h = h + (alpha / c.list.n) * m_i;
      h_i[i] = h_i[i] + alpha * m_i;
    }
    if (c.list.coin(t, p)) w = x;
    x = x - c.gamma * g;
  }
  expect_near(c.model, x, "x");
}

TEST(Adiana, MatchesPaperListing) {
  Case c(spec_of("adiana", "randk:k=3"));
  const double alpha = parameter(*c.run_context, "alpha"), p = parameter(*c.run_context, "p"),
               mu = parameter(*c.run_context, "mu"), eta = c.gamma;
  const double omega = 3, L = c.federation.smoothness.L_max();
  EXPECT_DOUBLE_EQ(p, 1 / (2 * (1 + omega)));
  EXPECT_DOUBLE_EQ(eta, std::min(1 / (2 * L), 5 / (64 * omega * std::pow(2 * p * (1 + omega) + 1, 2) * L)));
  const double th1 = std::min(0.25, std::sqrt(eta * mu / p)), gam = eta / (2 * (th1 + eta * mu)),
               b = 1 - gam * mu;
  Vector y = c.federation.x0, z = y, w = y, h(c.list.d);
  std::vector<Vector> h_i(c.list.n, Vector(c.list.d));
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    const Vector x = th1 * z + 0.5 * w + (0.5 - th1) * y;
    Vector g = h, learnt(c.list.d);
    for (std::uint32_t i = 0; i < c.list.n; ++i) {
      g = g + (1.0 / c.list.n) * c.list.C(i, t, c.list.grad(i, x) - h_i[i], 0);
      const Vector s_i = c.list.C(i, t, c.list.grad(i, w) - h_i[i], 1);
      learnt = learnt + (alpha / c.list.n) * s_i;
      h_i[i] = h_i[i] + alpha * s_i;
    }
    h = h + learnt;
    const Vector y_next = x - eta * g;
    z = b * z + (1 - b) * x + (gam / eta) * (y_next - x);
    if (c.list.coin(t, p)) w = y;
    y = y_next;
  }
  expect_near(c.model, y, "y");
}

TEST(VrMarina, MatchesPaperListingWithOneBatchAtBothPoints) {
  Case c(changed(spec_of("vr_marina", "randk:k=3"), 2));
  const double p = parameter(*c.run_context, "p");
  EXPECT_DOUBLE_EQ(p, 0.25);  // min(3/12, 2/(4+2))
  Vector x = c.federation.x0, x_prev, g;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    if (t == 0 || c.list.coin(t, p)) {
      g = c.list.mean([&](std::uint32_t i) { return c.list.grad(i, x); });
    } else {
      g = g + c.list.mean([&](std::uint32_t i) {
        const auto B = c.list.batch(i, t, 2);
        return c.list.C(i, t, c.list.grad(i, x, B) - c.list.grad(i, x_prev, B));
      });
    }
    x_prev = x;
    x = x - c.gamma * g;
  }
  expect_near(c.model, x, "x");
}

TEST(PpMarina, MatchesPaperListingAlsoForRepeatedDraws) {
  for (const char* r : {"2", "4", "40"}) {
    Case c(spec_of("pp_marina", "randk:k=3", {{"r", r}, {"p", "0.2"}}));
    const auto draws = static_cast<std::uint32_t>(std::stoi(r));
    Vector x = c.federation.x0, x_prev, g;
    for (std::uint32_t t = 0; t < kRounds; ++t) {
      if (t == 0 || c.list.coin(t, 0.2)) {
        g = c.list.mean([&](std::uint32_t i) { return c.list.grad(i, x); });
      } else {
        RngStream stream({1, kServerClient, t, RngDomain::kCohort});
        std::array<std::uint32_t, 5> times{};
        for (std::uint32_t k = 0; k < draws; ++k) {
          const std::uint32_t i = stream.below(5);
          g = g + (1.0 / draws) * c.list.C(i, t, c.list.grad(i, x) - c.list.grad(i, x_prev), times[i]++);
        }
      }
      x_prev = x;
      x = x - c.gamma * g;
    }
    expect_near(c.model, x, r);
  }
}

TEST(Page, MatchesPaperListingOverSamplesOfAllClients) {
  Case c(changed(spec_of("page"), 3));
  const double p = parameter(*c.run_context, "p");
  EXPECT_DOUBLE_EQ(p, 3.0 / (3 + 20));
  Vector x = c.federation.x0, x_prev, g;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    if (t == 0 || c.list.coin(t, p)) {
      g = c.list.mean([&](std::uint32_t i) { return c.list.grad(i, x); });
    } else {
      RngStream clients({1, kServerClient, t, RngDomain::kCohort});
      std::array<std::uint32_t, 5> times{};
      for (int k = 0; k < 3; ++k) ++times[clients.below(5)];
      for (std::uint32_t i = 0; i < 5; ++i)
        for (const std::uint32_t j : c.list.batch(i, t, times[i]))
          g = g + (1.0 / 3) * (c.list.grad(i, x, {&j, 1}) - c.list.grad(i, x_prev, {&j, 1}));
    }
    x_prev = x;
    x = x - c.gamma * g;
  }
  expect_near(c.model, x, "x");
}

// Checks an algorithm of the DASHA family. h_next(i, t, x, x_prev, h_i) returns h_i⁺, the next h_i.
void check_dasha(const Case& c, auto&& h_next) {
  const double a = parameter(*c.run_context, "a");
  EXPECT_DOUBLE_EQ(a, 1.0 / 7);
  std::vector<Vector> h_i, g_i;
  for (std::uint32_t i = 0; i < c.list.n; ++i) h_i.push_back(c.list.grad(i, c.federation.x0));
  g_i = h_i;
  Vector x = c.federation.x0, g = c.list.mean([&](std::uint32_t i) { return g_i[i]; });
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    const Vector x_prev = x;
    x = x - c.gamma * g;
    for (std::uint32_t i = 0; i < c.list.n; ++i) {
      const Vector next = h_next(i, t + 1, x, x_prev, h_i[i]);
      const Vector m_i = c.list.C(i, t + 1, next - h_i[i] - a * (g_i[i] - h_i[i]));
      g_i[i] = g_i[i] + m_i;
      g = g + (1.0 / c.list.n) * m_i;
      h_i[i] = next;
    }
  }
  expect_near(c.model, x, "x");
}

TEST(Dasha, MatchesPaperListing) {
  Case c(spec_of("dasha", "randk:k=3"));
  check_dasha(c, [&](std::uint32_t i, std::uint32_t, const Vector& x, const Vector&, const Vector&) {
    return c.list.grad(i, x);
  });
}

TEST(DashaPage, MatchesPaperListing) {
  Case c(changed(spec_of("dasha_page", "randk:k=3"), 2));
  const double p = parameter(*c.run_context, "p");
  EXPECT_DOUBLE_EQ(p, 2.0 / 6);
  check_dasha(
      c, [&](std::uint32_t i, std::uint32_t t, const Vector& x, const Vector& x_prev, const Vector& h_i) {
        const auto B = c.list.batch(i, t, 2);
        return c.list.coin(t, p) ? c.list.grad(i, x) : h_i + c.list.grad(i, x, B) - c.list.grad(i, x_prev, B);
      });
}

TEST(DashaMvr, MatchesPaperListing) {
  Case c(changed(spec_of("dasha_mvr", "randk:k=3", {{"b", "0.3"}}), 2));
  check_dasha(
      c, [&](std::uint32_t i, std::uint32_t t, const Vector& x, const Vector& x_prev, const Vector& h_i) {
        const auto B = c.list.batch(i, t, 2);
        return c.list.grad(i, x, B) + 0.7 * (h_i - c.list.grad(i, x_prev, B));
      });
}

TEST(Cofig, MatchesPaperListingWithTwoIndependentSamples) {
  AlgorithmSpec spec = spec_of("cofig", "randk:k=3");
  spec.participation = 0.4;
  Case c(spec);
  const double alpha = parameter(*c.run_context, "alpha");
  Vector x = c.federation.x0, h(c.list.d);
  std::vector<Vector> h_i(c.list.n, Vector(c.list.d));
  int different = 0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    std::vector<ClientId> S, shifted;
    sample_cohort(1, t, c.list.n, 0.4, S);
    sample_cohort(1, t, c.list.n, 0.4, shifted, RngDomain::kShiftCohort);
    different += S != shifted;
    Vector g = h;
    std::vector<Vector> u;
    for (std::uint32_t i = 0; i < c.list.n; ++i) u.push_back(c.list.C(i, t, c.list.grad(i, x) - h_i[i]));
    for (const ClientId i : S) g = g + 0.5 * u[i];
    for (const ClientId i : shifted) {
      h_i[i] = h_i[i] + alpha * u[i];
      h = h + (alpha / c.list.n) * u[i];
    }
    x = x - c.gamma * g;
  }
  EXPECT_GT(different, 20);
  expect_near(c.model, x, "x");
}

TEST(Frecon, MatchesPaperListing) {
  AlgorithmSpec spec = spec_of("frecon", "randk:k=3");
  spec.participation = 0.4;
  Case c(spec);
  const double alpha = parameter(*c.run_context, "alpha"), lambda = parameter(*c.run_context, "lambda");
  EXPECT_DOUBLE_EQ(lambda, 2.0 / (2 * 4 * 5));
  Vector x = c.federation.x0, x_prev = x, h(c.list.d), g(c.list.d);
  std::vector<Vector> h_i(c.list.n, Vector(c.list.d));
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    std::vector<ClientId> S;
    sample_cohort(1, t, c.list.n, 0.4, S);
    g = (1 - lambda) * g + lambda * h;
    for (const ClientId i : S) {
      const Vector q_i = c.list.C(i, t, c.list.grad(i, x) - c.list.grad(i, x_prev), 0);
      const Vector u_i = c.list.C(i, t, c.list.grad(i, x) - h_i[i], 1);
      g = g + 0.5 * q_i + (lambda * 0.5) * u_i;
      h_i[i] = h_i[i] + alpha * u_i;
      h = h + (alpha / c.list.n) * u_i;
    }
    x_prev = x;
    x = x - c.gamma * g;
  }
  expect_near(c.model, x, "x");
}

}  // namespace
}  // namespace gradwire
