#include "engine/smoothness/smoothness.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/engine/jacobi.h"
#include "tests/engine/oracle_checks.h"
#include "tests/engine/problem_types.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

using Matrix = DenseRows;

constexpr std::size_t kColumns = 7;

// A problem and the data of its clients.
struct Federated {
  ProblemSpec spec = {};
  DataSchema schema{.columns = kColumns, .labels = {0, 1}};
  std::vector<ClientDataset> parts;
};

Federated federated(const std::string& kind, Regularizer regularizer, double lambda,
                    const std::vector<std::size_t>& sizes = {12, 5, 30},
                    LinearLoss loss = LinearLoss::kLogistic) {
  Federated problem;
  problem.spec = spec_of_type(kind);
  if (auto* logistic = std::get_if<Logistic>(&problem.spec.problem)) logistic->loss = loss;
  linear_model(problem.spec).regularizer = regularizer;
  linear_model(problem.spec).lambda = lambda;
  problem.spec.clients = static_cast<std::uint32_t>(sizes.size());
  for (const std::size_t rows : sizes) {
    problem.parts.push_back({random_data(rows, kColumns, 0.6, {0, 1}, rows), {}});
  }
  return problem;
}

// Returns sum_i weights[i] / m_i A_i^T A_i.
Matrix naive_gram(const std::vector<ClientDataset>& parts, const std::vector<double>& weights) {
  Matrix gram(kColumns, std::vector<double>(kColumns));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const DenseRows rows = dense_rows(parts[i].train);
    for (const auto& row : rows) {
      for (std::size_t j = 0; j < kColumns; ++j) {
        for (std::size_t k = 0; k < kColumns; ++k) {
          gram[j][k] += weights[i] / static_cast<double>(rows.size()) * row[j] * row[k];
        }
      }
    }
  }
  return gram;
}

struct SmoothnessCase {
  const char* kind;
  Regularizer regularizer;
  double curvature;      // curvature of the loss
  double largest_ridge;  // the amount that R adds to L per unit of lambda
  LinearLoss loss = LinearLoss::kLogistic;

  Federated problem() const { return federated(kind, regularizer, 0.3, {12, 5, 30}, loss); }
  bool convex() const { return regularizer != Regularizer::kNonconvex && loss == LinearLoss::kLogistic; }
};
// Returns the largest second derivative of (1 - sigma(z))^2 by a search over z: first coarse, then around the
// best.
double squared_curvature() {
  double best = 0, largest = 0;
  const auto attempt = [&](double z) {
    const double s = 1 / (1 + std::exp(z)), curvature = std::abs(2 * s * s * (1 - s) * (2 - 3 * s));
    if (curvature > largest) largest = curvature, best = z;
  };
  for (double z = -3; z <= 3; z += 1e-3) attempt(z);
  for (double z = best - 1e-3, end = best + 1e-3; z <= end; z += 1e-7) attempt(z);
  return largest;
}
class Constants : public ::testing::TestWithParam<SmoothnessCase> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Constants,
                         ::testing::Values(SmoothnessCase{"logistic", Regularizer::kNone, 0.25, 0},
                                           SmoothnessCase{"logistic", Regularizer::kL2, 0.25, 1},
                                           SmoothnessCase{"logistic", Regularizer::kNonconvex, 0.25, 2},
                                           SmoothnessCase{"logistic", Regularizer::kNone, squared_curvature(),
                                                          0, LinearLoss::kSigmoidSquared},
                                           SmoothnessCase{"logistic", Regularizer::kL2, squared_curvature(),
                                                          1, LinearLoss::kSigmoidSquared},
                                           SmoothnessCase{"least_squares", Regularizer::kNone, 1, 0},
                                           SmoothnessCase{"least_squares", Regularizer::kL2, 1, 1},
                                           SmoothnessCase{"least_squares", Regularizer::kNonconvex, 1, 2}));

TEST_P(Constants, MatchTheSpectraOfDenseGramMatrices) {
  const double lambda = 0.3;
  const SmoothnessCase& c = GetParam();
  const Federated p = c.problem();
  const double ridge = c.largest_ridge * lambda;
  const auto mu_of = [&](const std::vector<double>& spectrum) {
    if (!c.convex()) return 0.0;
    if (c.curvature != 1) return ridge;
    if (ridge > 0) return std::max(0.0, spectrum.front()) + ridge;
    return *std::find_if(spectrum.begin(), spectrum.end(), [](double v) { return v > 1e-10; });
  };
  for (const std::vector<double>& weights : {std::vector<double>{}, std::vector<double>{0.2, 0.5, 0.3}}) {
    const Smoothness got = smoothness(p.spec, p.schema, p.parts, weights);
    const std::vector<double> w = weights.empty() ? std::vector<double>(3, 1.0 / 3) : weights;
    const auto spectrum = jacobi_eigenvalues(naive_gram(p.parts, w));
    EXPECT_NEAR(got.L, c.curvature * spectrum.back() + ridge, 1e-12 * got.L);
    EXPECT_NEAR(got.mu, mu_of(spectrum), 1e-12);
    EXPECT_EQ(got.convex, c.convex());
    EXPECT_EQ(got.weights, weights);
    EXPECT_TRUE(got.exact);
    ASSERT_EQ(got.L_i.size(), 3u);
    for (std::uint32_t i = 0; i < 3; ++i) {
      const auto own = jacobi_eigenvalues(naive_gram({p.parts[i]}, {1}));
      const ClientSmoothness client = client_smoothness(p.spec, p.schema, p.parts[i], i);
      EXPECT_NEAR(client.L_i, c.curvature * own.back() + ridge, 1e-12 * client.L_i);
      EXPECT_NEAR(client.mu_i, mu_of(own), 1e-12);
      EXPECT_EQ(client.L_i, got.L_i[i]);
    }
  }
}

TEST_P(Constants, BoundTheQuotientsOfGradients) {
  const SmoothnessCase& c = GetParam();
  const Federated p = c.problem();
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto oracle = make_oracle<double>(p.spec, p.schema, p.parts[i], i);
    const ClientSmoothness constants = client_smoothness(p.spec, p.schema, p.parts[i], i);
    double largest = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      const auto x = random_point(kColumns, 0.3, 2 * seed), y = random_point(kColumns, 0.3, 2 * seed + 1);
      const auto gx = evaluate(*oracle, x).gradient, gy = evaluate(*oracle, y).gradient;
      double difference = 0, distance = 0;
      for (std::size_t j = 0; j < kColumns; ++j) {
        difference += std::pow(gx[j] - gy[j], 2);
        distance += std::pow(x[j] - y[j], 2);
      }
      largest = std::max(largest, std::sqrt(difference / distance));
    }
    EXPECT_LE(largest, constants.L_i);
    EXPECT_GE(largest, 0.3 * constants.L_i);
    EXPECT_LE(constants.mu_i, constants.L_i);
  }
}

TEST_P(Constants, MatchFunctionsWithOneSampleForEachSample) {
  const SmoothnessCase& c = GetParam();
  const Federated p = c.problem();
  const std::vector<double> weights = {0.2, 0.5, 0.3};
  double mean_square = 0, largest = 0;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::size_t rows = p.parts[i].train.rows();
    double square = 0, own_largest = 0;
    for (std::uint32_t r = 0; r < rows; ++r) {
      const ClientDataset one{select_rows(p.parts[i].train, std::vector<std::uint32_t>{r}), {}};
      const double L_ij = client_smoothness(p.spec, p.schema, one, i).L_i;
      square += L_ij * L_ij / static_cast<double>(rows);
      own_largest = std::max(own_largest, L_ij);
    }
    const ClientSmoothness client = client_smoothness(p.spec, p.schema, p.parts[i], i);
    EXPECT_NEAR(client.L_s, std::sqrt(square), 1e-12 * client.L_s);
    EXPECT_NEAR(client.L_sample_max, own_largest, 1e-12 * own_largest);
    EXPECT_GE(client.L_s, client.L_i * (1 - 1e-12));
    mean_square += weights[i] * square;
    largest = std::max(largest, own_largest);
  }
  const Smoothness total = smoothness(p.spec, p.schema, p.parts, weights);
  EXPECT_NEAR(total.L_s, std::sqrt(mean_square), 1e-12 * total.L_s);
  EXPECT_NEAR(total.L_sample_max, largest, 1e-12 * largest);
}

// Returns sum_i w_i (H_i + ridge I)^2 - subtract * (sum_i w_i (H_i + ridge I))^2, H_i = A_i^T A_i / m_i.
Matrix naive_mean_square(const std::vector<ClientDataset>& parts, const std::vector<double>& weights,
                         double ridge, double subtract) {
  Matrix mean(kColumns, std::vector<double>(kColumns)), result = mean;
  const auto add_square = [&](double scale, const Matrix& h) {
    for (std::size_t j = 0; j < kColumns; ++j)
      for (std::size_t k = 0; k < kColumns; ++k)
        for (std::size_t l = 0; l < kColumns; ++l) result[j][k] += scale * h[j][l] * h[l][k];
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Matrix own = naive_gram({parts[i]}, {1});
    for (std::size_t j = 0; j < kColumns; ++j) {
      own[j][j] += ridge;
      for (std::size_t k = 0; k < kColumns; ++k) mean[j][k] += weights[i] * own[j][k];
    }
    add_square(weights[i], own);
  }
  add_square(-subtract, mean);
  return result;
}

TEST_P(Constants, HaveHessianVariancesOfDenseMatricesIfHessiansAreConstant) {
  const SmoothnessCase& c = GetParam();
  const Federated p = c.problem();
  for (const std::vector<double>& weights : {std::vector<double>{}, std::vector<double>{0.2, 0.5, 0.3}}) {
    const Smoothness got = smoothness(p.spec, p.schema, p.parts, weights);
    const std::string kind = c.kind;
    ASSERT_EQ(got.L_pm.has_value(), kind == "least_squares");
    ASSERT_EQ(got.L_plus.has_value(), kind == "least_squares" && c.regularizer != Regularizer::kNonconvex);
    EXPECT_LE(got.L, got.L_plus_bound() * (1 + 1e-12));
    EXPECT_LE(got.L_plus_bound(), got.L_tilde() * (1 + 1e-12));
    EXPECT_LE(got.L_pm_bound(), got.L_plus_bound() * (1 + 1e-12));
    if (!got.L_pm) continue;
    const std::vector<double> w = weights.empty() ? std::vector<double>(3, 1.0 / 3) : weights;
    const double ridge = c.regularizer == Regularizer::kL2 ? 0.3 : 0;
    const double L_pm = std::sqrt(jacobi_eigenvalues(naive_mean_square(p.parts, w, ridge, 1)).back());
    EXPECT_NEAR(*got.L_pm, L_pm, 1e-12 * L_pm);
    if (!got.L_plus) continue;
    const double L_plus = std::sqrt(jacobi_eigenvalues(naive_mean_square(p.parts, w, ridge, 0)).back());
    EXPECT_NEAR(*got.L_plus, L_plus, 1e-12 * L_plus);
  }
}

TEST(Smoothness, IsWithoutHessianVarianceForEqualClients) {
  Federated p = federated("least_squares", Regularizer::kNone, 0, {20, 20});
  p.parts[1] = p.parts[0];
  const Smoothness got = smoothness(p.spec, p.schema, p.parts, std::vector<double>{0.3, 0.7});
  EXPECT_LE(got.L_pm.value(), 1e-6 * got.L);
  EXPECT_NEAR(got.L_plus.value(), got.L, 1e-12 * got.L);
  Federated alone = federated("least_squares", Regularizer::kNone, 0, {20});
  EXPECT_EQ(smoothness(alone.spec, alone.schema, alone.parts, {}).L_pm, 0.0);
}

TEST(Smoothness, TreatsABiasAsAFeatureOfOnes) {
  for (const char* kind : {"logistic", "least_squares"}) {
    Federated biased = federated(kind, Regularizer::kL2, 0.1);
    Federated written = biased;
    linear_model(biased.spec).bias = true;
    written.schema.columns = kColumns + 1;
    for (ClientDataset& part : written.parts) {
      DenseRows rows = dense_rows(part.train);
      for (auto& row : rows) row.push_back(1);
      part.train = sparse_data(rows, part.train.label, kColumns + 1);
    }
    const Smoothness got = smoothness(biased.spec, biased.schema, biased.parts, {});
    const Smoothness want = smoothness(written.spec, written.schema, written.parts, {});
    EXPECT_EQ(got.L, want.L);
    EXPECT_EQ(got.L_i, want.L_i);
    EXPECT_EQ(got.mu, want.mu);
    EXPECT_EQ(got.L_s, want.L_s);
    EXPECT_EQ(client_smoothness(biased.spec, biased.schema, biased.parts[1], 1).L_i, want.L_i[1]);
  }
}

TEST(Smoothness, MatchesTheFormulaForDegenerateData) {
  Federated p = federated("least_squares", Regularizer::kNone, 0, {1});
  p.parts[0].train = sparse_data({{3, 0, 4, 0, 0, 0, 0}}, {1}, kColumns);  // one row: rank 1
  Smoothness one_row = smoothness(p.spec, p.schema, p.parts, {});
  EXPECT_NEAR(one_row.L, 25, 1e-12 * 25);
  EXPECT_NEAR(one_row.mu, 25, 1e-12 * 25);
  linear_model(p.spec).regularizer = Regularizer::kL2;
  linear_model(p.spec).lambda = 0.5;
  EXPECT_DOUBLE_EQ(smoothness(p.spec, p.schema, p.parts, {}).mu, 0.5);

  linear_model(p.spec).lambda = 0;
  p.parts[0].train = sparse_data({{}, {}}, {1, 2}, kColumns);  // all features 0
  const Smoothness zero = smoothness(p.spec, p.schema, p.parts, {});
  EXPECT_EQ(zero.L, 0);
  EXPECT_EQ(zero.mu, 0);

  p.parts[0].train = sparse_data({}, {}, kColumns);
  EXPECT_THROW(smoothness(p.spec, p.schema, p.parts, {}), DataError);
}

TEST(Smoothness, RefusesFeaturesWhoseSquaresAreTooLargeAndNamesThem) {
  for (const char* kind : {"least_squares", "logistic"})
    for (const double large : {1e80, -1.7e308}) {
      Federated p = federated(kind, Regularizer::kL2, 0.1, {2, 2});
      p.parts[1].train = sparse_data({{1, 0, 0, 0, 0, 0, 0}, {0, 3, large, 0, 0, 0, 0}}, {0, 1}, kColumns);
      const std::string error =
          std::string("client 1: feature number 3 of its sample 2 is ") +
          (large > 0 ? "1e+80" : "-1.7e+308") +
          ", which is too large for the smoothness constants of theory; scale the features";
      EXPECT_EQ(data_error([&] { (void)smoothness(p.spec, p.schema, p.parts, {}); }), error);
      EXPECT_EQ(data_error([&] { (void)client_smoothness(p.spec, p.schema, p.parts[1], 1); }), error);
    }
  Federated p = federated("logistic", Regularizer::kL2, 0.1, {1});
  p.parts[0].train = sparse_data({{1e74, 0, 0, 0, 0, 0, 0}}, {1}, kColumns);
  const Smoothness s = smoothness(p.spec, p.schema, p.parts, {});
  EXPECT_NEAR(s.L, 0.25e148, 1e136);
  EXPECT_NEAR(s.L_s, 0.25e148, 1e136);
}

TEST(Smoothness, TakesThePlConstantOfFewRowsFromTheTwinMatrix) {
  // Fewer samples than features, one of them twice: 4 rows of rank 3.
  Federated p = federated("least_squares", Regularizer::kNone, 0, {3, 1});
  p.parts[1].train = select_rows(p.parts[0].train, std::vector<std::uint32_t>{2});
  const auto spectrum = jacobi_eigenvalues(naive_gram(p.parts, {0.5, 0.5}));
  const double smallest = *std::find_if(spectrum.begin(), spectrum.end(), [](double v) { return v > 1e-10; });
  EXPECT_NEAR(smoothness(p.spec, p.schema, p.parts, {}).mu, smallest, 1e-12 * smallest);
}

TEST(Smoothness, HasTheSameGramMatrixForDenseAndSparseRows) {
  // Enough full rows for the blocked product, and not a multiple of its block.
  Federated p = federated("least_squares", Regularizer::kNone, 0, {53});
  p.parts[0].train = random_data(53, kColumns, 1.1, {});
  const auto spectrum = jacobi_eigenvalues(naive_gram(p.parts, {1}));
  const Smoothness got = smoothness(p.spec, p.schema, p.parts, {});
  EXPECT_NEAR(got.mu, spectrum.front(), 1e-12 * spectrum.front());
  EXPECT_NEAR(got.L, spectrum.back(), 1e-12 * spectrum.back());
}

TEST(Smoothness, HasTheMeansAndMaximaOfTheClients) {
  Smoothness s;
  EXPECT_EQ(s.L_max() + s.L_avg() + s.L_tilde(), 0);
  s.L_i = {1, 2, 6};
  EXPECT_EQ(s.L_max(), 6);
  EXPECT_EQ(s.L_avg(), 3);
  EXPECT_DOUBLE_EQ(s.L_tilde(), std::sqrt(41.0 / 3));
  s.weights = {0.5, 0.25, 0.25};
  EXPECT_DOUBLE_EQ(s.L_avg(), 2.5);
  EXPECT_DOUBLE_EQ(s.L_tilde(), std::sqrt(10.5));
}

TEST(Smoothness, BoundsUnknownVariancesByTheNextLargerConstant) {
  Smoothness s;
  s.L_i = {3, 4};
  const double L_tilde = std::sqrt(12.5);
  EXPECT_DOUBLE_EQ(s.L_plus_bound(), L_tilde);
  EXPECT_DOUBLE_EQ(s.L_pm_bound(), L_tilde);
  s.L_plus = 2;
  EXPECT_EQ(s.L_plus_bound(), 2);
  EXPECT_EQ(s.L_pm_bound(), 2);
  s.L_pm = 0;
  EXPECT_EQ(s.L_pm_bound(), 0);
}

TEST(Smoothness, TakesMeansForAServerWithoutDataAndSaysSo) {
  const Federated p = federated("logistic", Regularizer::kL2, 0.1);
  std::vector<ClientSmoothness> clients;
  for (std::uint32_t i = 0; i < 3; ++i) clients.push_back(client_smoothness(p.spec, p.schema, p.parts[i], i));
  const Smoothness estimate = smoothness_from_clients(p.spec, clients);
  const Smoothness exact = smoothness(p.spec, p.schema, p.parts, {});
  EXPECT_FALSE(estimate.exact);
  EXPECT_EQ(estimate.L, exact.L_avg());
  EXPECT_GE(estimate.L, exact.L);
  EXPECT_EQ(estimate.mu, exact.mu) << "lambda, in the same bits";
  EXPECT_EQ(estimate.L_i, exact.L_i);
  EXPECT_TRUE(estimate.convex);
  EXPECT_EQ(estimate.L_s, exact.L_s);
  EXPECT_EQ(estimate.L_sample_max, exact.L_sample_max);
  const std::vector<double> weights = {0.5, 0.25, 0.25};
  const Smoothness weighted = smoothness_from_clients(p.spec, clients, weights);
  EXPECT_DOUBLE_EQ(weighted.L, 0.5 * clients[0].L_i + 0.25 * clients[1].L_i + 0.25 * clients[2].L_i);
  EXPECT_EQ(weighted.weights, weights);
  EXPECT_EQ(weighted.mu, smoothness(p.spec, p.schema, p.parts, weights).mu);
  EXPECT_EQ(weighted.L_s, smoothness(p.spec, p.schema, p.parts, weights).L_s);
}

TEST(Smoothness, KnowsALowerBoundOfMuWithoutData) {
  for (const char* kind : {"logistic", "least_squares"}) {
    const Federated ridge = federated(kind, Regularizer::kL2, 0.1);
    EXPECT_EQ(known_convexity(ridge.spec), 0.1);
    EXPECT_GE(smoothness(ridge.spec, ridge.schema, ridge.parts, {}).mu * (1 + 1e-14), 0.1);
    EXPECT_EQ(known_convexity(federated(kind, Regularizer::kNone, 0).spec), 0);
    EXPECT_EQ(known_convexity(federated(kind, Regularizer::kNonconvex, 0.1).spec), 0);
  }
  ProblemSpec quadratic;
  quadratic.problem = Quadratic{{.dim = 10, .lambda = 0.25}};
  quadratic.clients = 3;
  EXPECT_EQ(known_convexity(quadratic), 0.25);
}

TEST(Smoothness, DoesNotAveragePlConstantsOfClients) {
  // f_1 = x_1^2 / 2 and f_2 = x_2^2 / 2 have the PL constant 1; their mean has 1/2.
  Federated p = federated("least_squares", Regularizer::kNone, 0, {1, 1});
  p.parts[0].train = sparse_data({{1}}, {0}, kColumns);
  p.parts[1].train = sparse_data({{0, 1}}, {0}, kColumns);
  std::vector<ClientSmoothness> clients;
  for (std::uint32_t i = 0; i < 2; ++i) clients.push_back(client_smoothness(p.spec, p.schema, p.parts[i], i));
  EXPECT_NEAR(clients[0].mu_i, 1, 1e-14);
  EXPECT_NEAR(smoothness(p.spec, p.schema, p.parts, {}).mu, 0.5, 1e-14);
  EXPECT_EQ(smoothness_from_clients(p.spec, clients).mu, 0);
}

}  // namespace
}  // namespace gradwire
