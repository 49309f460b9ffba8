// Oracle::train(): functions of a program that do the local training of fedavg and its variants.
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "gradwire/train.h"
#include "tests/api/api_support.h"
#include "tests/api/distances.h"

namespace gradwire {
namespace {

// Takes the local steps of FedAvg by itself, over all samples.
template <class Real>
class Trains : public Distance<Real> {
 public:
  using Distance<Real>::Distance;
  std::optional<Real> train(std::span<Real> y, const LocalTraining& training) override {
    orders.push_back(training);
    const std::vector<Real> x(y.begin(), y.end());
    std::vector<Real> gradient(y.size());
    std::optional<Real> first;
    for (std::uint32_t k = 0; k < training.steps; ++k) {
      const Real loss = this->loss_and_gradient(y, {}, gradient);
      if (k == 0) first = loss;
      if (training.proximal > 0)
        for (std::size_t j = 0; j < y.size(); ++j)
          gradient[j] += static_cast<Real>(training.proximal) * (y[j] - x[j]);
      for (std::size_t j = 0; j < y.size(); ++j) y[j] -= static_cast<Real>(training.step_size) * gradient[j];
    }
    return first;
  }

  std::vector<LocalTraining> orders;
};

template <class Real>
std::vector<Trains<Real>> trainers() {
  return {Trains<Real>({1, 0, 4}), Trains<Real>({3, 0, 0}), Trains<Real>({0, 8, 0}), Trains<Real>({0, 0, 0})};
}

template <class Real>
void expect_same(const TrainKeys& keys) {
  SCOPED_TRACE(keys.algorithm);
  auto plain = distances<Real>();
  auto own = trainers<Real>();
  const TrainResult want = train(plain, keys), got = train(own, keys);
  EXPECT_EQ(model_of(got), model_of(want));
  EXPECT_EQ(got.metrics("loss"), want.metrics("loss"));
  EXPECT_EQ(got.metrics("grad_calls"), want.metrics("grad_calls"));
  for (const Trains<Real>& client : own) EXPECT_EQ(client.orders.size(), 6u);
}

TEST(LocalTraining, GivesTheBitsOfTheSameStepsByTheAlgorithm) {
  for (const char* algorithm : {"fedavg", "fedprox", "fedadam"}) {
    TrainKeys keys = {.algorithm = algorithm,
                      .rounds = 6,
                      .set = {{"algorithm.local_steps", "5"}, {"algorithm.local_step_size", "0.1"}}};
    if (std::string(algorithm) == "fedprox") keys.set.push_back({"algorithm.mu", "0.3"});
    expect_same<double>(keys);
    expect_same<float>(keys);
  }
}

TEST(LocalTraining, IsToldWhatTheExperimentSays) {
  auto own = trainers<double>();
  train(own, {.algorithm = "fedprox",
              .rounds = 3,
              .seed = 7,
              .set = {{"algorithm.local_epochs", "2"},
                      {"algorithm.local_step_size", "0.125"},
                      {"algorithm.mu", "0.5"},
                      {"algorithm.batch", "1"}}});
  std::set<std::uint64_t> seeds;
  for (const Trains<double>& client : own) {
    ASSERT_EQ(client.orders.size(), 3u);
    for (std::uint32_t t = 0; t < 3; ++t) {
      const LocalTraining& order = client.orders[t];
      EXPECT_EQ(order.round, t);
      EXPECT_EQ(order.epochs, 2u);
      EXPECT_EQ(order.batch, 1u);
      EXPECT_EQ(order.step_size, 0.125);
      EXPECT_EQ(order.proximal, 0.5);
      seeds.insert(order.seed);
    }
  }
  EXPECT_EQ(seeds.size(), 12u) << "each client and round has its own";
}

TEST(LocalTraining, IsNotAskedForOtherOptimizers) {
  auto own = trainers<double>();
  auto plain = distances<double>();
  const TrainKeys keys = {.algorithm = "fedavg",
                          .rounds = 4,
                          .set = {{"algorithm.local_steps", "2"},
                                  {"algorithm.local_step_size", "0.1"},
                                  {"algorithm.local_optimizer", "adam"}}};
  EXPECT_EQ(model_of(train(own, keys)), model_of(train(plain, keys)));
  for (const Trains<double>& client : own) EXPECT_TRUE(client.orders.empty());
}

// A model that is not finite is not sent, as for any other reply.
struct Diverges : Distance<double> {
  using Distance<double>::Distance;
  std::optional<double> train(std::span<double> y, const LocalTraining& training) override {
    if (training.round == 2) y[1] = std::numeric_limits<double>::quiet_NaN();
    return 1.0;
  }
};

TEST(LocalTraining, EndsTheRunIfItGivesNoNumbers) {
  std::vector<Diverges> own = {Diverges({1, 0, 4}), Diverges({3, 0, 0})};
  const TrainResult result =
      train(own, {.algorithm = "fedavg", .rounds = 5, .set = {{"algorithm.local_step_size", "0.1"}}});
  EXPECT_EQ(result.outcome(), "diverged");
  EXPECT_EQ(result.rounds(), 2u);
}

}  // namespace
}  // namespace gradwire
