// The two models of the engine's speed benchmarks, at fixed parameters and samples. The expected losses and
// gradients come from another framework, which computed the same definitions in double precision.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/nn/models/char_mlp.h"
#include "engine/nn/models/gpt.h"
#include "tests/engine/nn/network_checks.h"

namespace gradwire {
namespace {

constexpr std::size_t kSamples = 5;

// Returns a float in [-1, 1).
double scattered(std::uint64_t j) {
  return static_cast<double>((j * 2654435761 % 4294967296) / 256) / 8388608 - 1;
}

struct Task {
  Network network;
  std::vector<double> x;
  std::array<std::vector<Token>, kSamples> tokens, labels;
  double loss = 0, gradient_norm_sq = 0;
  std::vector<std::pair<std::size_t, double>> gradient;  // some coordinates

  template <class Real>
  Example<Real> example(std::size_t k) const {
    Example<Real> one;
    one.tokens = tokens[k], one.labels = labels[k];
    return one;
  }
};

// Makes a model with 16 letters of 64 numbers each, and tanh on the logits.
Task letters_task(std::uint32_t hidden) {
  Task task;
  task.network = char_mlp({.hidden = {hidden}});
  for (std::size_t j = 0; j < task.network.dim(); ++j)
    task.x.push_back(scattered(j) / (j < 27 * 64 ? 1 : 16));
  for (std::size_t k = 0; k < kSamples; ++k) {
    for (std::size_t t = 0; t < 16; ++t) task.tokens[k].push_back((k * k * 5 + 11 * t * t + 3 * t) % 27);
    task.labels[k] = {static_cast<Token>((k * 7 + 5) % 27)};
  }
  return task;
}

// Makes a model with six layers of 24 numbers, six heads, eight positions, layer norms without epsilon, and
// tanh on the logits.
Task text_task() {
  Task task;
  task.network = gpt({.epsilon = 0});
  for (std::size_t j = 0; j < task.network.dim(); ++j) task.x.push_back(scattered(j) / (j < 73 * 24 ? 1 : 4));
  for (const NetworkOp& op : task.network.content().ops)
    for (std::size_t c = 0; op.kind == OpKind::kNorm && c < 24; ++c) task.x[op.first[0] + c] += 1;
  for (std::size_t k = 0; k < kSamples; ++k)
    for (std::size_t t = 0; t < 8; ++t) {
      task.tokens[k].push_back((k * 13 + 3 * t * t + 17 * t) % 65);
      task.labels[k].push_back((k * 29 + 7 * t + 1) % 65);
    }
  return task;
}

void expect_numbers(const Task& task, double loss, std::span<const double> gradient, double tolerance) {
  double norm_sq = 0;
  for (const double g : gradient) norm_sq += g * g;
  EXPECT_NEAR(loss / task.loss, 1, tolerance);
  EXPECT_NEAR(norm_sq / task.gradient_norm_sq, 1, 2 * tolerance);
  for (const auto& [j, g] : task.gradient)
    EXPECT_NEAR(gradient[j], g, tolerance * (std::abs(g) + std::sqrt(task.gradient_norm_sq) / 100))
        << "coordinate " << j;
}

template <class Real>
void expect_executor(const Task& task, double tolerance) {
  const std::vector<Real> x(task.x.begin(), task.x.end());
  for (const Kernels<Real>* kernels : available_kernels<Real>())
    for (const std::size_t micro_batch : {0, 1, 2, 5}) {
      SCOPED_TRACE(std::string(kernels->name) + ", microbatch " + std::to_string(micro_batch));
      Executor<Real> executor(task.network, micro_batch, kernels);
      std::vector<Real> gradient(x.size());
      const double loss = executor.loss_and_gradient(
          x, kSamples, [&](std::size_t k) { return task.example<Real>(k); }, gradient);
      expect_numbers(task, loss, std::vector<double>(gradient.begin(), gradient.end()), tolerance);
    }
}

void expect_task(const Task& task) {
  LossAndGradient mean{0, std::vector<double>(task.x.size())};
  for (std::size_t k = 0; k < kSamples; ++k) {
    const LossAndGradient one = naive_loss_and_gradient(task.network, task.x, task.example<double>(k));
    mean.loss += one.loss / kSamples;
    for (std::size_t j = 0; j < mean.gradient.size(); ++j) mean.gradient[j] += one.gradient[j] / kSamples;
  }
  expect_numbers(task, mean.loss, mean.gradient, 1e-11);
  expect_executor<double>(task, 1e-11);
  expect_executor<float>(task, 2e-5);
}

TEST(LimitTasks, LettersWithFourHiddenUnitsMatchReference) {
  Task task = letters_task(4);
  task.loss = 3.2950059583588369, task.gradient_norm_sq = 0.84378655472538755;
  task.gradient = {{5, -0.00032330006366141322},  {201, 0},
                   {1728, 0.0043028258334786408}, {2829, 0.00042081038918137401},
                   {5825, 0.0076776433218034568}, {5827, -0.003434836107553785},
                   {5834, -0.019735248276119343}, {5941, -0.16049712089989193},
                   {5962, -0.15927102606974497}};
  expect_task(task);
}

TEST(LimitTasks, LettersWithSixtyFourHiddenUnitsMatchReference) {
  Task task = letters_task(64);
  task.loss = 3.2913066856407163, task.gradient_norm_sq = 10.46100388246726;
  task.gradient = {{5, -0.00052348610289659162},   {201, 0},
                   {1728, 0.0039144214240945455},  {2829, 0.0017527923709931624},
                   {67265, 0.0025922722286030077}, {67327, -3.7173115438151379e-06},
                   {67394, -0.016407204860262186}, {69061, -0.1598829123170678},
                   {69082, -0.16378262896819087}};
  expect_task(task);
}

TEST(LimitTasks, TextMatchesReference) {
  Task task = text_task();
  ASSERT_EQ(task.network.dim(), 46289u);
  task.loss = 4.4525859327555271, task.gradient_norm_sq = 4.317995147331434;
  task.gradient = {
      {1, 0.0013793393811408852},      {1683, -0.0044583791180984505},  {16069, -0.00013339607064000945},
      {16645, 1.1388637532437791e-05}, {17221, -0.0015978373569055177}, {17797, -0.00023345154792189511},
      {18373, 0.0039962883312554265},  {18397, -0.0026931266079651003}, {20701, 1.5056354368772878e-05},
      {20797, 0.0027833800949170298},  {23101, 0.0030919937979266149},  {23125, -0.0007875890999718626},
      {23149, 0.0017713098025330259},  {23173, -0.0026721983626034345}, {23197, 0.0020052315738171927},
      {1852, 0.0010762087438177339},   {44714, 0.04033640067770837},    {46231, -0.0174287988367922}};
  expect_task(task);
}

}  // namespace
}  // namespace gradwire
