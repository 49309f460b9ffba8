// Tests that evaluations by threads over blocks of clients give the same bits as answers that are added one
// after another.
#include "simulation/evaluator.h"

#include <cstddef>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "engine/client_objectives.h"
#include "parallel/thread_pool.h"
#include "tests/support/new_threads.h"

namespace gradwire {
namespace {

// f_i(x) = sum_j (i + 1) x_j^2 / (j + 1). Every 7th client has a test sample. The loss of client `broken` is
// not finite.
class Bowl final : public RebindableOracle<double> {
 public:
  Bowl(std::size_t d, std::uint32_t broken) : d_(d), broken_(broken) {}

  void bind(std::uint32_t client) override { client_ = client; }
  std::uint32_t clients() const { return kClients; }
  std::size_t sample_count(std::uint32_t) const { return 1; }
  std::size_t dim() const override { return d_; }
  std::size_t sample_count() const override { return 1; }
  double loss_and_gradient(View<double> x, Batch, Out<double> gradient) override {
    double loss = 0;
    for (std::size_t j = 0; j < d_; ++j) {
      const double scale = (client_ + 1) / static_cast<double>(j + 1);
      loss += scale * x[j] * x[j];
      gradient[j] = 2 * scale * x[j];
    }
    return client_ == broken_ ? std::numeric_limits<double>::quiet_NaN() : loss;
  }
  std::optional<Score> score(View<double>) override {
    if (client_ % 7 != 0) return std::nullopt;
    return Score{client_ % 2, 1};
  }

  static constexpr std::uint32_t kClients = 5000;

 private:
  std::size_t d_;
  std::uint32_t broken_, client_ = 0;
};

constexpr std::uint32_t kNoClient = Bowl::kClients;

gradwire::RunContext<double> run_context_of(std::uint32_t n, std::size_t d, bool weighted) {
  gradwire::RunContext<double> run_context;
  run_context.n = n;
  run_context.d = d;
  if (!weighted) return run_context;
  double sum = 0;
  for (std::uint32_t i = 0; i < n; ++i) sum += run_context.weights.emplace_back(1.0 + i % 3);
  for (double& w : run_context.weights) w /= sum;
  return run_context;
}

struct Found {
  double loss, grad_norm_sq;
  std::optional<double> accuracy;
  std::uint32_t answered;
  bool operator==(const Found&) const = default;
};
Found found(Evaluation<double>& e) {
  e.finish();
  return {e.loss(), e.grad_norm_sq(), e.accuracy(), e.answered()};
}

class EvaluatorTest : public ::testing::TestWithParam<bool> {
 protected:
  // Adds one answer after another, as a transport delivers them.
  Found one_by_one(std::uint32_t broken) const {
    Evaluation<double> evaluation(run_context_);
    Bowl bowl(kDim, broken);
    Vec<double> gradient(kDim);
    for (std::uint32_t i = 0; i < Bowl::kClients; ++i) {
      bowl.bind(i);
      Uplink<double> up;
      up.client = i;
      up.loss = bowl.loss_and_gradient(x_, {}, gradient);
      up.parts = {Payload<double>::dense(gradient)};
      const auto score = bowl.score(x_);
      if (score) up.correct = score->correct;
      if (score) up.tested = score->tested;
      if (i != broken) evaluation.add(up);
    }
    return found(evaluation);
  }

  static constexpr std::size_t kDim = 5;
  const gradwire::RunContext<double> run_context_ = run_context_of(Bowl::kClients, kDim, GetParam());
  const Vec<double> x_ = {1, -0.1, 0.3, 2, 0.7};
};

TEST_P(EvaluatorTest, GivesTheSameBitsForAnyNumberOfThreadsAndMemory) {
  for (const std::uint32_t broken : {kNoClient, 0u, 1500u}) {
    const Found want = one_by_one(broken);
    EXPECT_EQ(want.answered, Bowl::kClients - (broken == kNoClient ? 0 : 1));
    const ClientObjectivesOf<double, Bowl> clients(Bowl(kDim, broken));
    // With many threads there are too few blocks, so each thread takes single clients.
    for (const unsigned threads : {1u, 2u, 3u, 7u, 64u}) {
      for (const std::size_t memory_bytes : {std::size_t{0}, std::size_t{1} << 20}) {
        ThreadPool pool(threads);
        std::vector<std::unique_ptr<RebindableOracle<double>>> oracles;
        std::vector<RebindableOracle<double>*> pointers;
        for (unsigned k = 0; k < threads; ++k)
          pointers.push_back(oracles.emplace_back(clients.oracle()).get());
        Evaluator<double> evaluator(run_context_.mine(), pool, pointers, memory_bytes);
        EXPECT_TRUE(evaluator.known(7).x.empty());
        Evaluation<double> evaluation(run_context_);
        evaluator.evaluate(x_, evaluation);
        EXPECT_EQ(found(evaluation), want);
        Evaluation<double> again(run_context_);
        evaluator.evaluate(x_, again);  // the first one was so fast that this one may use one thread
        EXPECT_EQ(found(again), want);
        const Evaluated<double> known = evaluator.known(7);
        ASSERT_EQ(known.x.empty(), memory_bytes == 0);
        if (memory_bytes == 0) continue;
        Bowl bowl(kDim, broken);
        bowl.bind(7);
        Vec<double> gradient(kDim);
        EXPECT_EQ(known.loss, bowl.loss_and_gradient(x_, {}, gradient));
        EXPECT_EQ(Vec<double>(known.gradient.begin(), known.gradient.end()), gradient);
        if (broken == kNoClient) continue;
        EXPECT_TRUE(evaluator.known(broken).x.empty());
      }
    }
  }
}

TEST_P(EvaluatorTest, UsesOneThreadIfTheWorkIsNotWorthMore) {
  const ClientObjectivesOf<double, Bowl> clients(Bowl(kDim, kNoClient));
  for (const double seconds_each : {0.0, 1.0}) {
    const NewThreads new_threads;
    ThreadPool pool(2);
    const auto one = clients.oracle(), other = clients.oracle();
    Evaluator<double> evaluator(run_context_.mine(), pool, {one.get(), other.get()}, 0, seconds_each);
    Evaluation<double> evaluation(run_context_);
    evaluator.evaluate(x_, evaluation);
    EXPECT_EQ(found(evaluation), one_by_one(kNoClient));
    EXPECT_EQ(new_threads.count(), seconds_each > 0 ? 1 : 0);
  }
}

TEST_P(EvaluatorTest, GivesLossAndAccuracyOfASampleWithoutGradients) {
  std::vector<ClientId> sample;
  for (ClientId c = 3; c < Bowl::kClients; c += 7 - c % 3) sample.push_back(c);
  gradwire::RunContext<double> run_context = run_context_;
  run_context.algorithm.batch = 1;  // with batches, the gradients at x are not needed
  const ClientObjectivesOf<double, Bowl> clients(Bowl(kDim, kNoClient));
  std::optional<Found> want;
  for (const RequestKind kind : {RequestKind::kEvaluate, RequestKind::kMeasure}) {
    for (const unsigned threads : {1u, 3u, 64u}) {
      ThreadPool pool(threads);
      std::vector<std::unique_ptr<RebindableOracle<double>>> oracles;
      std::vector<RebindableOracle<double>*> pointers;
      for (unsigned k = 0; k < threads; ++k) pointers.push_back(oracles.emplace_back(clients.oracle()).get());
      Evaluator<double> evaluator(run_context.mine(), pool, pointers, std::size_t{1} << 20);
      Evaluation<double> evaluation(run_context, {kind, sample});
      evaluator.evaluate(x_, evaluation);
      evaluation.finish();
      EXPECT_EQ(evaluation.answered(), sample.size());
      const Found got = {evaluation.loss(), 0, evaluation.accuracy(), evaluation.answered()};
      if (!want) want = got;
      EXPECT_EQ(got, *want);
      EXPECT_EQ(evaluator.known(sample[0]).x.empty(), kind == RequestKind::kMeasure);
      EXPECT_TRUE(evaluator.known(sample[0] + 1).x.empty()) << "it was not asked";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Weights, EvaluatorTest, ::testing::Bool());

}  // namespace
}  // namespace gradwire
