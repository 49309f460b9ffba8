#include "rounds/evaluation.h"

#include <gtest/gtest.h>
#include <vector>

namespace gradwire {
namespace {

// f_i(x) and its gradient, as a client answers.
void add(Evaluation<double>& evaluation, ClientId client, double loss, const Vec<double>& gradient) {
  Uplink<double> up;
  up.client = client;
  up.loss = loss;
  up.parts = {Payload<double>::dense(gradient)};
  evaluation.add(up);
}

TEST(Evaluation, IsTheMeanOfTheClientsThatAnsweredByTheirWeights) {
  gradwire::Setup<double> setup;
  setup.n = 4;
  setup.d = 2;
  setup.weights = {0.1, 0.2, 0.3, 0.4};
  const Vec<double> one = {1, 0}, two = {0, 2};
  Evaluation<double> evaluation(setup);
  add(evaluation, 1, 3, one);
  add(evaluation, 3, 6, two);
  evaluation.finish();
  EXPECT_EQ(evaluation.answered(), 2u);
  EXPECT_NEAR(evaluation.loss(), (0.2 * 3 + 0.4 * 6) / 0.6, 1e-15);
  const double first = 0.2 / 0.6, second = 0.4 * 2 / 0.6;
  EXPECT_NEAR(evaluation.grad_norm_sq(), first * first + second * second, 1e-15);
}

TEST(Evaluation, OfAllClientsIsTheWeightedSum) {
  gradwire::Setup<double> setup;
  setup.n = 3;
  setup.d = 2;
  const Vec<double> gradient = {3, 0};
  Evaluation<double> evaluation(setup);
  for (ClientId c = 0; c < 3; ++c) add(evaluation, c, c, gradient);
  evaluation.finish();
  EXPECT_NEAR(evaluation.loss(), 1, 1e-15);
  EXPECT_NEAR(evaluation.grad_norm_sq(), 9, 1e-14);
}

}  // namespace
}  // namespace gradwire
