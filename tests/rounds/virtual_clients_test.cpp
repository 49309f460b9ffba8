// Clients that exist only while they work give the bits of clients that stay.
#include "experiments/simulate/virtual_clients.h"

#include <gtest/gtest.h>

#include "engine/population.h"
#include "tests/algorithms/every_method.h"

namespace gradwire {
namespace {

using namespace testing;

constexpr std::uint32_t kRoundsHere = 12;

template <class Real>
std::shared_ptr<const Population<Real>> functions_of(const Federation<Real>& federation) {
  return std::make_shared<OracleList<Real>>(federation.oracle_pointers());
}

// `pause_after`: after this round all clients are saved, and others, who load what was saved, go on.
template <class Real>
Trace<Real> run_virtual(const Federation<Real>& federation, std::shared_ptr<const Setup<Real>> setup,
                        unsigned threads, RoundLimits limits, std::uint32_t pause_after = 0) {
  Trace<Real> trace;
  const auto server = make_server<Real>(setup);
  const Facts facts = find_method(setup->algorithm.name).facts;
  Ledger ledger;
  ledger.committed.resize(setup->n);
  std::string saved;
  for (const std::uint32_t until : {pause_after, kRoundsHere}) {
    if (until == 0) continue;
    VirtualClients<Real> clients(setup, functions_of(federation), {.threads = threads});
    if (!saved.empty()) {
      EXPECT_TRUE(clients.load_clients(saved));
    }
    LoopHooks<Real> hooks;
    hooks.on_record = [&](const RoundRecord& record) { trace.records.push_back(record); };
    hooks.evaluate = [&](View<Real> x, Evaluation<Real>& to) { clients.evaluate(x, to); };
    limits.rounds = until;
    trace.outcome = run_rounds<Real>(*server, facts, *setup, clients, ledger, limits, hooks);
    saved = clients.save_clients(ledger.committed);
  }
  trace.client_states.push_back(saved);
  trace.model.assign(server->model().begin(), server->model().end());
  trace.server_state = server->save();
  return trace;
}

template <class Real>
void expect_same(const Trace<Real>& a, const Trace<Real>& b) {
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.server_state, b.server_state);
  ASSERT_EQ(a.records.size(), b.records.size());
  for (std::size_t k = 0; k < a.records.size(); ++k) {
    EXPECT_EQ(a.records[k].loss, b.records[k].loss) << k;
    EXPECT_EQ(a.records[k].grad_norm_sq, b.records[k].grad_norm_sq) << k;
    EXPECT_EQ(a.records[k].grad_calls, b.records[k].grad_calls) << k;
    EXPECT_EQ(a.records[k].bits_up, b.records[k].bits_up) << k;
    EXPECT_EQ(a.records[k].bytes_up, b.records[k].bytes_up) << k;
    EXPECT_EQ(a.records[k].bytes_down, b.records[k].bytes_down) << k;
  }
}

template <class Real>
void compare_every_method(double participation) {
  const Federation<Real> federation(9, 8);
  std::size_t compared = 0;
  for (const MethodInfo& method : synchronous_methods()) {
    if (participation < 1 && !method.facts.partial) continue;
    SCOPED_TRACE(std::string(method.facts.name));
    AlgorithmSpec spec = spec_for(method);
    spec.participation = participation;
    const auto setup = federation.setup(spec);
    if (make_server<Real>(setup)->may_refuse()) continue;
    ++compared;
    RoundLimits limits;
    limits.evaluate_every = 3;
    InProcessOptions options;
    options.zstd = {.kind = ZstdMode::Kind::kOff};
    const auto stay = run<Real>(federation, setup, kRoundsHere, options, limits);
    EXPECT_NE(stay.model, setup->x0);
    const auto alone = run_virtual<Real>(federation, setup, 1, limits);
    expect_same(stay, alone);
    const auto shared = run_virtual<Real>(federation, setup, 3, limits);
    expect_same(stay, shared);
    EXPECT_EQ(alone.client_states, shared.client_states);
    const auto resumed = run_virtual<Real>(federation, setup, 2, limits, 5);
    EXPECT_EQ(stay.model, resumed.model);
    EXPECT_EQ(stay.server_state, resumed.server_state);
  }
  EXPECT_GT(compared, participation < 1 ? 5u : 20u);
}

TEST(VirtualClients, GiveTheBitsOfClientsThatStay) {
  compare_every_method<double>(1);
  compare_every_method<float>(1);
}

TEST(VirtualClients, GiveThemWhenAFewAreAsked) {
  compare_every_method<double>(0.35);
  compare_every_method<float>(0.35);
}

TEST(VirtualClients, RefuseStatesThatAreNotTheirs) {
  const Federation<double> federation(3, 4);
  const auto setup = federation.setup(spec_of("ef21", "topk:k=1"));
  const auto saved = run_virtual<double>(federation, setup, 1, {}).client_states.front();
  for (std::size_t size = 0; size < saved.size(); ++size) {
    VirtualClients<double> clients(setup, functions_of(federation), {});
    EXPECT_FALSE(clients.load_clients(saved.substr(0, size))) << size;
  }
  VirtualClients<double> clients(setup, functions_of(federation), {});
  EXPECT_FALSE(clients.load_clients(saved + "x"));
}

TEST(VirtualClients, NeedAFunctionForEachClient) {
  const Federation<double> federation(3, 4), other(2, 4);
  EXPECT_THROW(VirtualClients<double>(federation.setup(spec_of("gd")), functions_of(other), {}),
               std::logic_error);
}

}  // namespace
}  // namespace gradwire
