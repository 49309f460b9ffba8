// Optimizers of local steps, compared with transcriptions of their listings, step by step and inside
// algorithms.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

#include "algorithms/optimizers/optimizer.h"
#include "base/config_error.h"
#include "base/random.h"
#include "tests/algorithms/listing.h"
#include "tests/support/count_allocations.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: includes Vector's operators

// SGD with momentum, computed with whole vectors. step() updates y.
struct MomentumListing {
  double beta;
  Vector b = {};
  void step(double gamma, const Vector& g, Vector& y) {
    b = b.empty() ? g : beta * b + g;
    y = y - gamma * b;
  }
};

struct AdamListing {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  Vector m = {}, v = {};
  int t = 0;
  void step(double gamma, const Vector& g, Vector& y) {
    m.resize(g.size());
    v.resize(g.size());
    ++t;
    for (std::size_t j = 0; j < g.size(); ++j) {
      m[j] = beta1 * m[j] + (1 - beta1) * g[j];
      v[j] = beta2 * v[j] + (1 - beta2) * g[j] * g[j];
      const double m_hat = m[j] / (1 - std::pow(beta1, t)), v_hat = v[j] / (1 - std::pow(beta2, t));
      y[j] -= gamma * m_hat / (std::sqrt(v_hat) + eps);
    }
  }
};

// Algorithms 1 and 2 of arXiv:2405.15593, with an error that is quantized block by block.
struct MicroAdamListing {
  std::size_t k, window, block;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  std::vector<Vector> G = {};     // dense copies of the sparse gradients
  std::vector<int> e = {};        // codes of the error
  Vector delta = {}, Delta = {};  // for each coordinate, the values of its block
  int t = 0;

  static double u(double low, double high) { return (high - low) / 15; }
  // Returns the moving average of G^power over the window, with bias correction.
  Vector stats(double beta, int power) const {
    Vector z(G[0].size());
    for (std::size_t i = 0; i < G.size(); ++i) {
      // G[i] was written in the last step that is i + 1 modulo the window.
      std::size_t age = 0;
      while ((static_cast<std::size_t>(t) - 1 - age) % window != i) ++age;
      for (std::size_t j = 0; j < z.size(); ++j)
        z[j] += std::pow(beta, static_cast<double>(age)) * std::pow(G[i][j], power);
    }
    return ((1 - beta) / (1 - std::pow(beta, t))) * z;
  }
  void step(double gamma, const Vector& g, Vector& y) {
    const std::size_t d = g.size();
    ++t;
    Vector a = g;
    for (std::size_t j = 0; j < d && t > 1; ++j) a[j] += e[j] * u(delta[j], Delta[j]) + delta[j];
    std::vector<std::size_t> I(d);
    std::iota(I.begin(), I.end(), 0);
    std::stable_sort(I.begin(), I.end(),
                     [&](std::size_t i, std::size_t j) { return std::abs(a[i]) > std::abs(a[j]); });
    I.resize(k);
    Vector V(d);
    for (const std::size_t i : I) {
      V[i] = a[i];
      a[i] = 0;
    }
    delta.assign(d, 0);
    Delta.assign(d, 0);
    e.assign(d, 0);
    for (std::size_t lo = 0; lo < d; lo += block) {
      const std::size_t hi = std::min(d, lo + block);
      double low = a[lo], high = a[lo];
      for (std::size_t j = lo; j < hi; ++j) {
        low = std::min(low, a[j]);
        high = std::max(high, a[j]);
      }
      for (std::size_t j = lo; j < hi; ++j) {
        delta[j] = low;
        Delta[j] = high;
        if (high > low) e[j] = static_cast<int>(std::floor((a[j] - low) / u(low, high) + 0.5));
      }
    }
    const std::size_t slot = (static_cast<std::size_t>(t) - 1) % window;
    if (slot < G.size()) {
      G[slot] = V;
    } else {
      G.push_back(V);
    }
    const Vector m_hat = stats(beta1, 1), v_hat = stats(beta2, 2);
    for (std::size_t j = 0; j < d; ++j) y[j] -= gamma * m_hat[j] / (eps + std::sqrt(v_hat[j]));
  }
};

LocalOptimizer optimizer(const std::string& rule, std::size_t d, double weight_decay = 0,
                         double clip_norm = 0) {
  return LocalOptimizer({.rule = rule, .weight_decay = weight_decay, .clip_norm = clip_norm}, d);
}

Vector random_vector(Random& random, std::size_t d) {
  Vector v(d);
  for (double& x : v) x = random.normal();
  return v;
}

void expect_the_listing(const std::string& rule, auto listing, std::size_t d, std::uint32_t steps) {
  SCOPED_TRACE(rule + ", d = " + std::to_string(d));
  const LocalOptimizer tested = optimizer(rule, d);
  Random random(3, "gradients");
  Scratch<double> scratch;
  Vector y = random_vector(random, d), of_listing = y;
  for (std::uint32_t k = 0; k < steps; ++k) {
    const Vector g = random_vector(random, d);
    Vector used_up = g;
    tested.step(k, 0.1, used_up, y, scratch);
    listing.step(0.1, g, of_listing);
    expect_near(y, of_listing, ("step " + std::to_string(k) + ", y").c_str());
  }
}

TEST(LocalOptimizer, MatchesListingOfSgdWithMomentum) {
  expect_the_listing("sgd:momentum=0.8", MomentumListing{0.8}, 9, 12);
  expect_the_listing("sgd", MomentumListing{0}, 9, 12);
}
TEST(LocalOptimizer, MatchesPaperListingOfAdam) {
  expect_the_listing("adam", AdamListing{}, 9, 30);
  expect_the_listing("adam:beta1=0.5,beta2=0.7,eps=0.01", AdamListing{0.5, 0.7, 0.01}, 9, 30);
}
TEST(LocalOptimizer, MatchesPaperListingOfMicroAdam) {
  expect_the_listing("microadam:k=3,window=4,block=5", MicroAdamListing{3, 4, 5}, 23, 30);
  expect_the_listing("microadam:k=1,window=1,block=1", MicroAdamListing{1, 1, 1}, 6, 20);
  expect_the_listing("microadam:k=2,window=3,block=100,beta1=0.5,beta2=0.7,eps=0.01",
                     MicroAdamListing{2, 3, 100, 0.5, 0.7, 0.01}, 7, 20);
  // The vector is longer than the blocks in which m and v are computed, k is a share, and the number of codes
  // is odd.
  expect_the_listing("microadam:k=1%,block=64", MicroAdamListing{13, 10, 64}, 1301, 25);
}

TEST(LocalOptimizer, EqualsAdamForFullMicroAdamUntilWindowIsFull) {
  expect_the_listing("microadam:k=9,window=8", AdamListing{}, 9, 8);
}

// Each step uses one coordinate of 40. The others also move: their errors add up until they are the largest.
TEST(LocalOptimizer, MovesEveryCoordinateByErrorFeedbackOfMicroAdam) {
  constexpr std::size_t d = 40;
  const LocalOptimizer tested = optimizer("microadam:k=1,window=10", d);
  Scratch<double> scratch;
  Vector y(d);
  for (std::uint32_t k = 0; k < 4 * d; ++k) {
    Vector g(d);
    for (std::size_t j = 0; j < d; ++j) g[j] = 1 + 0.01 * static_cast<double>(j);
    tested.step(k, 0.1, g, y, scratch);
  }
  for (std::size_t j = 0; j < d; ++j) EXPECT_LT(y[j], 0) << j;
}

TEST(LocalOptimizer, KeepsNoStateOfOtherClients) {
  for (const char* rule : {"sgd:momentum=0.9", "adam", "microadam:k=2,window=3,block=4"}) {
    SCOPED_TRACE(rule);
    Random random(5, "gradients");
    std::vector<Vector> gradients;
    for (int k = 0; k < 5; ++k) gradients.push_back(random_vector(random, 11));
    const auto train = [&](Scratch<double>& scratch) {
      Vector y(11, 1.0);
      for (std::uint32_t k = 0; k < 5; ++k) {
        Vector g = gradients[k];
        optimizer(rule, 11).step(k, 0.1, g, y, scratch);
      }
      return y;
    };
    Scratch<double> fresh, used;
    for (const std::size_t other_d : {30u, 4u, 11u}) {  // other clients, whose last gradient is nan
      Vector y(other_d), g = random_vector(random, other_d), bad(other_d, std::nan(""));
      optimizer(rule, other_d).step(0, 0.3, g, y, used);
      optimizer(rule, other_d).step(1, 0.3, bad, y, used);
    }
    EXPECT_EQ(train(used), train(fresh));
  }
}

TEST(LocalOptimizer, DecaysWeightsFirstAndClipsTheDirection) {
  Scratch<double> scratch;
  Vector y = {1, -2}, g = {3, 4};
  optimizer("sgd", 2, 0.5, 1).step(0, 0.1, g, y, scratch);
  EXPECT_DOUBLE_EQ(y[0], 1 * 0.95 - 0.1 * 3.0 / 5);
  EXPECT_DOUBLE_EQ(y[1], -2 * 0.95 - 0.1 * 4.0 / 5);
  Vector short_one = {0.3, 0.4}, z = {0, 0};
  optimizer("sgd", 2, 0, 1).step(0, 1.0, short_one, z, scratch);
  EXPECT_EQ(z, (Vector{-0.3, -0.4}));
}

TEST(LocalOptimizer, KeepsNonFiniteValuesVisible) {
  for (const char* rule : {"sgd:momentum=0.9", "adam", "microadam:k=1"})
    for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL})
      for (const double clip_norm : {0.0, 1.0}) {
        SCOPED_TRACE(std::string(rule) + " " + std::to_string(bad) + " " + std::to_string(clip_norm));
        Scratch<double> scratch;
        Vector y(70), g(70, 1.0);
        g[66] = bad;
        optimizer(rule, 70, 0, clip_norm).step(0, 0.1, g, y, scratch);
        EXPECT_FALSE(std::isfinite(y[66]));
      }
}

// MicroAdam finds valid codes even for numbers whose differences overflow, or that are all equal.
TEST(LocalOptimizer, AcceptsEveryFiniteGradientInMicroAdam) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  Scratch<float> scratch;
  Vec<float> y(6);
  for (std::uint32_t k = 0; k < 3; ++k) {
    Vec<float> g = {kLargest, -kLargest, 0.5f * kLargest, -0.5f * kLargest, 0, 1e-45f};
    optimizer("microadam:k=1,block=6", 6).step(k, 0.1f, g, y, scratch);
  }
  Vec<float> equal(6, 2.0f), zeros(6);
  optimizer("microadam:k=1,block=6", 6).step(0, 0.1f, equal, zeros, scratch);
  optimizer("microadam:k=1,block=6", 6).step(1, 0.1f, equal, zeros, scratch);
  for (const float v : zeros) EXPECT_TRUE(std::isfinite(v));
}

// Returns the model after FedProx's listing (FedAvg's if mu = 0), with `rule` in place of y − γ_l g.
Vector fedprox_listing(const Case& c, std::uint32_t batch, double mu, double gamma_l, auto rule) {
  Vector x = c.federation.x0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    x = x + c.list.mean([&](std::uint32_t i) {
      Vector y = x;
      auto steps = rule;  // a fresh state for each client and round
      for (std::uint32_t k = 0; k < 5; ++k)
        steps.step(gamma_l, c.list.grad(i, y, c.list.batch(i, t, batch, k)) + mu * (y - x), y);
      return y - x;
    });
  }
  return x;
}

TEST(LocalOptimizer, RestartsInEachRoundOfFedAvgAndFedProx) {
  const auto run_with = [](const char* algorithm, const char* rule, Options more) {
    more.insert(more.end(), {{"local_steps", "5"}, {"local_step_size", "0.03"}, {"local_optimizer", rule}});
    return Case(changed(spec_of(algorithm, "identity", more), 2));
  };
  const Case avg = run_with("fedavg", "adam", {});
  expect_near(avg.model, fedprox_listing(avg, 2, 0, 0.03, AdamListing{}), "x");
  const Case momentum = run_with("fedprox", "sgd:momentum=0.7", {{"mu", "0.3"}});
  expect_near(momentum.model, fedprox_listing(momentum, 2, 0.3, 0.03, MomentumListing{0.7}), "x");
  const Case micro = run_with("fedprox", "microadam:k=25%,window=3,block=5", {{"mu", "0.3"}});
  expect_near(micro.model, fedprox_listing(micro, 2, 0.3, 0.03, MicroAdamListing{3, 3, 5}), "x");
}

// MicroAdam must not select its coordinates in the buffer that holds the batches of `local_epochs`.
TEST(LocalOptimizer, PreservesBatchesOfAnEpoch) {
  Case c(changed(spec_of("fedavg", "identity",
                         {{"local_epochs", "2"},
                          {"local_step_size", "0.1"},
                          {"local_optimizer", "microadam:k=2,window=3,block=4"}}),
                 1));
  Vector x = c.federation.x0;
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    x = x + c.list.mean([&](std::uint32_t i) {
      Vector y = x;
      MicroAdamListing steps{2, 3, 4};
      for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
        std::vector<std::uint32_t> order;
        shuffle_samples(1, i, t, epoch, 4, order);
        for (std::size_t s = 0; s < 4; ++s) steps.step(0.1, c.list.grad(i, y, Batch(order).subspan(s, 1)), y);
      }
      return y - x;
    });
  }
  expect_near(c.model, x, "x");
}

TEST(LocalOptimizer, FollowsCorrectedGradientOfScaffold) {
  Case c(spec_of(
      "scaffold", "identity",
      {{"local_steps", "3"}, {"local_step_size", "0.05"}, {"option", "1"}, {"local_optimizer", "adam"}}));
  Vector x = c.federation.x0, mean_c(c.list.d);
  std::vector<Vector> c_i(c.list.n, Vector(c.list.d));
  for (std::uint32_t t = 0; t < kRounds; ++t) {
    Vector change(c.list.d), next_c(c.list.d);
    for (std::uint32_t i = 0; i < c.list.n; ++i) {
      Vector y = x;
      AdamListing steps;
      for (int k = 0; k < 3; ++k) steps.step(0.05, c.list.grad(i, y) - c_i[i] + mean_c, y);
      c_i[i] = c.list.grad(i, x);
      change = change + (1.0 / c.list.n) * (y - x);
      next_c = next_c + (1.0 / c.list.n) * c_i[i];
    }
    x = x + change;
    mean_c = next_c;
  }
  expect_near(c.model, x, "x");
}

TEST(LocalOptimizer, AllocatesNothingAfterFirstSteps) {
  const Federation<double> federation(1, 5000);
  for (const char* rule : {"sgd", "sgd:momentum=0.9", "adam", "microadam"}) {
    SCOPED_TRACE(rule);
    const auto run_context = federation.run_context(
        changed(spec_of("fedavg", "identity",
                        {{"local_steps", "12"}, {"local_step_size", "0.01"}, {"local_optimizer", rule}}),
                2));
    const auto client = make_client<double>(run_context);
    Scratch<double> scratch;
    Downlink<double> down;
    down.parts = {Payload<double>::dense(run_context->x0)};
    for (std::uint32_t t = 0; t < 4; ++t) {
      if (t == 2) allocations::reset();
      down.round = t;
      const ClientContext<double> context{.seed = 1,
                                          .oracle = *federation.oracles[0],
                                          .compressor = run_context->compressor,
                                          .scratch = scratch,
                                          .draw = t};
      client->commit(client->reply(down, context));
    }
    EXPECT_EQ(allocations::count, 0u);
  }
}

std::string refusal(const std::string& algorithm, Options parameters) {
  try {
    Federation<double>(4, 10).run_context(spec_of(algorithm, "identity", std::move(parameters)));
  } catch (const ConfigError& error) {
    return error.key() + ": " + error.what();
  }
  return "nothing";
}

TEST(LocalOptimizer, RejectsUnknownNames) {
  const auto of = [](const char* rule) {
    return refusal("fedavg", {{"local_step_size", "0.1"}, {"local_optimizer", rule}});
  };
  EXPECT_EQ(of("adem"), "algorithm.local_optimizer: unknown optimizer 'adem'; did you mean 'adam'?");
  EXPECT_EQ(of("adam:beta3=0.5"),
            "algorithm.local_optimizer: adam has no parameter 'beta3'; did you mean 'beta1'?");
  EXPECT_EQ(of("adam:beta1=1"), "algorithm.local_optimizer: adam: beta1 must be a number in [0, 1), not 1");
  EXPECT_EQ(of("microadam:k=11"),
            "algorithm.local_optimizer: microadam: k = 11 is larger than the dimension 10");
  EXPECT_EQ(of("adam:"),
            "algorithm.local_optimizer: 'adam:' ends with a colon; leave it out, or write "
            "NAME:KEY=VALUE");
  EXPECT_EQ(of("microadam:window=0"),
            "algorithm.local_optimizer: microadam: window must be an integer, 1 to 256, not 0");
  EXPECT_EQ(of("microadam"), "nothing");
}

TEST(LocalOptimizer, IsWrittenOutInResolvedExperiments) {
  const auto resolved = [](const char* rule) {
    const auto run_context = Federation<double>(4, 200).run_context(
        spec_of("fedavg", "identity", {{"local_step_size", "0.1"}, {"local_optimizer", rule}}));
    for (const auto& [key, text] : run_context->algorithm.parameters)
      if (key == "local_optimizer") return text;
    return std::string("missing");
  };
  EXPECT_EQ(resolved("sgd"), "sgd");
  EXPECT_EQ(resolved("microadam:window=5"),
            "microadam:k=2,window=5,block=64,beta1=0.9,beta2=0.999,eps=1e-08");
  EXPECT_EQ(resolved(resolved("microadam").c_str()), resolved("microadam"));
}

TEST(LocalOptimizer, HasTheoryStepOnlyForPlainGradientSteps) {
  EXPECT_EQ(refusal("fedavg", {}), "nothing");
  const std::string theory =
      "algorithm.local_step_size: theory only has a step size for plain gradient steps; give a number, or "
      "leave out local_optimizer, local_weight_decay and local_clip_norm";
  for (const char* algorithm : {"fedavg", "fedprox", "fedadam"}) {
    EXPECT_EQ(refusal(algorithm, {{"local_optimizer", "adam"}}), theory);
    EXPECT_EQ(refusal(algorithm, {{"local_optimizer", "sgd:momentum=0.9"}}), theory);
    EXPECT_EQ(refusal(algorithm, {{"local_weight_decay", "0.1"}}), theory);
    EXPECT_EQ(refusal(algorithm, {{"local_clip_norm", "1"}}), theory);
  }
  EXPECT_EQ(refusal("scaffold", {{"local_optimizer", "adam"}, {"option", "1"}}), theory);
  EXPECT_EQ(
      refusal("scaffold", {{"local_optimizer", "adam"}, {"local_step_size", "0.1"}}),
      "algorithm.option: option 2 computes c_i from the local steps, which must be plain gradient steps; "
      "with local_optimizer, local_weight_decay or local_clip_norm write option = \"1\"");
  EXPECT_EQ(
      refusal("proxskip", {{"local_optimizer", "adam"}}),
      "algorithm.local_optimizer: proxskip has no parameter 'local_optimizer'; known: step_size, p, name, "
      "compressor, batch");
}

}  // namespace
}  // namespace gradwire
