// Algorithms with error feedback, compared with one-loop transcriptions of their listings.
#include "tests/algorithms/listing.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: includes Vector's operators

TEST(Ef14, MatchesPaperListingAndKeepsMemoryIdentity) {
  Case c(spec_of("ef14", "topk:k=2", {}, "0.3"));
  Vector x = c.federation.x0, all = x;
  std::vector<Vector> e_i(c.list.n, Vector(c.list.d));
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    Vector sent(c.list.d);
    all = all - 0.3 * c.list.mean([&](std::uint32_t i) { return c.list.grad(i, x); });
    for (std::uint32_t i = 0; i < c.list.n; ++i) {
      const Vector q_i = e_i[i] + 0.3 * c.list.grad(i, x), C_i = c.list.C(i, t, q_i);
      e_i[i] = q_i - C_i;
      sent = sent + (1.0 / c.list.n) * C_i;
    }
    x = x - sent;
  }
  expect_near(c.model, x, "x");
  expect_near(x - c.list.mean([&](std::uint32_t i) { return e_i[i]; }), all, "memory");
}

// Checks EF21 with v_of(i, t, x) in place of ∇f_i(x^t). It starts at g_i^0 = v_of(i, 0, x^0) and subtracts
// step(t, g) from x. Client i takes part in round t if asked(i, t).
void check_family(const Case& c, auto&& v_of, auto&& step, auto&& asked) {
  Vector x = c.federation.x0;
  std::vector<Vector> g_i;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    for (std::uint32_t i = 0; i < c.list.n; ++i) {
      if (t == 0) {
        g_i.push_back(v_of(i, t, x));
      } else if (asked(i, t)) {
        g_i[i] = g_i[i] + c.list.C(i, t, v_of(i, t, x) - g_i[i]);
      }
    }
    x = x - step(t, c.list.mean([&](std::uint32_t i) { return g_i[i]; }));
  }
  expect_near(c.model, x, "x");
}
constexpr auto kAll = [](std::uint32_t, std::uint32_t) { return true; };

TEST(Ef21Sgd, MatchesPaperListing) {
  Case c(changed(spec_of("ef21_sgd", "topk:k=3"), 2));
  check_family(
      c,
      [&](std::uint32_t i, std::uint32_t t, const Vector& x) {
        return c.list.grad(i, x, c.list.batch(i, t, 2));
      },
      [&](std::uint32_t, const Vector& g) { return c.gamma * g; }, kAll);
}

TEST(Ef21Sgdm, MatchesPaperListingFromFullGradients) {
  Case c(changed(spec_of("ef21_sgdm", "topk:k=3", {{"eta", "0.4"}}), 1));
  std::vector<Vector> v_i(c.list.n);
  check_family(
      c,
      [&](std::uint32_t i, std::uint32_t t, const Vector& x) {
        v_i[i] = t == 0 ? c.list.grad(i, x) : 0.6 * v_i[i] + 0.4 * c.list.grad(i, x, c.list.batch(i, t, 1));
        return v_i[i];
      },
      [&](std::uint32_t, const Vector& g) { return c.gamma * g; }, kAll);
}

TEST(Ef21Hb, MatchesPaperListing) {
  Case c(spec_of("ef21_hb", "topk:k=3", {{"eta", "0.6"}}));
  Vector v(c.list.d);
  check_family(
      c, [&](std::uint32_t i, std::uint32_t, const Vector& x) { return c.list.grad(i, x); },
      [&](std::uint32_t, const Vector& g) {
        v = 0.6 * v + g;
        return c.gamma * v;
      },
      kAll);
}

TEST(Ef21Pp, MatchesPaperListingWithOneCoinPerClient) {
  Case c(spec_of("ef21_pp", "topk:k=3", {{"p", "0.4 0.7 0.4 0.7 0.4"}}));
  check_family(
      c, [&](std::uint32_t i, std::uint32_t, const Vector& x) { return c.list.grad(i, x); },
      [&](std::uint32_t, const Vector& g) { return c.gamma * g; },
      [](std::uint32_t i, std::uint32_t t) {
        return RngStream({1, i, t, RngDomain::kCohort}).uniform() < (i % 2 == 0 ? 0.4 : 0.7);
      });
}

TEST(Ef21Pp, MatchesPaperListingWithOneStreamIfAllProbabilitiesAreEqual) {
  Case c(spec_of("ef21_pp", "topk:k=3", {{"p", "0.4"}}));
  check_family(
      c, [&](std::uint32_t i, std::uint32_t, const Vector& x) { return c.list.grad(i, x); },
      [&](std::uint32_t, const Vector& g) { return c.gamma * g; },
      [](std::uint32_t i, std::uint32_t t) {
        // A draw u skips k absent clients if 0.6^(k+1) < 1 - u <= 0.6^k.
        RngStream stream({1, kServerClient, t, RngDomain::kCohort});
        for (std::uint32_t member = 0;; ++member) {
          const double rest = 1 - stream.uniform();
          for (double power = 0.6; rest <= power; power *= 0.6) ++member;
          if (member >= i) return member == i;
        }
      });
}

TEST(Ef21W, MatchesPaperListingAndEf21AtTheSameStep) {
  Case c(spec_of("ef21_w", "topk:k=3"));
  const auto& L_i = c.federation.smoothness.L_i;
  double sum = 0;
  for (const double l : L_i) sum += l;
  EXPECT_GT(c.gamma, std::stod(c.federation.run_context(spec_of("ef21", "topk:k=3"))->algorithm.step_size));
  std::vector<Vector> g_i;
  Vector x = c.federation.x0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    Vector g(c.list.d);
    for (std::uint32_t i = 0; i < c.list.n; ++i) {
      const double w_i = L_i[i] / sum;
      const Vector scaled = (1 / (c.list.n * w_i)) * c.list.grad(i, x);
      if (t == 0) {
        g_i.push_back(scaled);
      } else {
        g_i[i] = g_i[i] + c.list.C(i, t, scaled - g_i[i]);
      }
      g = g + w_i * g_i[i];
    }
    x = x - c.gamma * g;
  }
  expect_near(c.model, x, "x");
  const auto plain = c.federation.run_context(spec_of("ef21", "topk:k=3", {}, number_text(c.gamma)));
  expect_near(run<double>(c.federation, plain, kRounds).model, x, "ef21");
}

TEST(Ef21Bc, MatchesPaperListingWithBothDirectionsCompressed) {
  Case c(spec_of("ef21_bc", "topk:k=3", {{"compressor_down", "topk:k=4"}}));
  Vector x = c.federation.x0, g;
  std::vector<Vector> g_i;
  for (std::uint32_t i = 0; i < c.list.n; ++i) g_i.push_back(c.list.grad(i, x));
  g = c.list.mean([&](std::uint32_t i) { return g_i[i]; });
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    x = x - c.gamma * g;
    for (std::uint32_t i = 0; i < c.list.n; ++i)
      g_i[i] = g_i[i] + c.list.C(i, t + 1, c.list.grad(i, x) - g_i[i]);
    const Vector mean = c.list.mean([&](std::uint32_t i) { return g_i[i]; });
    g = g + c.list.C_down("topk:k=4", t + 2, mean - g);
  }
  expect_near(c.model, x, "x");
}

TEST(Ef21Bc, CompressesBroadcastsAfterTheFirst) {
  const Federation<double> federation(5, 12);
  const auto run_context =
      federation.run_context(spec_of("ef21_bc", "topk:k=3", {{"compressor_down", "topk:k=4"}}));
  const auto records = run<double>(federation, run_context, 5).records;
  EXPECT_EQ(records[2].bits_down, 2 * 12 * 64);
  EXPECT_EQ(records[5].bits_down, 2 * 12 * 64 + 3 * (4 * 64 + 12));
}

TEST(Ef21P, MatchesPaperListing) {
  Case c(spec_of("ef21_p", "randk:k=6", {{"compressor_down", "topk:k=4"}}, "0.2"));
  Vector x = c.federation.x0, w = x;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    x = x - 0.2 * c.list.mean([&](std::uint32_t i) { return c.list.C(i, t, c.list.grad(i, w)); });
    w = w + c.list.C_down("topk:k=4", t + 1, x - w);
  }
  expect_near(c.model, x, "x");
}

double square_distance(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
  return sum;
}

TEST(Ef21Plus, MatchesPaperListingAndCountsTheBitOfTheChoice) {
  Case c(spec_of("ef21_plus", "topk:k=5", {{"init", "compressed"}}, "1.9"));
  Vector x = c.federation.x0;
  std::vector<Vector> g_i(c.list.n, Vector(c.list.d));
  int plain = 0, difference = 0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    for (std::uint32_t i = 0; i < c.list.n; ++i) {
      const Vector grad = c.list.grad(i, x), b_i = c.list.C(i, t, grad),
                   m_i = g_i[i] + c.list.C(i, t, grad - g_i[i]);
      const bool replaces = square_distance(b_i, grad) < square_distance(m_i, grad);
      ++(replaces ? plain : difference);
      g_i[i] = replaces ? b_i : m_i;
    }
    x = x - 1.9 * c.list.mean([&](std::uint32_t i) { return g_i[i]; });
  }
  EXPECT_GT(plain, 0) << "one branch was never taken";
  EXPECT_GT(difference, 0);
  expect_near(c.model, x, "x");
  const auto trace = run<double>(c.federation, c.run_context, 3);
  EXPECT_EQ(trace.records.back().bits_up, 3 * (5 * 64 + 12 + 1));
}

}  // namespace
}  // namespace gradwire
