// A client allocates memory in its first rounds, and never again, with and without a folder for its state.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <thread>

#include "base/random.h"
#include "config/experiment_file.h"
#include "config/settings.h"
#include "fl_client/client.h"
#include "fl_server/net/tcp_sockets.h"
#include "fl_server/plan_of_joins.h"
#include "fl_server/sessions/tcp_transport.h"
#include "proto/wire/codec_context.h"
#include "rounds/round_loop.h"
#include "tests/support/count_allocations.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

constexpr std::size_t kFeatures = 200, kSamples = 60;

// Dense samples with two labels.
ClientDataset samples() {
  Random random(1, "samples");
  ClientDataset part;
  part.train.columns = kFeatures;
  for (std::size_t r = 0; r < kSamples; ++r) {
    for (std::uint32_t j = 0; j < kFeatures; ++j) {
      part.train.column.push_back(j);
      part.train.value.push_back(random.normal());
    }
    part.train.row_start.push_back(part.train.column.size());
    part.train.label.push_back(r % 2 == 0 ? 1 : -1);
  }
  part.test = part.train;
  return part;
}

template <class Real>
void serve(SessionManager& session_manager, const LoadedExperiment& loaded, std::uint32_t rounds) {
  session_manager.gather(std::chrono::minutes(1));
  const RunPlan plan = plan_of_joins(loaded, session_manager.table());
  const auto run_context = make_run_context<Real>(plan, Role::kServer);
  TcpTransport<Real> transport(session_manager, codec_context(*run_context, {}), start_frame(plan, 1));
  const auto server = make_server<Real>(run_context);
  RunProgress progress;
  progress.committed.resize(1);
  RoundLimits limits;
  limits.rounds = rounds;
  limits.evaluate_every = 3;
  limits.grad_norm = GradNormRows::kEvery;
  run_rounds<Real>(*server, traits_of(*run_context), *run_context, transport, progress, limits, {});
  session_manager.finish(std::chrono::minutes(1));
}

// Runs a federation over TCP. Returns how many allocations its only client makes in its main thread, from its
// start to its end.
std::size_t allocations_of_client(const LoadedExperiment& loaded, std::uint32_t rounds, bool with_state) {
  SessionManagerOptions options;
  options.clients = 1;
  options.experiment = pack_experiment(loaded.experiment);
  SessionManager session_manager(options, listen_on_tcp("127.0.0.1:0"));
  ClientSettings settings;
  settings.server = session_manager.address();
  settings.name = "c";
  settings.threads = 1;
  settings.data.load = [](const ExperimentSpec&, const Log&) { return samples(); };
  const TemporaryFolder folder;
  if (with_state) settings.state = folder.path();
  std::thread server([&] {
    loaded.experiment.precision == Precision::kFp32 ? serve<float>(session_manager, loaded, rounds)
                                                    : serve<double>(session_manager, loaded, rounds);
  });
  allocations::reset();
  join_and_answer(settings);
  const std::size_t count = allocations::count;
  server.join();
  return count;
}

void expect_no_allocations(const std::string& algorithm) {
#ifndef NDEBUG
  GTEST_SKIP() << "without optimisation, a client with randk makes one allocation more in each round";
#endif
  for (const char* precision : {"fp64", "fp32"})
    for (const bool with_state : {false, true}) {
      const LoadedExperiment loaded =
          parse_experiment("precision = \"" + std::string(precision) +
                               "\"\n[problem]\nkind = \"logistic\"\ndata = \"synthetic\"\n[clients]\ncount = "
                               "1\n[algorithm]\n" +
                               algorithm,
                           "t.toml");
      allocations_of_client(loaded, 2, with_state);  // the first run allocates more
      const std::size_t few = allocations_of_client(loaded, 10, with_state);
      const std::size_t many = allocations_of_client(loaded, 40, with_state);
      EXPECT_EQ(many, few) << precision << (with_state ? " with" : " without")
                           << " state: " << (static_cast<double>(many) - static_cast<double>(few)) / 30
                           << " a round";
    }
}

TEST(ClientAllocations, EndAfterTheFirstRoundsOfErrorFeedback) {
  expect_no_allocations("name = \"ef21\"\ncompressor = \"topk:k=1%\"\nstep_size = 0.1\n");
}
TEST(ClientAllocations, EndAfterTheFirstRoundsOfFederatedAveraging) {
  expect_no_allocations("name = \"fedavg\"\nlocal_steps = 3\nlocal_step_size = 0.1\nbatch = 8\n");
}
TEST(ClientAllocations, EndAfterTheFirstRoundsOfGradientDifferences) {
  expect_no_allocations("name = \"marina\"\ncompressor = \"randk:k=10\"\nstep_size = 0.1\np = 0.3\n");
}
TEST(ClientAllocations, EndAfterTheFirstRoundsOfShifts) {
  expect_no_allocations("name = \"diana\"\ncompressor = \"randk:k=10\"\nstep_size = 0.1\n");
}

}  // namespace
}  // namespace gradwire
