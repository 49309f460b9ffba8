// Gradient codes: recovery of the sum over all parts from the sums of some clients.
#include "algorithms/support/gradient_code.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "base/random.h"

namespace gradwire {
namespace {

// Calls visit(clients) for each subset of `size` of n clients.
void each_set(std::uint32_t n, std::uint32_t size, const auto& visit) {
  for (std::uint32_t bits = 0; bits < (1u << n); ++bits) {
    std::vector<ClientId> clients;
    for (ClientId i = 0; i < n; ++i)
      if (bits >> i & 1) clients.push_back(i);
    if (clients.size() == size) visit(clients);
  }
}

// Returns the recovered factor of each part, Σ a_i b_i over the clients that hold it. Client i multiplies the
// part by b_i, and the server weights its reply by a_i.
std::vector<double> recovered(const GradientCode& code, std::uint32_t n, DataReplication replication,
                              const std::vector<ClientId>& clients) {
  const std::vector<double> a = code.weights(clients);
  std::vector<double> sum(n);
  for (std::size_t k = 0; k < clients.size(); ++k) {
    const std::vector<double> b = code.factors(clients[k]);
    for (std::uint32_t held = 0; held < replication.count; ++held)
      sum[replication.part(clients[k], held, n)] += a[k] * b[held];
  }
  return sum;
}
double error_sq(const std::vector<double>& sum) {
  double error = 0;
  for (const double v : sum) error += (v - 1) * (v - 1);
  return error;
}

TEST(GradientCode, RecoversSumFromAnyNMinusRClients) {
  constexpr std::uint32_t kCodedClients = 12;
  for (const DataReplication replication :
       {DataReplication{1, ReplicaPlacement::kRing}, DataReplication{2, ReplicaPlacement::kRing},
        DataReplication{3, ReplicaPlacement::kRing}, DataReplication{5, ReplicaPlacement::kRing},
        DataReplication{2, ReplicaPlacement::kGroups}, DataReplication{3, ReplicaPlacement::kGroups},
        DataReplication{4, ReplicaPlacement::kGroups}}) {
    const GradientCode code(kCodedClients, replication, true, 1);
    double worst = 0;
    for (const std::uint32_t replies : {kCodedClients - (replication.count - 1), kCodedClients})
      each_set(kCodedClients, replies, [&](const std::vector<ClientId>& clients) {
        worst = std::max(worst, error_sq(recovered(code, kCodedClients, replication, clients)));
      });
    EXPECT_LT(std::sqrt(worst), replication.placement == ReplicaPlacement::kGroups ? 1e-15 : 1e-9)
        << replication.count;
  }
}

TEST(GradientCode, StaysExactForLargeRings) {
  constexpr std::uint32_t kCodedClients = 100;
  Random random(3, "late clients");
  for (const std::uint32_t replication : {2u, 4u, 8u}) {
    const GradientCode code(kCodedClients, {replication, ReplicaPlacement::kRing}, true, 7);
    double worst = 0;
    for (int trial = 0; trial < 20; ++trial) {
      std::vector<ClientId> clients;
      for (ClientId i = 0; i < kCodedClients; ++i) clients.push_back(i);
      random.shuffle(std::span(clients));
      clients.resize(kCodedClients - (replication - 1));
      std::sort(clients.begin(), clients.end());
      worst = std::max(
          worst, error_sq(recovered(code, kCodedClients, {replication, ReplicaPlacement::kRing}, clients)));
    }
    EXPECT_LT(std::sqrt(worst), 1e-6) << replication;
  }
}

TEST(GradientCode, DoesNotRecoverSumFromFewerClients) {
  const DataReplication ring{3, ReplicaPlacement::kRing};
  const GradientCode code(8, ring, true, 1);
  each_set(8, 5, [&](const std::vector<ClientId>& clients) {
    EXPECT_GT(error_sq(recovered(code, 8, ring, clients)), 1e-3);
  });
}

TEST(GradientCode, UsesFirstReplyOfEachGroup) {
  const GradientCode code(6, {3, ReplicaPlacement::kGroups}, true, 1);
  EXPECT_EQ(code.weights(std::vector<ClientId>{1, 2, 5}), (std::vector<double>{1, 0, 1}));
  EXPECT_EQ(code.weights(std::vector<ClientId>{0, 1, 2}), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(code.factors(4), (std::vector<double>{1, 1, 1}));
}

TEST(GradientCode, DecodesEqualFactorsByLeastSquares) {
  const DataReplication ring{3, ReplicaPlacement::kRing};
  const GradientCode code(9, ring, false, 1);
  EXPECT_TRUE(code.is_plain());
  std::size_t approximate = 0;
  for (const std::uint32_t replies : {4u, 6u, 8u, 9u})
    each_set(9, replies, [&](const std::vector<ClientId>& clients) {
      const std::vector<double> sum = recovered(code, 9, ring, clients);
      approximate += error_sq(sum) > 1e-6;
      // The residual is the smallest: it is orthogonal to the sum that each client sends.
      for (const ClientId i : clients) {
        double along = 0;
        for (std::uint32_t k = 0; k < 3; ++k) along += 1 - sum[ring.part(i, k, 9)];
        EXPECT_NEAR(along, 0, 1e-12);
      }
    });
  EXPECT_GT(approximate, 100u);
  std::vector<ClientId> all{0, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_NEAR(error_sq(recovered(code, 9, ring, all)), 0, 1e-25);
}

// Cauchy-Schwarz for the recovered factors v_j: ‖Σ_j (v_j − 1) ∇f_j‖² ≤ Σ (v_j − 1)² Σ ‖∇f_j‖².
TEST(GradientCode, ApproximatesWithinErrorBoundOfTheorem) {
  constexpr std::uint32_t kCodedClients = 10;
  constexpr std::size_t kDim = 4;
  const DataReplication ring{4, ReplicaPlacement::kRing};
  const GradientCode code(kCodedClients, ring, false, 1);
  Random random(5, "gradients");
  double largest_share = 0;
  each_set(kCodedClients, 4, [&](const std::vector<ClientId>& clients) {
    const std::vector<double> v = recovered(code, kCodedClients, ring, clients);
    double squares = 0, error = 0;
    std::vector<double> away(kDim);
    for (std::uint32_t j = 0; j < kCodedClients; ++j)
      for (double& at : away) {
        const double g = random.normal();
        squares += g * g;
        at += (v[j] - 1) * g / kCodedClients;
      }
    for (const double at : away) error += at * at;
    const double bound = error_sq(v) / kCodedClients * (squares / kCodedClients);
    EXPECT_LE(error, bound * (1 + 1e-12) + 1e-25);
    if (bound > 1e-20) largest_share = std::max(largest_share, error / bound);
  });
  EXPECT_GT(largest_share, 0.2) << "the bound is too loose to test anything";
}

}  // namespace
}  // namespace gradwire
