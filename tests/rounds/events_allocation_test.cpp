// Tests that asynchronous runs on the virtual clock allocate nothing for an event once they are warm. A run
// is warm once it has memory for all points at which clients ever work at the same time.
#include <gtest/gtest.h>
#include <utility>

#include "tests/simulated/virtual_run.h"
#include "tests/support/count_allocations.h"

namespace gradwire {
namespace {

using testing::Federation;

TEST(Events, AllocateNothingOnceWarmForEveryAsynchronousAlgorithm) {
  const Federation<double> federation(8, 9);
  for (AlgorithmSpec spec : asynchronous_specs()) {
    SCOPED_TRACE(spec.name);
#ifndef NDEBUG
    spec.compressor = "identity";  // the codec asserts that a support can be drawn again, which allocates
#endif
    const auto run_context = federation.run_context(spec);
    EventSimulation<double> clients(run_context, federation.oracle_pointers(), with(drawn));
    const auto server = make_server<double>(run_context);
    RunProgress progress;
    RoundLimits limits;
    limits.rounds = 30'000;
    limits.evaluate_every = 0;
    LoopHooks<double> hooks;
    hooks.seconds = [&] { return clients.now(); };
    hooks.on_round = [](std::uint32_t round) {
      if (round == 10'000) allocations::reset();
    };
    std::size_t count = 1;
    hooks.before_apply = [&] { count = allocations::count; };  // the last event sets the final value
    run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
    EXPECT_EQ(count, 0u);
  }
}

}  // namespace
}  // namespace gradwire
