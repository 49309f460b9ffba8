// Tests that a run on several ranks gives the same bits as in one process. The ranks are threads here.
#include <algorithm>
#include <gtest/gtest.h>
#include <mutex>

#include "engine/client_objectives.h"
#include "mpi/rank_communicator.h"
#include "simulation/over_ranks.h"
#include "simulation/parallel_simulation.h"
#include "tests/algorithms/every_algorithm.h"
#include "tests/mpi/thread_ranks.h"

namespace gradwire {
namespace {

using namespace testing;

constexpr std::uint32_t kRoundsHere = 8;

template <class Real>
struct RunTrace : Trace<Real> {
  RunProgress progress;
};

// Runs one rank, or the only process if `ranks` is null.
template <class Real>
RunTrace<Real> run_on_rank(const Federation<Real>& federation, const RunContext<Real>& alone,
                           const std::shared_ptr<Ranks>& ranks, unsigned threads, RoundLimits limits,
                           const RunTrace<Real>* from = nullptr) {
  const auto run_context = std::make_shared<RunContext<Real>>(alone);
  RankSignals signals;
  RankBinding<Real> binding;
  if (ranks != nullptr) {
    binding = {std::make_shared<RankCommunicator<Real>>(ranks, run_context->n), &signals};
    run_context->communicator = binding.communicator;
  }
  const std::shared_ptr<const RunContext<Real>> shared = run_context;
  const auto server = make_server<Real>(shared);
  const auto functions = std::make_shared<OracleList<Real>>(federation.oracle_pointers());
  ParallelSimulation<Real> clients(shared, functions, {.threads = threads}, binding);
  RunProgress progress;
  progress.committed.resize(run_context->n);
  if (from != nullptr) {
    EXPECT_TRUE(server->load(from->server_state));
    const std::string& saved = from->client_states.at(0);
    EXPECT_TRUE(
        clients.load_clients(ranks == nullptr ? saved : hand_out_clients(*ranks, run_context->n, saved)));
    progress = from->progress;
  }
  RunTrace<Real> trace;
  LoopHooks<Real> hooks;
  hooks.stop = &signals.all_stop;
  hooks.on_record = [&](const RoundRecord& record) { trace.records.push_back(record); };
  hooks.evaluate = [&](View<Real> x, Evaluation<Real>& to) { clients.evaluate(x, to); };
  trace.outcome =
      run_rounds<Real>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
  trace.model.assign(server->model().begin(), server->model().end());
  trace.server_state = server->save();
  std::string saved = clients.save_clients(progress.committed);
  if (ranks != nullptr) saved = join_at_first(*ranks, saved);
  trace.client_states.push_back(saved);
  trace.progress = progress;
  return trace;
}

bool is_shared(const AlgorithmSpec& spec, const Federation<double>& federation) {
  return spec.name != "ef21_plus" && !make_server<double>(federation.run_context(spec))->may_refuse();
}

template <class Real>
void compare_every_algorithm(std::uint32_t n, double participation, std::initializer_list<unsigned> counts) {
  const Federation<Real> federation(n, 8);
  const Federation<double> any(2, 8);
  std::size_t compared = 0;
  for (const AlgorithmInfo& algorithm : synchronous_algorithms()) {
    if (participation < 1 && !algorithm.traits.partial) continue;
    AlgorithmSpec spec = spec_for(algorithm);
    if (!is_shared(spec, any)) continue;
    spec.participation = participation;
    SCOPED_TRACE(std::string(algorithm.traits.name));
    ++compared;
    const auto run_context = federation.run_context(spec);
    RoundLimits limits;
    limits.evaluate_every = 3;
    limits.rounds = kRoundsHere;
    const RunTrace<Real> alone = run_on_rank<Real>(federation, *run_context, nullptr, 2, limits);
    EXPECT_NE(alone.model, run_context->x0);
    for (const unsigned count : counts) {
      on_ranks(count, [&](std::shared_ptr<Ranks> ranks) {
        const RunTrace<Real> shared =
            run_on_rank<Real>(federation, *run_context, ranks, ranks->rank() % 3 + 1, limits);
        expect_same_steps<Real>(alone, shared);
        if (ranks->rank() == 0) {
          EXPECT_EQ(alone.client_states, shared.client_states);
        }
      });
    }
  }
  EXPECT_GT(compared, participation < 1 ? 20u : 28u);
}

TEST(RunsOverRanks, GiveTheBitsOfOneProcess) { compare_every_algorithm<double>(41, 1, {2, 4}); }
TEST(RunsOverRanks, GiveTheBitsOfOneProcessIfRanksHaveWholeLeaves) {
  compare_every_algorithm<float>(600, 1, {2, 3});
}
TEST(RunsOverRanks, GiveTheBitsOfOneProcessIfAFewAreAsked) {
  compare_every_algorithm<double>(23, 0.35, {2, 4});
}
TEST(RunsOverRanks, GiveTheBitsOfOneProcessIfARankHasOneClientOrNone) {
  compare_every_algorithm<float>(3, 1, {3, 4});
}

TEST(RunsOverRanks, ResumeOnAnotherNumberOfRanks) {
  const Federation<double> federation(37, 6);
  for (const char* name : {"ef21", "scaffold", "diana", "marina"}) {
    SCOPED_TRACE(name);
    AlgorithmSpec spec = spec_for(find_algorithm(name));
    const auto run_context = federation.run_context(spec);
    RoundLimits limits;
    limits.rounds = kRoundsHere;
    const RunTrace<double> alone = run_on_rank<double>(federation, *run_context, nullptr, 1, limits);
    RunTrace<double> half;
    limits.rounds = 5;
    on_ranks(3, [&](std::shared_ptr<Ranks> ranks) {
      RunTrace<double> mine = run_on_rank<double>(federation, *run_context, ranks, 1, limits);
      if (ranks->rank() == 0) half = std::move(mine);
    });
    limits.rounds = kRoundsHere;
    on_ranks(2, [&](std::shared_ptr<Ranks> ranks) {
      const RunTrace<double> rest = run_on_rank<double>(federation, *run_context, ranks, 1, limits, &half);
      EXPECT_EQ(rest.model, alone.model);
      EXPECT_EQ(rest.server_state, alone.server_state);
    });
  }
}

TEST(RunsOverRanks, EndOnAllRanksWhenTheNumbersOfOneAreNoLongerFinite) {
  Federation<double> federation(20, 6);
  federation.oracles[17]->b[0] = std::nan("");
  const auto run_context = federation.run_context(spec_of("gd", "identity", {}, "0.5"));
  RoundLimits limits;
  limits.rounds = kRoundsHere;
  limits.evaluate_every = 100;
  const RunTrace<double> alone = run_on_rank<double>(federation, *run_context, nullptr, 1, limits);
  on_ranks(3, [&](std::shared_ptr<Ranks> ranks) {
    const RunTrace<double> shared = run_on_rank<double>(federation, *run_context, ranks, 1, limits);
    EXPECT_EQ(shared.outcome, Outcome::kDiverged);
    expect_same_steps<double>(alone, shared);
  });
}

TEST(AllOrNone, ThrowsTheErrorOfTheFirstRankThatHasOne) {
  std::mutex mutex;
  std::vector<std::string> said(4);
  on_ranks(4, [&](std::shared_ptr<Ranks> ranks) {
    std::string mine = "nothing";
    try {
      all_or_none(ranks.get(), [&] {
        if (ranks->rank() >= 2) throw std::runtime_error("rank " + std::to_string(ranks->rank()));
      });
    } catch (const FailedElsewhere&) {
      mine = "elsewhere";
    } catch (const std::runtime_error& error) {
      mine = error.what();
    }
    const std::lock_guard lock(mutex);
    said[ranks->rank()] = mine;
  });
  EXPECT_EQ(said, (std::vector<std::string>{"elsewhere", "elsewhere", "rank 2", "elsewhere"}));
}

}  // namespace
}  // namespace gradwire
