#include "experiments/simulate/simulate.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>

#include "base/state.h"
#include "engine/kernels/select.h"
#include "experiments/simulate/in_process.h"
#include "experiments/simulate/virtual_time.h"
#include "experiments/support/thread_pool.h"
#include "proto/config/client_seconds.h"
#include "proto/config/experiment.h"
#include "proto/config/start_point.h"
#include "proto/report/run_clock.h"
#include "proto/store/round_record.h"

namespace gradwire {
namespace {

// With fewer ranges, threads cost more than they save.
constexpr std::size_t kRangesWorthThreads = 8;

InProcessOptions in_process_options(const Experiment& e, bool encoded, unsigned threads) {
  InProcessOptions options;
  options.threads = threads;
  options.encoded = encoded;
  options.faults = {e.faults.lost_replies, e.faults.lost_requests, e.faults.duplicates,
                    e.faults.crashes,      e.faults.wiped,         e.faults.shuffle};
  options.draw_arrival = e.server.over_selection > 0 || e.server.quorum < 1;
  const Result<ZstdMode> zstd = parse_zstd_mode(e.server.zstd);
  if (!zstd) throw std::runtime_error("server.zstd: " + zstd.error().message);
  options.zstd = *zstd;
  return options;
}

ForRanges ranges_on(std::shared_ptr<ThreadPool> pool) {
  return
      [pool = std::move(pool)](std::size_t size, const std::function<void(std::size_t, std::size_t)>& body) {
        const std::size_t ranges = (size + kRangeReals - 1) / kRangeReals;
        pool->for_each(ranges, [&](unsigned, std::size_t k) {
          body(k * kRangeReals, std::min(size, (k + 1) * kRangeReals));
        });
      };
}

template <class Real>
std::shared_ptr<Setup<Real>> make_setup(const Prepared& p, unsigned threads) {
  auto setup = std::make_shared<Setup<Real>>();
  setup->seed = p.experiment.seed;
  setup->n = p.problem.clients;
  setup->d = p.d;
  setup->x0.assign(p.x0.begin(), p.x0.end());
  setup->algorithm = algorithm_spec(p.experiment);
  setup->compressor = uplink_compressor(setup->algorithm, p.d, setup->n);
  setup->weights = p.weights;
  setup->keep_mirrors = keep_mirrors(p.experiment, false);
  if (threads > 1 && p.d >= kRangesWorthThreads * kRangeReals)
    setup->ranges = ranges_on(std::make_shared<ThreadPool>(threads));
  return setup;
}

void put(Saver& saver, const std::string& part) { saver(std::vector<char>(part.begin(), part.end())); }

// Nobody is asked again on a virtual clock where nothing is lost: whoever is late is slow.
void wait_for_whoever_is_slow(RoundLimits& limits, const Faults& faults) {
  if (!faults.any()) limits.deadline_seconds = std::numeric_limits<double>::infinity();
  limits.attempts = 100'000;
}

template <class Real, class Clients>
std::string save_simulation(const Ledger& ledger, const ServerHalf<Real>& server, Clients& clients) {
  Saver saver;
  put(saver, save_ledger(ledger));
  put(saver, server.save());
  put(saver, clients.save_clients(ledger.committed));
  return saver.take();
}

template <class Real, class Clients>
void load_simulation(const std::string& state, Ledger& ledger, ServerHalf<Real>& server, Clients& clients) {
  std::vector<char> parts[3];
  Loader loader(state);
  for (std::vector<char>& part : parts) loader(part);
  const auto text = [&](int k) { return std::string_view(parts[k].data(), parts[k].size()); };
  if (!loader.done() || !load_ledger(text(0), ledger) || !server.load(text(1)) ||
      !clients.load_clients(text(2)))
    throw std::runtime_error("the checkpoint does not fit the experiment; run without --resume");
}

// The run of `ledger` and `server`, which may have been continued from a checkpoint.
template <class Real, class Clients>
RunResult run_on(Clients& clients, const Setup<Real>& setup, ServerHalf<Real>& server, Ledger& ledger,
                 const RoundLimits& limits, LoopHooks<Real> hooks, const RunObserver& observer,
                 const std::atomic<bool>& stop, const Checkpoints& checkpoints) {
  RunResult result;
  result.kernels = kernels_name();
  result.rounds = ledger.round;
  hooks.stop = &stop;
  hooks.on_note = observer.on_note;
  hooks.on_record = [&](const RoundRecord& record) {
    result.last = record;
    if (observer.on_record) observer.on_record(record);
  };
  hooks.on_round = [&](std::uint32_t rounds) {
    result.rounds = rounds;
    if (observer.on_round) observer.on_round(rounds);
  };
  const bool is_virtual = hooks.seconds != nullptr;  // then this process alone is timed
  const RunClock wall(is_virtual ? 0 : ledger.totals.seconds);
  if (!is_virtual) hooks.seconds = wall;
  double saved = wall();
  std::uint32_t saved_round = 0;
  if (checkpoints.save)
    hooks.on_commit = [&](const RoundCommit<Real>& commit) {
      if (wall() - saved < checkpoints.seconds && !stop) return;
      checkpoints.save(save_simulation<Real>(commit.ledger, server, clients), commit.ledger.round);
      saved = wall();
      saved_round = commit.ledger.round;
    };
  result.outcome = run_rounds(server, facts_of(setup), setup, clients, ledger, limits, hooks);
  if (result.outcome == Outcome::kStopped && checkpoints.save && saved_round != ledger.round)
    checkpoints.save(save_simulation<Real>(ledger, server, clients), ledger.round);
  result.seconds = wall();
  const View<Real> x = server.model();
  result.model.assign(x.begin(), x.end());
  return result;
}

template <class Real>
RunResult simulate_as(const Prepared& p, bool encoded, unsigned threads, const RunObserver& observer,
                      const std::atomic<bool>& stop, const Checkpoints& checkpoints) {
  const auto setup = make_setup<Real>(p, threads);
  const auto oracles = make_oracles<Real>(p.problem, p.agreement, p.parts);
  std::vector<Oracle<Real>*> pointers;
  for (const auto& oracle : oracles) pointers.push_back(oracle.get());
  const auto server = make_server<Real>(setup);
  Ledger ledger;
  ledger.committed.resize(setup->n);
  RoundLimits limits = round_limits(p.experiment);
  limits.keep_clients = checkpoints.save != nullptr;
  const InProcessOptions options = in_process_options(p.experiment, encoded, threads);
  const std::string& speeds = p.experiment.clients.seconds;
  if (speeds.empty() && !facts_of(*setup).asynchronous) {
    InProcess<Real> clients(setup, pointers, options);
    if (!checkpoints.state.empty()) load_simulation(checkpoints.state, ledger, *server, clients);
    return run_on<Real>(clients, *setup, *server, ledger, limits, {}, observer, stop, checkpoints);
  }
  VirtualTimeOptions virtual_options;
  virtual_options.threads = threads;
  virtual_options.encoded = encoded;
  virtual_options.faults = options.faults;
  virtual_options.zstd = options.zstd;
  virtual_options.seconds = [seed = setup->seed, seconds = parse_client_seconds(speeds)](
                                ClientId i, std::uint64_t ticket) { return seconds.of(seed, i, ticket); };
  VirtualTime<Real> clients(setup, pointers, virtual_options);
  if (!checkpoints.state.empty()) {
    load_simulation(checkpoints.state, ledger, *server, clients);
    clients.set_clock(ledger.totals.seconds);
    const bool depends = facts_of(*setup).asynchronous || limits.quorum < 1;  // on who was at work
    if (depends && observer.on_note)
      observer.on_note("all clients begin new work on the virtual clock: the run goes on with other bits");
  }
  wait_for_whoever_is_slow(limits, options.faults);
  LoopHooks<Real> hooks;
  hooks.seconds = [&clients] { return clients.now(); };
  hooks.evaluate = [&clients](View<Real> x, Evaluation<Real>& to) { clients.evaluate(x, to); };
  return run_on<Real>(clients, *setup, *server, ledger, limits, hooks, observer, stop, checkpoints);
}

}  // namespace

RunResult simulate(const Prepared& prepared, bool encoded, unsigned threads, const RunObserver& observer,
                   const std::atomic<bool>& stop, const Checkpoints& checkpoints) {
  threads = std::clamp(threads, 1u, std::max(1u, prepared.problem.clients));
  if (prepared.experiment.precision == Precision::kFp32)
    return simulate_as<float>(prepared, encoded, threads, observer, stop, checkpoints);
  return simulate_as<double>(prepared, encoded, threads, observer, stop, checkpoints);
}

}  // namespace gradwire
