// The end of train() by an exception or a stop: what was measured until then, and what a later call resumes.
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gradwire/train.h"
#include "tests/api/api_support.h"
#include "tests/api/distances.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

TEST(Train, TellsWhatARunMeasuredBeforeAnException) {
  const TrainKeys keys = {
      .algorithm = "gd", .step_size = 0.1, .rounds = 60, .set = {{"run.evaluate_every", 2}}};
  for (const unsigned threads : {1u, 4u}) {
    std::vector<FailsLater> clients(9, FailsLater({1, 2, 3}));  // each computes once a round
    std::optional<TrainResult> measured;
    EXPECT_THROW(
        train(clients, keys,
              {.on_failure = [&](const TrainResult& result) { measured = result; }, .threads = threads}),
        SensorLost);
    ASSERT_TRUE(measured);
    EXPECT_EQ(measured->outcome(), "stopped");
    EXPECT_EQ(measured->rounds(), 29u);
    EXPECT_EQ(measured->rows().back().round, 28u);
    TrainKeys whole = keys;
    whole.rounds = 29;
    std::vector<Distance<double>> others(9, Distance<double>({1, 2, 3}));
    EXPECT_EQ(model_of(*measured), model_of(train(others, whole)));
  }
}

TEST(Train, TellsOfAnExceptionBeforeTheRounds) {
  std::vector<FailsLater> clients(2, FailsLater({1, 2}));
  std::optional<TrainResult> measured;
  EXPECT_THROW(train(clients, {.algorithm = "gd"},
                     {.on_failure = [&](const TrainResult& result) { measured = result; }}),
               SensorLost);
  ASSERT_TRUE(measured);
  EXPECT_TRUE(measured->rows().empty() && measured->model().empty());
  EXPECT_EQ(measured->experiment().get("problem.dim"), "2");
}

TEST(Train, EndsByAnExceptionBeforeAGradient) {
  auto clients = distances<double>();
  int calls = 0;
  EXPECT_THROW(train(clients, {.algorithm = "gd", .step_size = 0.1, .rounds = 60},
                     {.before_gradient =
                          [&] {
                            if (++calls == 30) throw SensorLost();
                          },
                      .threads = 1}),
               SensorLost);
  EXPECT_EQ(calls, 30);
}

// Asks for a stop in its second gradient after it was armed, and then takes longer than a run waits. The
// gradients of the other clients wait for it, so that they are not all done when it ends.
struct StopsLate : Distance<double> {
  using Distance<double>::Distance;
  double loss_and_gradient(std::span<const double> x, Batch batch, std::span<double> gradient) override {
    if (is_armed && ++calls == 2) {
      *is_late = true;
      source->request_stop();
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      *is_late = false;
      is_late->notify_all();
    } else {
      is_late->wait(true);
    }
    return Distance<double>::loss_and_gradient(x, batch, gradient);
  }
  std::atomic<bool>* is_late = nullptr;
  std::stop_source* source = nullptr;
  bool is_armed = false;
  int calls = 0;
};

TEST(TrainFolder, ResumesARunThatGaveUpARound) {
  const TrainKeys keys = {.algorithm = "ef21",
                          .compressor = "topk:k=1",
                          .step_size = 0.2,
                          .rounds = 60,
                          .set = {{"run.evaluate_every", 5}}};
  for (const unsigned threads : {1u, 3u}) {
    const TemporaryFolder folder;
    std::atomic<bool> is_late{false};
    std::vector<StopsLate> clients;
    for (int i = 0; i < 40; ++i)
      clients.emplace_back(std::vector<double>{1.0 * i, 2, 0.5 * i}).is_late = &is_late;
    const TrainResult whole = train(clients, keys);
    std::stop_source source;
    clients[1].source = &source;
    TrainOptions options = {.threads = threads, .out = folder.path() / "run", .checkpoint_seconds = 1e-9};
    TrainOptions stopping = options;
    stopping.stop = source.get_token();
    stopping.on_row = [&](const MetricsRow& row) {
      clients[1].is_armed = row.round == 10;
      return true;
    };
    const TrainResult stopped = train(clients, keys, stopping);
    EXPECT_EQ(stopped.outcome(), "stopped");
    EXPECT_EQ(stopped.rounds(), 12u);
    EXPECT_EQ(stopped.rows().back().round, 10u);
    TrainKeys first = keys;
    first.rounds = 12;
    EXPECT_EQ(model_of(stopped), model_of(train(clients, first)));
    clients[1].is_armed = false;
    const TrainResult resumed = train(clients, keys, options);
    EXPECT_EQ(model_of(resumed), model_of(whole));
    for (const char* column :
         {"round", "loss", "grad_norm_sq", "bits_up", "bytes_up", "bytes_down", "grad_calls"})
      EXPECT_EQ(resumed.metrics(column), whole.metrics(column)) << column;
  }
}

}  // namespace
}  // namespace gradwire
