#include "simulation/simulate.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include "algorithms/core/many_replies.h"
#include "base/serialize.h"
#include "config/client_latency.h"
#include "config/experiment_spec.h"
#include "config/start_point.h"
#include "engine/kernels/select.h"
#include "parallel/range_threads.h"
#include "proto/wire/codec_context.h"
#include "report/run_clock.h"
#include "simulation/checked_objectives.h"
#include "simulation/event_simulation.h"
#include "simulation/fault_simulation.h"
#include "simulation/local_client.h"
#include "simulation/over_ranks.h"
#include "simulation/parallel_simulation.h"
#include "storage/run_store.h"

namespace gradwire {
namespace {

FaultSimulationOptions fault_simulation_options(const ExperimentSpec& e, bool encoded, unsigned threads) {
  FaultSimulationOptions options;
  options.threads = threads;
  options.encoded = encoded;
  options.faults = {e.faults.lost_replies, e.faults.lost_requests, e.faults.duplicates,
                    e.faults.crashes,      e.faults.state_loss,    e.faults.shuffle};
  options.draw_arrival = e.server.over_selection > 0 || e.server.quorum < 1;
  const Result<ZstdMode> zstd = parse_zstd_mode(e.server.zstd);
  if (!zstd) throw std::runtime_error("server.zstd: " + zstd.error().message);
  options.zstd = *zstd;
  return options;
}

// Sets the deadline and the attempts of a run on a virtual clock. Removes the deadline if there are no
// faults: no message is lost, so a late client is only slow.
void remove_deadline(RoundLimits& limits, const Faults& faults) {
  if (!faults.any()) limits.deadline_seconds = std::numeric_limits<double>::infinity();
  limits.attempts = 100'000;
}

// Returns the seconds that a request takes each client. `requests` counts the earlier requests of each
// client: shape (n) for traces, else empty.
std::function<double(ClientId, std::uint64_t)> seconds_of(ClientLatency seconds, std::uint64_t seed,
                                                          std::vector<std::uint64_t>& requests) {
  requests.assign(seconds.traces.size(), 0);
  return [seed, seconds = std::move(seconds), &requests](ClientId i, std::uint64_t request_id) {
    return seconds.of(seed, i, request_id, requests.empty() ? 0 : requests[i]++);
  };
}

std::vector<Section> sections_of(const RunCheckpoint::Saved& saved) {
  std::vector<Section> sections;
  for (const auto& [tag, bytes] : saved.sections) sections.push_back({tag, bytes});
  return sections;
}
// Work in progress of a driver.
struct DriverWork {
  std::function<std::string()> save;  // called for a snapshot
  std::string saved;                  // saved by the process that this run continues
};

constexpr const char* kDoesNotFit = "the checkpoint does not fit the experiment; start again with --fresh";

template <class Real, class Clients>
SimulationSnapshots snapshots_of(const Checkpoints& checkpoints, const RunProgress& progress,
                                 Clients& clients) {
  return {.seconds = checkpoints.seconds > 0 ? checkpoints.seconds : std::numeric_limits<double>::infinity(),
          .save_clients = [&] { return clients.save_clients(progress.committed); },
          .load_clients = [&](std::string_view bytes) { return clients.load_clients(bytes); }};
}

// Returns the store of the run, which may continue an earlier one; frees the saved sections. Null if the run
// saves nothing.
template <class Real>
std::unique_ptr<RunStore<Real>> store_of(Checkpoints& checkpoints, ServerAlgorithm<Real>& server,
                                         RunProgress& progress, SimulationSnapshots snapshots,
                                         const Log& note) {
  if (checkpoints.checkpoint == nullptr) return nullptr;
  RunCheckpoint& checkpoint = *checkpoints.checkpoint;
  auto store = std::make_unique<RunStore<Real>>(checkpoint.journal(), std::move(snapshots), server, progress,
                                                checkpoint.metadata(), note);
  store->before_snapshots([&] { return checkpoint.prepare(); });
  const std::vector<Section> sections = sections_of(checkpoints.saved);
  if (!sections.empty() && !store->load(sections)) throw std::runtime_error(kDoesNotFit);
  checkpoints.saved = {};
  return store;
}

// Runs the rounds from the state of `progress` and `server`, which `store` may have loaded.
template <class Real, class Clients>
RunResult run_on(Clients& clients, const RunContext<Real>& run_context, ServerAlgorithm<Real>& server,
                 RunProgress& progress, const RoundLimits& limits, LoopHooks<Real> hooks,
                 const RunObserver& observer, const std::atomic<bool>& stop, RunStore<Real>* store,
                 Monitor<Real>* monitor = nullptr, DriverWork* work = nullptr) {
  RunResult result;
  result.rounds = progress.round;
  hooks.stop = &stop;
  hooks.on_note = observer.on_note;
  hooks.on_clients = observer.on_clients;
  hooks.on_round = [&](std::uint32_t rounds) {
    result.rounds = rounds;
    if (monitor != nullptr) monitor->end_round(rounds, server);
    if (observer.on_round) observer.on_round(rounds);
  };
  if (monitor != nullptr) hooks.before_apply = [&] { monitor->begin_round(server.model()); };
  const bool is_virtual = hooks.seconds != nullptr;  // then the wall clock times only this process
  hooks.on_record = [&](const RoundRecord& record) {
    result.last = record;
    if (is_virtual) result.last.sim_seconds = record.seconds;
    if (monitor != nullptr) monitor->fill(result.last, server);
    if (observer.on_record) observer.on_record(result.last);
  };
  if (observer.is_enough)
    hooks.is_enough = [&](const RoundRecord&) { return observer.is_enough(result.last); };
  const RunClock wall(is_virtual ? 0 : progress.totals.seconds);
  if (!is_virtual) hooks.seconds = wall;
  hooks.wall_seconds = wall;
  const double evaluated_before = is_virtual ? progress.totals.evaluation_seconds : 0;
  if (store != nullptr) {
    hooks.between_rounds = [store, work](const std::function<std::string()>& save_work, bool stopped) {
      if (work != nullptr) work->save = save_work;
      stopped ? store->end(RunStage::kRounds, Outcome::kStopped) : store->snapshot_if_due();
    };
  }
  if (work != nullptr) hooks.work = std::move(work->saved);
  const auto end = [&](Outcome outcome) {
    result.outcome = outcome;
    result.seconds = wall();
    result.evaluation_seconds = progress.totals.evaluation_seconds - evaluated_before;
    if (monitor != nullptr) {
      result.monitor = monitor->verdict();
      result.crossed = monitor->crossed();
    }
    const View<Real> x = server.model();
    result.model.assign(x.begin(), x.end());
  };
  try {
    end(run_rounds(server, traits_of(run_context), run_context, clients, progress, limits, hooks));
  } catch (const RoundGivenUp&) {  // clients may be half a round ahead, so no snapshot is taken
    end(Outcome::kStopped);
  } catch (...) {
    end(Outcome::kStopped);
    if (observer.on_failure) observer.on_failure(result);
    throw;
  }
  return result;
}

// Runs the rounds on one of several ranks. Rank 0 writes the snapshots, with the states that all ranks send
// to it.
template <class Real>
RunResult run_on_ranks(ParallelSimulation<Real>& clients, RankCommunicator<Real>& communicator,
                       RankSignals& signals, const RunContext<Real>& run_context,
                       ServerAlgorithm<Real>& server, RunProgress& progress, const RoundLimits& limits,
                       LoopHooks<Real> hooks, const RunObserver& observer, const std::atomic<bool>& stop,
                       Checkpoints& checkpoints) {
  SimulationSnapshots snapshots = snapshots_of<Real>(checkpoints, progress, clients);
  // The store would continue after a failed snapshot, but the other ranks would wait for this one.
  snapshots.save_clients = [&] {
    try {
      return join_at_first(communicator.ranks(), clients.save_clients(progress.committed));
    } catch (const std::exception& error) {
      throw LostStep{std::string("the states of clients cannot be saved: ") + error.what()};
    }
  };
  snapshots.load_clients = [&](std::string_view bytes) {
    return clients.load_clients(hand_out_clients(communicator.ranks(), run_context.n, bytes));
  };
  snapshots.is_due = [&] { return std::exchange(signals.all_snapshot, false); };
  signals.stop = &stop;
  if (communicator.ranks().rank() == 0) {
    const auto store = store_of<Real>(checkpoints, server, progress, snapshots, observer.on_note);
    if (store != nullptr) signals.is_snapshot_due = [raw = store.get()] { return raw->is_due(); };
    return run_on<Real>(clients, run_context, server, progress, limits, hooks, observer, signals.all_stop,
                        store.get());
  }
  const std::vector<Section> sections = sections_of(checkpoints.saved);
  if (!sections.empty() && !load_snapshot<Real>(sections, server, progress, snapshots.load_clients))
    throw std::runtime_error(kDoesNotFit);
  hooks.on_commit = [&](const RoundCommit<Real>&) {
    if (snapshots.is_due()) snapshots.save_clients();
  };
  const RunResult result = run_on<Real>(clients, run_context, server, progress, limits, hooks, observer,
                                        signals.all_stop, nullptr);
  if (result.outcome == Outcome::kStopped && checkpoints.seconds > 0) snapshots.save_clients();
  return result;
}

// Returns a lower bound of the time for the gradient of a client. Tiny runs then start no thread.
template <class Real>
double least_seconds_each(Prepared& p, const ClientObjectives<Real>& functions) {
  constexpr double kSecondsPerNumber = 1e-10;
  constexpr std::uint32_t kFewClients = 1000;
  const std::uint32_t n = functions.clients();
  // The program's functions may take any time.
  if (p.functions.of<Real>() != nullptr || n > kFewClients) return kUnknownSeconds;
  double samples = 0;
  for (std::uint32_t client = 0; client < n; ++client)
    samples += static_cast<double>(functions.sample_count(client));
  return kSecondsPerNumber * static_cast<double>(p.d) * samples / n;
}

template <class Real>
RunResult simulate_as(Prepared p, bool encoded, unsigned threads, const RunObserver& observer,
                      const std::atomic<bool>& stop, Checkpoints checkpoints,
                      const std::shared_ptr<Ranks>& ranks) {
  auto run_context = make_run_context<Real>(p, Role::kSimulation, ranges_of(p.d, threads));
  if (run_context->n >= kManyReplies) run_context->items = items_of(threads);
  RankSignals signals;
  RankBinding<Real> rank;
  if (ranks != nullptr) {
    const auto shared = std::make_shared<RunContext<Real>>(*run_context);
    rank = {std::make_shared<RankCommunicator<Real>>(ranks, run_context->n), &signals};
    shared->communicator = rank.communicator;
    shared->keep_client_state_replicas = false;  // no state gets lost, and those of other ranks are unknown
    run_context = shared;
    p.data.keep_clients(run_context->mine().first, run_context->mine().end);
  }
  p.smoothness.reset();  // large, and not needed after the step sizes are resolved
  std::shared_ptr<const ClientObjectives<Real>> functions = p.functions.of<Real>();
  if (functions == nullptr) functions = make_client_objectives<Real>(p.problem, p.schema, std::move(p.data));
  functions = checked(std::move(functions), p.before_gradient);
  const auto server = make_server<Real>(run_context);
  RunProgress progress;
  progress.committed.resize(run_context->n);
  RoundLimits limits = round_limits(p.experiment, /*over_network=*/false);
  limits.keep_clients = checkpoints.checkpoint != nullptr;
  limits.plateau = checkpoints.saved.plateau;
  limits.max_delay = theory_delay(p);
  const FaultSimulationOptions options = fault_simulation_options(p.experiment, encoded, threads);
  std::optional<Monitor<Real>> watch;
  if (p.monitor) watch.emplace(std::move(*p.monitor), run_context, functions);
  Monitor<Real>* const monitor = watch ? &*watch : nullptr;
  LoopHooks<Real> hooks;
  hooks.evaluation_bytes =
      [codec = std::make_shared<Codec<Real>>(codec_context(*run_context, zstd_of({}, false)))](
          const Downlink<Real>& body, RequestKind kind) { return evaluation_bytes(*codec, body, kind); };
  const bool is_timed = !p.experiment.clients.latency.empty() || traits_of(*run_context).asynchronous;
  // True if no reply is late or lost, and all replies are used.
  const bool is_plain = !encoded && !options.faults.any() && !options.draw_arrival && !server->may_refuse() &&
                        !limits.norm.is_set();
  if (!is_timed && is_plain) {
    ParallelSimulation<Real> clients(run_context, functions,
                                     {.threads = threads, .seconds_each = least_seconds_each(p, *functions)},
                                     rank);
    hooks.evaluate = [&clients](View<Real> x, Evaluation<Real>& to) { clients.evaluate(x, to); };
    if (rank.communicator != nullptr)
      return run_on_ranks<Real>(clients, *rank.communicator, signals, *run_context, *server, progress, limits,
                                hooks, observer, stop, checkpoints);
    const auto store = store_of<Real>(checkpoints, *server, progress,
                                      snapshots_of<Real>(checkpoints, progress, clients), observer.on_note);
    return run_on<Real>(clients, *run_context, *server, progress, limits, hooks, observer, stop, store.get(),
                        monitor);
  }
  if (ranks != nullptr) throw std::logic_error("simulate: ranks cannot share this run");
  if (!is_timed) {
    FaultSimulation<Real> clients(run_context, functions, options);
    const auto store = store_of<Real>(checkpoints, *server, progress,
                                      snapshots_of<Real>(checkpoints, progress, clients), observer.on_note);
    if (!encoded && !options.faults.any())  // otherwise evaluations are ordinary messages
      hooks.evaluate = [&clients](View<Real> x, Evaluation<Real>& to) { clients.evaluate(x, to); };
    return run_on<Real>(clients, *run_context, *server, progress, limits, hooks, observer, stop, store.get(),
                        monitor);
  }
  EventSimulationOptions virtual_options;
  virtual_options.threads = threads;
  virtual_options.encoded = encoded;
  virtual_options.faults = options.faults;
  virtual_options.zstd = options.zstd;
  std::vector<std::uint64_t> requests;
  virtual_options.seconds = seconds_of(std::move(p.seconds), run_context->seed, requests);
  EventSimulation<Real> clients(run_context, functions, virtual_options);
  DriverWork work;
  SimulationSnapshots snapshots = snapshots_of<Real>(checkpoints, progress, clients);
  snapshots.save_clients = [&] {
    const std::string of_clients = clients.save_clients(progress.committed), of_driver = work.save();
    Saver saver;
    saver(std::vector(of_clients.begin(), of_clients.end())), saver(requests);
    saver(std::vector(of_driver.begin(), of_driver.end()));
    return saver.take();
  };
  snapshots.load_clients = [&](std::string_view bytes) {
    Loader loader(bytes);
    std::vector<char> of_clients, of_driver;
    const std::size_t traces = requests.size();
    loader(of_clients), loader(requests), loader(of_driver);
    work.saved.assign(of_driver.begin(), of_driver.end());
    return loader.done() && requests.size() == traces &&
           clients.load_clients({of_clients.data(), of_clients.size()});
  };
  const auto store = store_of<Real>(checkpoints, *server, progress, snapshots, observer.on_note);
  remove_deadline(limits, options.faults);
  hooks.seconds = [&clients] { return clients.now(); };
  hooks.evaluate = [&clients](View<Real> x, Evaluation<Real>& to) { clients.evaluate(x, to); };
  return run_on<Real>(clients, *run_context, *server, progress, limits, hooks, observer, stop, store.get(),
                      monitor, &work);
}

}  // namespace

RunResult simulate(Prepared prepared, bool encoded, unsigned threads, const RunObserver& observer,
                   const std::atomic<bool>& stop, Checkpoints checkpoints, std::shared_ptr<Ranks> ranks) {
  threads = std::clamp(threads, 1u, std::max(1u, prepared.problem.clients));
  const char* const kernels = kernels_name(prepared.experiment.run.kernels);
  const auto run =
      prepared.experiment.precision == Precision::kFp32 ? simulate_as<float> : simulate_as<double>;
  RunResult result =
      run(std::move(prepared), encoded, threads, observer, stop, std::move(checkpoints), ranks);
  result.kernels = kernels;
  return result;
}

}  // namespace gradwire
