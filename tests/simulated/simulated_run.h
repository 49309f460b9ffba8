// A run on a simulated network: the real loop, journal, codec and workers. Messages may be lost, late or
// repeated, and processes may die.
#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/experiment_file.h"
#include "simulation/prepare.h"
#include "storage/run_store.h"
#include "tests/simulated/asynchronous_twin.h"
#include "tests/simulated/lazy_background.h"
#include "tests/simulated/simulated_network.h"
#include "tests/simulated/twin_federation.h"

namespace gradwire {

inline constexpr std::uint32_t kRounds = 16;  // for a synchronous algorithm

// The errors of a careless server.
enum class Bug {
  kNone,
  kAnnouncesBeforeDurable,
  kForgetsFolder,
  kAddsInArrivalOrder,
  kAddsBeforeAccepting,
  kAddsWhatIsOutdated,  // asynchronous algorithm: a reply whose point is too old
  kAddsTwice,           // asynchronous algorithm: the same reply twice
};

// A journal's disk that holds back the last record until the next one arrives.
class LateDisk final : public Disk {
 public:
  explicit LateDisk(Disk& disk) : disk_(disk) {}
  Result<std::vector<std::string>> list() override { return disk_.list(); }
  Result<std::string> read(const std::string& name) override { return disk_.read(name); }
  Status write(const std::string& name, Segments segments) override { return disk_.write(name, segments); }
  Status append(const std::string& name, Segments segments) override {
    Status status = Unit{};
    const std::string_view before = kept_;
    if (!kept_.empty()) status = disk_.append(name_, std::span(&before, 1));
    name_ = name;
    kept_.clear();
    for (const std::string_view segment : segments) kept_ += segment;
    return status;
  }
  Status sync(const std::string&) override { return Unit{}; }
  Status sync_folder() override { return disk_.sync_folder(); }
  Status rename(const std::string& from, const std::string& to) override { return disk_.rename(from, to); }
  Status remove(const std::string& name) override { return disk_.remove(name); }

 private:
  Disk& disk_;
  std::string name_, kept_;
};

template <class Real>
class CarelessServer final : public ServerAlgorithm<Real> {
 public:
  CarelessServer(ServerAlgorithm<Real>& server, SimulatedNetwork<Real>& network, Bug bug)
      : server_(server), network_(network), bug_(bug) {}
  void cohort(std::vector<ClientId>& out) const override { server_.cohort(out); }
  Downlink<Real> broadcast() const override { return server_.broadcast(); }
  bool accepts(const UplinkView<Real>& up) const override { return server_.accepts(up); }
  bool apply(Replies<Real> uplinks) override {
    if (bug_ == Bug::kAddsWhatIsOutdated) {
      UplinkView<Real> fresh = uplinks[0];
      fresh.round = server_.broadcast().round;
      return server_.apply(std::span(&fresh, 1));
    }
    if (bug_ == Bug::kAddsTwice) server_.apply(uplinks);
    const bool careless = bug_ == Bug::kAddsInArrivalOrder || bug_ == Bug::kAddsBeforeAccepting;
    if (uplinks.empty() || !careless) return server_.apply(uplinks);
    std::vector<UplinkView<Real>> given;
    for (const ClientId client : network_.arrived(uplinks[0].request_id)) {
      const auto is_it = [client](const auto& up) { return up.client == client; };
      const bool again = std::any_of(given.begin(), given.end(), is_it);
      const auto up = std::find_if(uplinks.begin(), uplinks.end(), is_it);
      if (up != uplinks.end() && (!again || bug_ == Bug::kAddsBeforeAccepting)) given.push_back(*up);
    }
    if (bug_ == Bug::kAddsBeforeAccepting)
      std::stable_sort(given.begin(), given.end(),
                       [](const auto& a, const auto& b) { return a.client < b.client; });
    return server_.apply(given);
  }
  bool may_refuse() const override { return server_.may_refuse(); }
  bool superseded(std::uint32_t round) const override { return server_.superseded(round); }
  double allotted_seconds(ClientId client) const override { return server_.allotted_seconds(client); }
  bool rests(ClientId client) const override { return server_.rests(client); }
  Downlink<Real> work(ClientId client) const override { return server_.work(client); }
  std::optional<Downlink<Real>> resync(ClientId client, ReplyStatus lacks) const override {
    return server_.resync(client, lacks);
  }
  View<Real> model() const override { return server_.model(); }
  LyapunovState<Real> lyapunov_state() const override { return server_.lyapunov_state(); }
  std::string save() const override { return server_.save(); }
  bool load(std::string_view bytes) override { return server_.load(bytes); }

 private:
  ServerAlgorithm<Real>& server_;
  SimulatedNetwork<Real>& network_;
  const Bug bug_;
};

struct Setting {
  NetworkFaults link_faults;
  Durability durability = Durability::kProcess;
  std::uint64_t events_between_deaths = 0;  // average for a server; 0 if servers do not die
  std::uint64_t calls_between_deaths = 0;   // the same for calls of its disk
  Bug bug = Bug::kNone;
  double quorum = 1, over_selection = 0;
  std::uint32_t steps = 60;  // for an asynchronous algorithm
  bool never_stops = false;  // no evaluation stops work before the last step: see AsynchronousTwin
};

struct End {
  std::string state;  // state of the algorithm
  RunProgress progress;
  std::uint64_t server_deaths = 0, client_deaths = 0;
  std::size_t fewest_replies = SIZE_MAX;  // in a round with a quorum
  std::string trouble;
};

// One run: servers die and restart until the rounds are done.
class SimulatedRun {
 public:
  SimulatedRun(const ExperimentSpec& experiment, const Setting& setting, std::uint64_t seed)
      : setting_(setting),
        random_(seed, "servers"),
        disk_(seed),
        world_(experiment, setting.link_faults, seed) {
    disk_.forgets_folder_syncs = setting.bug == Bug::kForgetsFolder;
    run_context_ = std::make_shared<RunContext<double>>();
    run_context_->seed = experiment.seed;
    run_context_->n = experiment.clients.count;
    run_context_->d = std::get<Quadratic>(experiment.problem).shape.dim;
    run_context_->x0.assign(run_context_->d, 0.5);
    run_context_->algorithm = algorithm_spec(experiment);
    run_context_->compressor = uplink_compressor(run_context_->algorithm, run_context_->d, run_context_->n);
    run_context_->keep_client_state_replicas = true;
    if (traits_of(*run_context_).asynchronous) {
      asynchronous_twin_ = std::make_unique<AsynchronousTwin>(run_context_, experiment);
      if (setting.never_stops) asynchronous_twin_->never_stops_before(setting.steps);
    } else if (setting.quorum < 1 || setting.over_selection > 0) {
      twin_ = std::make_unique<TwinFederation>(run_context_, experiment, DataSchema{});
    }
  }

  End run() {
    while (!life()) {
      end_.server_deaths += 1;
      setting_.durability == Durability::kPower ? disk_.lose_power() : disk_.lose_process();
      if (end_.server_deaths > 500) end_.trouble = "the run does not end";
      if (!end_.trouble.empty()) break;
    }
    end_.client_deaths = world_.deaths();
    return end_;
  }

 private:
  // Runs one server process. Returns false if it died.
  bool life() {
    LateDisk late(disk_);
    const bool lazy = setting_.bug == Bug::kAnnouncesBeforeDurable;
    Journal journal(lazy ? static_cast<Disk&>(late) : disk_, setting_.durability);
    LazyBackground background;
    const CodecContext context = codec_context(*run_context_, {});
    const auto server = make_server<double>(run_context_);
    RunProgress progress;
    RunStore<double> durable(journal, background, context, *server, progress, "about",
                             {.records = 5, .bytes_beyond_state = 1 << 20});
    const bool may_die = end_.server_deaths < 10;
    if (setting_.calls_between_deaths > 0 && may_die)
      disk_.crash_at = disk_.calls() + random_.below(2 * setting_.calls_between_deaths);
    try {
      const Result<bool> found = journal.recover(
          {.snapshot = [&](std::span<const Section> s) { return durable.load(s); },
           .record =
               [&](std::string_view record) {
                 const std::vector<std::uint64_t> before = progress.committed;
                 if (!durable.replay(record)) return false;
                 if (twin_ && progress.round > twin_->rounds())  // the server died before the check
                   twin_->round_between(before, progress.committed);
                 if (asynchronous_twin_ && progress.round > asynchronous_twin_->steps())
                   asynchronous_twin_->step_between(before, progress.committed, server->save());
                 return true;
               }});
      if (!found) return fail(found.error().message);
      if (progress.round < announced_)
        return fail("round " + std::to_string(announced_) + " was announced, but it is lost");
      durable.begin();
      SimulatedNetwork<double> network(world_, context);
      if (setting_.events_between_deaths > 0 && may_die)
        network.events_left = random_.below(2 * setting_.events_between_deaths);
      CarelessServer<double> careless(*server, network, setting_.bug);
      rounds(careless, network, progress, durable);
      durable.end(RunStage::kOver, Outcome::kFinished);
    } catch (const SimulatedCrash&) {
      return false;
    } catch (const std::exception& error) {
      return fail(error.what());
    }
    end_.state = server->save();
    end_.progress = progress;
    return true;
  }

  void rounds(ServerAlgorithm<double>& server, SimulatedNetwork<double>& network, RunProgress& progress,
              RunStore<double>& durable) {
    RoundLimits limits;
    limits.rounds = kRounds;
    limits.evaluate_every = 6;
    limits.deadline_seconds = 20;
    limits.attempts = 60;  // for a network that loses a fifth of all messages
    limits.quorum = setting_.quorum;
    limits.over_selection = setting_.over_selection;
    LoopHooks<double> hooks;
    hooks.before_apply = [&] { durable.before_apply(); };
    hooks.on_commit = [&](const RoundCommit<double>& commit) {
      durable.commit(commit);
      announced_ = commit.progress.round;
      if (twin_) check_against_twin(server, commit);
      if (asynchronous_twin_) asynchronous_twin_->check(server, commit);
    };
    if (asynchronous_twin_) {
      limits.rounds = setting_.steps;
      WitnessedTransport witnessed(network, *asynchronous_twin_);
      run_rounds<double>(server, traits_of(*run_context_), *run_context_, witnessed, progress, limits, hooks);
      return;
    }
    run_rounds<double>(server, traits_of(*run_context_), *run_context_, network, progress, limits, hooks);
  }

  void check_against_twin(const ServerAlgorithm<double>& server, const RoundCommit<double>& commit) {
    twin_->round_of(commit.replies);
    end_.fewest_replies = std::min(end_.fewest_replies, commit.replies.size());
    if (server.save() != twin_->state())
      throw std::runtime_error("after round " + std::to_string(commit.progress.round) +
                               " the state is not that of a federation in which the same clients answered");
  }

  bool fail(const std::string& what) {
    end_.trouble = what;
    return true;
  }

  const Setting setting_;
  Random random_;
  SimulatedDisk disk_;
  SimulatedWorld world_;
  std::shared_ptr<RunContext<double>> run_context_;
  std::unique_ptr<TwinFederation> twin_;                 // in a run with a quorum
  std::unique_ptr<AsynchronousTwin> asynchronous_twin_;  // for an asynchronous algorithm
  std::uint32_t announced_ = 0;
  End end_;
};

inline ExperimentSpec experiment_of(const std::string& algorithm, const std::string& dim = "12",
                                    const std::string& clients = "") {
  return prepare(parse_experiment("[problem]\nkind = \"quadratic\"\ndim = " + dim +
                                      "\nheterogeneity = 0.7\n[clients]\n"
                                      "count = 5\n" +
                                      clients + "[algorithm]\n" + algorithm,
                                  "simulation.toml"))
      .experiment;
}

// Returns a setting between calm and wild, which the seed decides.
inline Setting setting_of(std::uint64_t seed, bool is_private) {
  Random random(seed, "setting");
  const auto share = [&](double largest) { return random.below(3) == 0 ? 0 : largest * random.uniform(); };
  Setting s;
  s.link_faults.lost = share(0.2);
  s.link_faults.repeated = share(0.3);
  s.link_faults.delay_seconds = 5 * random.uniform();
  s.link_faults.slow = share(0.1);
  s.link_faults.cut_off = share(0.05);
  s.link_faults.client_dies = share(0.1);
  s.link_faults.clients_remember = is_private || random.below(2) == 0;
  s.link_faults.disk_lost = is_private ? 0 : share(0.5);
  s.durability = random.below(2) == 0 ? Durability::kProcess : Durability::kPower;
  if (random.below(2) == 0) s.events_between_deaths = 20 + random.below(200);
  if (random.below(2) == 0) s.calls_between_deaths = 10 + random.below(60);
  return s;
}

}  // namespace gradwire
