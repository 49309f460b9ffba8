// Tests that clients that exist only while they work give the same bits as permanent clients.
#include "simulation/parallel_simulation.h"

#include <gtest/gtest.h>

#include "base/serialize.h"
#include "engine/client_objectives.h"
#include "tests/algorithms/every_algorithm.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

using namespace testing;

constexpr std::uint32_t kRoundsHere = 12;

template <class Real>
std::shared_ptr<const ClientObjectives<Real>> functions_of(const Federation<Real>& federation) {
  return std::make_shared<OracleList<Real>>(federation.oracle_pointers());
}

enum class Others { kLoad, kLoadMost, kLoadNothing };

// Returns `saved` without the state of every fifth client.
std::string without_some(const std::string& saved, std::uint32_t n) {
  Loader loader(saved);
  Saver saver;
  for (std::uint32_t c = 0; c < n; ++c) {
    std::uint32_t requests = 0;
    std::vector<char> state;
    loader(requests);
    loader(state);
    if (c % 5 == 3) state.clear();
    saver(requests);
    saver(state);
  }
  return saver.take();
}

// Runs the algorithm. After the round `pause_after` all clients are saved and replaced by new ones, which
// load the saved bytes; some or all of them may have no state.
template <class Real>
Trace<Real> run_virtual(const Federation<Real>& federation,
                        std::shared_ptr<const RunContext<Real>> run_context, unsigned threads,
                        RoundLimits limits, std::uint32_t pause_after = 0, Others others = Others::kLoad) {
  Trace<Real> trace;
  const auto server = make_server<Real>(run_context);
  const AlgorithmTraits traits = find_algorithm(run_context->algorithm.name).traits;
  RunProgress progress;
  progress.committed.resize(run_context->n);
  std::string saved;
  for (const std::uint32_t until : {pause_after, kRoundsHere}) {
    if (until == 0) continue;
    ParallelSimulation<Real> clients(run_context, functions_of(federation),
                                     {.threads = threads, .worth_threads_seconds = 0});
    if (others == Others::kLoadMost && !saved.empty()) saved = without_some(saved, run_context->n);
    if (!saved.empty() && others != Others::kLoadNothing) {
      EXPECT_TRUE(clients.load_clients(saved));
    }
    LoopHooks<Real> hooks;
    hooks.on_record = [&](const RoundRecord& record) { trace.records.push_back(record); };
    hooks.evaluate = [&](View<Real> x, Evaluation<Real>& to) { clients.evaluate(x, to); };
    limits.rounds = until;
    trace.outcome = run_rounds<Real>(*server, traits, *run_context, clients, progress, limits, hooks);
    saved = clients.save_clients(progress.committed);
  }
  trace.client_states.push_back(saved);
  trace.model.assign(server->model().begin(), server->model().end());
  trace.server_state = server->save();
  return trace;
}

// Compares the simulation for each number of threads with permanent clients. Returns false if the algorithm
// cannot run so.
template <class Real>
bool compare(const AlgorithmInfo& algorithm, std::uint32_t n, double participation,
             const std::vector<unsigned>& threads) {
  const Federation<Real> federation(n, 8);
  AlgorithmSpec spec = spec_for(algorithm);
  spec.participation = participation;
  const auto run_context = federation.run_context(spec);
  if (make_server<Real>(run_context)->may_refuse()) return false;
  RoundLimits limits;
  limits.evaluate_every = 3;
  FaultSimulationOptions options;
  options.zstd = {.kind = ZstdMode::Kind::kOff};
  const auto stay = run<Real>(federation, run_context, kRoundsHere, options, limits);
  EXPECT_NE(stay.model, run_context->x0);
  std::vector<std::string> states;
  for (const unsigned t : threads) {
    SCOPED_TRACE(t);
    const auto shared = run_virtual<Real>(federation, run_context, t, limits);
    expect_same_steps(stay, shared);
    if (states.empty()) states = shared.client_states;
    EXPECT_EQ(states, shared.client_states);
    const auto resumed = run_virtual<Real>(federation, run_context, t, limits, 5);
    EXPECT_EQ(stay.model, resumed.model);
    EXPECT_EQ(stay.server_state, resumed.server_state);
  }
  options.threads = 3;
  options.worth_threads_seconds = 0;
  expect_same_steps(stay, run<Real>(federation, run_context, kRoundsHere, options, limits));
  return true;
}

// Returns the numbers of threads to compare.
std::vector<unsigned> thread_counts() {
  if (kSanitized) return {2, 16};
  return {1, 2, 3, 7, 16};
}

template <class Real>
void compare_every_algorithm(std::uint32_t n, double participation) {
  std::size_t compared = 0;
  for (const AlgorithmInfo& algorithm : synchronous_algorithms()) {
    if (participation < 1 && !algorithm.traits.partial) continue;
    SCOPED_TRACE(std::string(algorithm.traits.name) + " n=" + std::to_string(n));
    compared += compare<Real>(algorithm, n, participation, thread_counts()) ? 1 : 0;
  }
  EXPECT_GT(compared, participation < 1 ? 5u : 20u);
}

TEST(ParallelSimulation, GivesTheBitsOfPermanentClients) {
  for (const std::uint32_t n : {1u, 2u, 15u, 16u, 17u, 33u}) {
    if (kSanitized && n != 2 && n != 33) continue;
    compare_every_algorithm<double>(n, 1);
    compare_every_algorithm<float>(n, 1);
  }
}

TEST(ParallelSimulation, GivesTheSameBitsIfAFewClientsAreAsked) {
  compare_every_algorithm<double>(41, 0.35);
  compare_every_algorithm<float>(41, 0.35);
}

// With two threads there are whole leaves for each thread; with 16, threads share leaves.
TEST(ParallelSimulation, GivesTheBitsOfPermanentClientsForManyClients) {
  for (const char* algorithm : {"gd", "dcgd", "fedavg", "ef21", "diana"}) {
    SCOPED_TRACE(algorithm);
    EXPECT_TRUE(compare<float>(find_algorithm(algorithm), 1000, 1, {2, 16}));
  }
}

// A client whose gradient fails in the given call.
class FailingQuadratic final : public Oracle<double> {
 public:
  static constexpr std::uint32_t kNever = 1u << 30;
  explicit FailingQuadratic(std::uint32_t fails_in) : fails_in_(fails_in) {}
  std::size_t dim() const override { return 3; }
  std::size_t sample_count() const override { return 1; }
  double loss_and_gradient(View<double> x, Batch, Out<double> gradient) override {
    if (++calls_ == fails_in_) throw std::runtime_error("the disk of this client is full");
    std::copy(x.begin(), x.end(), gradient.begin());
    return 0.5 * x[0] * x[0];
  }

 private:
  std::uint32_t fails_in_, calls_ = 0;
};

TEST(ParallelSimulation, PassesOnTheExceptionOfAClientAndCanBeAskedAgain) {
  constexpr std::uint32_t kClients = 19;
  for (const unsigned threads : {1u, 2u, 7u}) {
    std::vector<std::unique_ptr<Oracle<double>>> oracles;
    for (std::uint32_t i = 0; i < kClients; ++i)
      oracles.push_back(std::make_unique<FailingQuadratic>(i == 5 ? 3 : FailingQuadratic::kNever));
    const Federation<double> federation(kClients, 3);
    const auto run_context = federation.run_context(spec_of("gd", "identity", {}, "0.5"));
    const auto server = make_server<double>(run_context);
    ParallelSimulation<double> clients(run_context, std::make_shared<OracleList<double>>(std::move(oracles)),
                                       {.threads = threads, .worth_threads_seconds = 0});
    RunProgress progress;
    progress.committed.resize(kClients);
    RoundLimits limits;
    limits.rounds = 10;
    limits.evaluate_every = 0;
    const auto rounds = [&] {
      return run_rounds<double>(*server, find_algorithm("gd").traits, *run_context, clients, progress, limits,
                                {});
    };
    EXPECT_THROW(rounds(), std::runtime_error);
    EXPECT_EQ(progress.round, 2u);
    EXPECT_EQ(rounds(), Outcome::kFinished);
    for (std::size_t j = 0; j < 3; ++j)
      EXPECT_DOUBLE_EQ(server->model()[j], std::ldexp(run_context->x0[j], -10));
  }
}

// Some or all of the asked clients lack their state, so the server asks them again and sends the state.
TEST(ParallelSimulation, GetsAStateFromAServerThatCanRestoreIt) {
  const Federation<double> federation(41, 8);
  std::size_t with_state = 0;
  for (const AlgorithmInfo& algorithm : synchronous_algorithms()) {
    if (has(algorithm.traits.client_state, ClientState::kPrivate)) continue;
    SCOPED_TRACE(std::string(algorithm.traits.name));
    AlgorithmSpec spec = spec_for(algorithm);
    if (algorithm.traits.partial) spec.participation = 0.6;
    const auto run_context = federation.run_context(spec);
    run_context->keep_client_state_replicas = true;
    if (make_server<double>(run_context)->may_refuse()) continue;
    if (algorithm.traits.client_state != ClientState::kNone) ++with_state;
    const auto quiet = run_virtual<double>(federation, run_context, 1, {});
    for (const unsigned threads : {1u, 3u}) {
      for (const Others others : {Others::kLoadMost, Others::kLoadNothing}) {
        const auto lost = run_virtual<double>(federation, run_context, threads, {}, 5, others);
        EXPECT_EQ(quiet.model, lost.model);
        EXPECT_EQ(quiet.server_state, lost.server_state);
      }
    }
  }
  EXPECT_GT(with_state, 5u);
}

TEST(ParallelSimulation, EndsARunWhoseNumbersAreNoLongerFinite) {
  RoundLimits limits;
  limits.evaluate_every = 1000;
  FaultSimulationOptions options;
  options.zstd = {.kind = ZstdMode::Kind::kOff};
  for (const char* gamma : {"0.5", "1e200"}) {
    Federation<double> federation(4, 6);
    if (std::string_view(gamma) == "0.5") federation.oracles[2]->b[0] = std::nan("");
    const auto run_context = federation.run_context(spec_of("gd", "identity", {}, gamma));
    const auto ended = run_virtual<double>(federation, run_context, 1, limits);
    EXPECT_EQ(ended.outcome, Outcome::kDiverged);
    expect_same_steps(run<double>(federation, run_context, kRoundsHere, options, limits), ended);
  }
}

TEST(ParallelSimulation, RejectsStatesOfOtherRuns) {
  const Federation<double> federation(3, 4);
  const auto run_context = federation.run_context(spec_of("ef21", "topk:k=1"));
  const auto saved = run_virtual<double>(federation, run_context, 1, {}).client_states.front();
  for (std::size_t size = 0; size < saved.size(); ++size) {
    ParallelSimulation<double> clients(run_context, functions_of(federation), {});
    EXPECT_FALSE(clients.load_clients(saved.substr(0, size))) << size;
  }
  ParallelSimulation<double> clients(run_context, functions_of(federation), {});
  EXPECT_FALSE(clients.load_clients(saved + "x"));
}

TEST(ParallelSimulation, NeedsAFunctionForEachClient) {
  const Federation<double> federation(3, 4), other(2, 4);
  EXPECT_THROW(ParallelSimulation<double>(federation.run_context(spec_of("gd")), functions_of(other), {}),
               std::logic_error);
}

}  // namespace
}  // namespace gradwire
