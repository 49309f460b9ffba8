#include "rounds/evaluation.h"

#include <gtest/gtest.h>
#include <vector>

namespace gradwire {
namespace {

// Adds the answer of a client: f_i(x) and its gradient.
void add(Evaluation<double>& evaluation, ClientId client, double loss, const Vec<double>& gradient) {
  Uplink<double> up;
  up.client = client;
  up.loss = loss;
  up.parts = {Payload<double>::dense(gradient)};
  evaluation.add(up);
}

TEST(Evaluation, AveragesTheAnsweringClientsByWeight) {
  gradwire::RunContext<double> run_context;
  run_context.n = 4;
  run_context.d = 2;
  run_context.weights = {0.1, 0.2, 0.3, 0.4};
  const Vec<double> one = {1, 0}, two = {0, 2};
  Evaluation<double> evaluation(run_context);
  add(evaluation, 1, 3, one);
  add(evaluation, 3, 6, two);
  evaluation.finish();
  EXPECT_EQ(evaluation.answered(), 2u);
  EXPECT_NEAR(evaluation.loss(), (0.2 * 3 + 0.4 * 6) / 0.6, 1e-15);
  const double first = 0.2 / 0.6, second = 0.4 * 2 / 0.6;
  EXPECT_NEAR(evaluation.grad_norm_sq(), first * first + second * second, 1e-15);
}

TEST(Evaluation, SumsAllClientsByWeight) {
  gradwire::RunContext<double> run_context;
  run_context.n = 3;
  run_context.d = 2;
  const Vec<double> gradient = {3, 0};
  Evaluation<double> evaluation(run_context);
  for (ClientId c = 0; c < 3; ++c) add(evaluation, c, c, gradient);
  evaluation.finish();
  EXPECT_NEAR(evaluation.loss(), 1, 1e-15);
  EXPECT_NEAR(evaluation.grad_norm_sq(), 9, 1e-14);
}

TEST(Evaluation, AveragesASampleOfClients) {
  gradwire::RunContext<double> run_context;
  run_context.n = 5;
  run_context.d = 2;
  const std::vector<ClientId> sample = {1, 4};
  const Vec<double> gradient = {3, 4};
  Evaluation<double> evaluation(run_context, {RequestKind::kEvaluate, sample});
  std::vector<ClientId> window;
  EXPECT_EQ(evaluation.next_window(0, window), 5u);
  EXPECT_EQ(window, sample);
  EXPECT_EQ(evaluation.asked(), 2u);
  EXPECT_FALSE(evaluation.asks(0));
  for (const ClientId c : sample) add(evaluation, c, c, gradient);
  evaluation.finish();
  EXPECT_NEAR(evaluation.loss(), 2.5, 1e-15);
  EXPECT_NEAR(evaluation.grad_norm_sq(), 25, 1e-13);
}

TEST(Evaluation, TakesOnlyAnswersWithoutGradientsIfItMeasures) {
  gradwire::RunContext<double> run_context;
  run_context.n = 3;
  run_context.d = 2;
  Uplink<double> up;
  EXPECT_TRUE(Evaluation<double>::accepts(up, run_context, RequestKind::kMeasure));
  EXPECT_FALSE(Evaluation<double>::accepts(up, run_context, RequestKind::kEvaluate));
  const Vec<double> gradient = {3, 0};
  up.parts = {Payload<double>::dense(gradient)};
  EXPECT_FALSE(Evaluation<double>::accepts(up, run_context, RequestKind::kMeasure));
  EXPECT_TRUE(Evaluation<double>::accepts(up, run_context, RequestKind::kEvaluate));
  up.parts = {};
  Evaluation<double> evaluation(run_context, {RequestKind::kMeasure, {}});
  for (up.client = 0; up.client < 3; ++up.client) {
    up.loss = up.client;
    up.correct = up.tested = up.client;
    evaluation.add(up);
  }
  evaluation.finish();
  const RoundRecord row = record_of(4, evaluation, RunTotals{}, 3, 0);
  EXPECT_NEAR(row.loss, 1, 1e-15);
  EXPECT_EQ(row.accuracy, 1.0);
  EXPECT_EQ(row.grad_norm_sq, std::nullopt);
  EXPECT_EQ(evaluation.testers(), 2u);
}

}  // namespace
}  // namespace gradwire
