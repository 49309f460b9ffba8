// A whole federation on simulated streams, disks and a clock: the real session manager, sessions,
// connections, loop, journal, relay and clients. Connections break, fall silent and stall, and processes die
// anywhere.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/experiment_file.h"
#include "config/settings.h"
#include "fl_server/plan_of_joins.h"
#include "fl_server/relay/relay.h"
#include "fl_server/run_metadata.h"
#include "fl_server/sessions/session_manager.h"
#include "fl_server/sessions/tcp_transport.h"
#include "proto/wire/codec_context.h"
#include "storage/run_store.h"
#include "tests/simulated/asynchronous_twin.h"
#include "tests/simulated/lazy_background.h"
#include "tests/simulated/simulated_peer.h"
#include "tests/simulated/twin_federation.h"

namespace gradwire {

inline constexpr std::uint32_t kClients = 5;
inline constexpr std::uint32_t kRounds = 12;  // for a synchronous algorithm
inline constexpr std::uint32_t kSteps = 40;   // for an asynchronous algorithm
inline constexpr double kLongestRunSeconds = 300'000;

struct Setting {
  StreamFaults link_faults;
  PeerHabits habits;
  Durability durability = Durability::kProcess;
  std::uint64_t events_between_deaths = 0;  // average for a server; 0 if servers do not die
  std::uint64_t calls_between_deaths = 0;   // the same for calls of its disk
  std::uint32_t through_relay = 0;          // number of clients of the relay
  double relay_dies_seconds = 0;            // average time between two deaths; 0 if it does not die
  bool relay_adds = false;                  // the relay adds up replies
  double quorum = 1, over_selection = 0;
  std::uint32_t start_with = 0;                     // clients that must join before the run begins; 0 for all
  double late_seconds = 0;                          // the others start at any time until then
  SecureWorld* secure = nullptr;                    // TLS and logins; null for plain text
  std::uint64_t receive_budget_bytes = UINT64_MAX;  // for replies that arrive at the same time
  std::function<ClientData(std::uint32_t client)> data{};  // empty for a problem without data
};

struct End {
  std::vector<std::string> states;  // state of the algorithm after each committed round
  std::vector<Vec<double>> models;
  std::vector<RunTotals> totals;
  std::uint64_t server_deaths = 0, client_deaths = 0, uplink_bytes = 0;
  // The number of sent chunks, and the bytes of completed replies that arrived in chunks.
  std::uint64_t chunks = 0, bytes_in_chunks = 0;
  std::size_t fewest_replies = SIZE_MAX;  // in a round with a quorum
  bool took_sums = false;
  std::uint64_t late_joins = 0;
  std::shared_ptr<const Normalization> normalization;  // the map of the last server that served rounds
  double seconds = 0;
  std::string trouble;
};

// A relay and the clients that connect to it.
struct SimulatedSite {
  CurrentServer clients;
  RelayOptions options;
  std::unique_ptr<RelayRun> relay;
};

class SimulatedSession {
 public:
  // `quiet` is the result that this run must equal; null if this run is the quiet one.
  SimulatedSession(const LoadedExperiment& loaded, const Setting& setting, std::uint64_t seed,
                   const End* quiet)
      : loaded_(loaded),
        setting_(setting),
        quiet_(quiet),
        random_(seed, "streams"),
        servers_(seed, "servers"),
        disk_(seed),
        talks_(std::getenv("GRADWIRE_SEED") != nullptr) {
    for (std::uint32_t c = 0; c < kClients; ++c)
      peers_.push_back(std::make_unique<SimulatedPeer>(
          time_, random_, setting_.link_faults, setting_.habits,
          c < setting.through_relay ? site_.clients : current_server_, "c" + std::to_string(c), seed * 64 + c,
          setting.secure, setting_.data ? setting_.data(c) : ClientData{},
          setting.start_with > 0 && c >= setting.start_with ? setting.late_seconds * servers_.uniform() : 0));
    if (setting.through_relay > 0) start_relay();
  }

  End run() {
    while (!all_shut_down() && end_.trouble.empty()) {
      life();
      if (all_heard_ && !all_shut_down() && end_.trouble.empty())
        end_.trouble = "the server assumes that all clients got its shutdown, but one did not";
      if (all_heard_) break;
      end_.server_deaths += 1;
      setting_.durability == Durability::kPower ? disk_.lose_power() : disk_.lose_process();
      current_server_.machine_died = false;
      const double back = time_.now() + 30 * servers_.uniform();
      while (time_.step(back)) {
      }
    }
    for (const auto& peer : peers_) {
      end_.client_deaths += peer->deaths();
      end_.uplink_bytes += peer->bytes_written();
      end_.chunks += peer->chunks_sent();
      // A client that comes after the run is told so.
      if (end_.trouble.empty() && (setting_.start_with == 0 || numbers_.contains(peer->name())))
        end_.trouble = peer->trouble();
    }
    end_.seconds = time_.now();
    return end_;
  }

 private:
  bool all_shut_down() const {
    return std::all_of(peers_.begin(), peers_.end(), [this](const auto& p) {
      const bool never_came = all_heard_ && setting_.start_with > 0 && !numbers_.contains(p->name());
      return p->announced_shutdown() || !p->trouble().empty() || never_came;
    });
  }
  void start_relay() {
    auto sockets = std::make_unique<SimulatedSockets>(time_, random_, setting_.link_faults, site_.clients);
    sockets->upstream = &current_server_;
    site_.options.jitter_seed = servers_.below(1u << 30);
    site_.options.upstream = "server:1";
    site_.options.aggregate = setting_.relay_adds;
    site_.options.give_up_after = std::chrono::hours(10'000);
    site_.options.log = [this](const std::string& line) {
      if (talks_) std::printf("%9.3f relay: %s\n", time_.now(), line.c_str());
    };
    if (setting_.secure != nullptr) site_.options.credentials = setting_.secure->credentials("relay");
    site_.relay = make_relay(site_.options, secured(std::move(sockets)));
    site_.relay->start();
    if (setting_.relay_dies_seconds == 0) return;
    time_.in(2 * setting_.relay_dies_seconds * servers_.uniform(), [this] {
      site_.relay.reset();
      time_.in(5 * servers_.uniform(), [this] { start_relay(); });
    });
  }

  std::unique_ptr<SocketLayer> secured(std::unique_ptr<SocketLayer> sockets) {
    return setting_.secure != nullptr ? setting_.secure->secure(std::move(sockets)) : std::move(sockets);
  }

  // Runs one server process.
  void life() {
    Journal journal(disk_, setting_.durability);
    const bool may_die = end_.server_deaths < 8;
    if (setting_.calls_between_deaths > 0 && may_die)
      disk_.crash_at = disk_.calls() + servers_.below(2 * setting_.calls_between_deaths);
    try {
      const Result<bool> found = journal.recover(
          {.snapshot = [&](std::span<const Section> s) { return load(s, journal); },
           .record =
               [&](std::string_view record) {
                 if (const auto join = peek_note(record)) return read_late_join(*join, metadata_.table);
                 const std::vector<std::uint64_t> before = progress_.committed;
                 if (!durable_->replay(record)) return false;
                 if (twin_ && progress_.round > twin_->rounds())  // the server died before the check
                   twin_->round_between(before, progress_.committed);
                 if (asynchronous_twin_ && progress_.round > asynchronous_twin_->steps())
                   asynchronous_twin_->step_between(before, progress_.committed, server_->save());
                 return true;
               }});
      if (!found) throw std::runtime_error(found.error().message);
      if (*found && progress_.round < committed_)
        throw std::runtime_error("round " + std::to_string(committed_) + " was announced, but it is lost");
      check_numbers(metadata_.table);
      if (talks_)
        std::printf("%9.3f a server begins%s, round %u, stage %d\n", time_.now(), *found ? " again" : "",
                    progress_.round, static_cast<int>(stage_));
      all_heard_ = false;
      if (*found && stage_ == RunStage::kOver) {
        all_heard_ = true;
        return;
      }
      auto sockets =
          std::make_unique<SimulatedSockets>(time_, random_, setting_.link_faults, current_server_);
      if (setting_.events_between_deaths > 0 && may_die)
        sockets->events_left = servers_.below(2 * setting_.events_between_deaths);
      serve(*found, journal, std::move(sockets));
    } catch (const SimulatedCrash&) {
    } catch (const std::exception& error) {
      end_.trouble = error.what();
    }
  }

  void serve(bool resumed, Journal& journal, std::unique_ptr<SimulatedSockets> sockets) {
    SessionManagerOptions options;
    options.clients = kClients;
    options.start_with = setting_.start_with;
    options.record_join = [this](ClientId client, const ClientInfo& info, bool by_part) {
      const Status noted = durable_->append_note(write_late_join(client, info, by_part));
      if (noted) give_number(info.name, client);
      return noted;
    };
    options.experiment = pack_experiment(loaded_.experiment);
    options.table = resumed ? metadata_.table : ClientTable(kClients);
    options.log = [this](const std::string& line) {
      if (talks_) std::printf("%9.3f %s\n", time_.now(), line.c_str());
    };
    options.receive_budget_bytes = setting_.receive_budget_bytes;
    options.normalize = normalize_of(loaded_.experiment);
    if (resumed) options.normalization = metadata_.normalization;
    if (setting_.secure != nullptr) options.authenticator = &setting_.secure->authenticator();
    SessionManager session_manager(options, secured(std::move(sockets)));
    try {
      if (!resumed) {
        session_manager.gather(std::chrono::hours(10));
        plan_ = plan_of_joins(loaded_, session_manager.table());
        metadata_ = {plan_.asked, plan_.experiment, start_frame(plan_, servers_.below(1u << 30)),
                     session_manager.table(), session_manager.normalization()};
        make(journal);
      }
      end_.normalization = metadata_.normalization;
      durable_->ask_metadata([&] {
        metadata_.table = session_manager.table();
        return save_metadata(metadata_);
      });
      durable_->refresh_metadata();
      if (stage_ == RunStage::kRounds) durable_->begin();
      for (ClientId c = 0; c < kClients; ++c)
        if (metadata_.table.joined(c)) give_number(metadata_.table.info(c).name, c);
      rounds(session_manager, options.log);
      all_heard_ = session_manager.finish(std::chrono::seconds(20));
      if (all_heard_) durable_->end(RunStage::kOver, Outcome::kFinished);
    } catch (const SimulatedCrash&) {
      current_server_.machine_died = setting_.durability == Durability::kPower;
      throw;
    }
  }

  void rounds(SessionManager& session_manager, const std::function<void(const std::string&)>& log) {
    TcpTransport<double> transport(session_manager, codec_context(*run_context_, {}), metadata_.start,
                                   takes_sums(*run_context_));
    RoundLimits limits;
    limits.rounds = kRounds;
    limits.evaluate_every = stage_ == RunStage::kRounds ? 5 : 0;  // later, clients may have ended
    limits.deadline_seconds = 30;
    limits.attempts = 1000;
    limits.quorum = setting_.quorum;
    limits.over_selection = setting_.over_selection;
    LoopHooks<double> hooks;
    hooks.on_note = log;
    hooks.before_apply = [this] { durable_->before_apply(); };
    hooks.on_commit = [&](const RoundCommit<double>& commit) {
      for (const auto& up : commit.replies)
        if (std::none_of(numbers_.begin(), numbers_.end(),
                         [&](const auto& n) { return n.second == up.client; }))
          throw std::runtime_error("client " + std::to_string(up.client) + " counts before it has joined");
      durable_->commit(commit);
      if (asynchronous_twin_) {
        committed_ = commit.progress.round;
        if (time_.now() > kLongestRunSeconds) throw std::runtime_error("the run does not end");
        asynchronous_twin_->check(*server_, commit);
      } else if (has_quorum()) {
        check_against_twin(commit);
      } else {
        check(commit.progress);
      }
    };
    hooks.on_over = [&](Outcome) {
      durable_->refresh_metadata();
      if (stage_ == RunStage::kRounds) durable_->end(RunStage::kNotifyingClients, Outcome::kFinished);
    };
    if (asynchronous_twin_) {
      limits.rounds = kSteps;
      WitnessedTransport witnessed(transport, *asynchronous_twin_);
      run_rounds<double>(*server_, traits_of(*run_context_), *run_context_, witnessed, progress_, limits,
                         hooks);
      return;
    }
    run_rounds<double>(*server_, traits_of(*run_context_), *run_context_, transport, progress_, limits,
                       hooks);
    end_.bytes_in_chunks += transport.bytes_in_chunks();
  }

  // Remembers the number that a client was told.
  void give_number(const std::string& name, ClientId number) {
    const auto [known, is_new] = numbers_.emplace(name, number);
    end_.late_joins += is_new && progress_.round > 0 ? 1 : 0;
    if (known->second != number) throw std::runtime_error(name + " got another number");
  }
  // Checks that a server knows the clients that earlier ones have told their numbers.
  void check_numbers(const ClientTable& table) const {
    for (const auto& [name, number] : numbers_)
      if (!table.joined(number) || table.info(number).name != name)
        throw std::runtime_error("a server has forgotten that " + name + " is client " +
                                 std::to_string(number));
  }

  bool has_quorum() const { return setting_.quorum < 1 || setting_.over_selection > 0; }

  // Checks a commit with a quorum. Which clients are fast may change the state only by which replies are
  // used.
  void check_against_twin(const RoundCommit<double>& commit) {
    committed_ = commit.progress.round;
    if (time_.now() > kLongestRunSeconds) throw std::runtime_error("the run does not end");
    twin_->round_of(commit.replies);
    end_.fewest_replies = std::min(end_.fewest_replies, commit.replies.size());
    const bool added = setting_.relay_adds && takes_sums(*run_context_);
    if (added ? difference_of(twin_->model()) <= 1e-9 : server_->save() == twin_->state()) return;
    throw std::runtime_error("after round " + std::to_string(committed_) +
                             " the state is not that of a federation in which the same clients answered");
  }
  // Returns the largest difference between the model and `expected`, relative to the largest entry of
  // `expected`.
  double difference_of(View<double> expected) const {
    double difference = 0, size = 0;
    for (std::size_t j = 0; j < expected.size(); ++j) {
      difference = std::max(difference, std::abs(server_->model()[j] - expected[j]));
      size = std::max(size, std::abs(expected[j]));
    }
    return size > 0 ? difference / size : difference;
  }

  // Checks, after every committed round, that nothing was lost, added twice or counted differently.
  void check(const RunProgress& progress) {
    committed_ = progress.round;
    if (time_.now() > kLongestRunSeconds) throw std::runtime_error("the run does not end");
    if (quiet_ == nullptr) {
      end_.states.push_back(server_->save());
      end_.models.emplace_back(server_->model().begin(), server_->model().end());
      end_.totals.push_back(progress.totals);
      return;
    }
    const std::string where = "after round " + std::to_string(progress.round) + " ";
    const RunTotals &a = progress.totals, &b = quiet_->totals.at(progress.round - 1);
    if (setting_.relay_adds && takes_sums(*run_context_)) return check_sums(where, a, b);
    if (server_->save() != quiet_->states.at(progress.round - 1))
      throw std::runtime_error(where + "the state of the algorithm differs");
    if (a.bits_up != b.bits_up || a.bits_down != b.bits_down || a.bytes_up != b.bytes_up ||
        a.bytes_down != b.bytes_down || a.grad_calls != b.grad_calls)
      throw std::runtime_error(where + "the counts of bits and bytes differ");
  }

  // Checks a run with sums of replies. They are rounded in a different order, and need fewer bytes.
  void check_sums(const std::string& where, const RunTotals& a, const RunTotals& b) {
    end_.took_sums = end_.took_sums || a.bytes_up < b.bytes_up;
    if (!(difference_of(quiet_->models.at(committed_ - 1)) <= 1e-9))
      throw std::runtime_error(where + "the model differs");
    if (a.bits_down != b.bits_down || a.bytes_down != b.bytes_down || a.grad_calls != b.grad_calls ||
        a.replies != b.replies || a.bytes_up > b.bytes_up)
      throw std::runtime_error(where + "the counts of bytes differ");
  }

  bool load(std::span<const Section> sections, Journal& journal) {
    const auto said = snapshot_metadata(sections);
    if (!said) return false;
    Result<RunMetadata> metadata = load_metadata(said->metadata);
    if (!metadata) return false;
    metadata_ = std::move(*metadata);
    stage_ = said->stage;
    plan_ = plan_of_snapshot(metadata_.asked, metadata_.resolved, metadata_.table);
    make(journal);
    return durable_->load(sections);
  }

  void make(Journal& journal) {
    run_context_ = make_run_context<double>(plan_, Role::kServer);
    durable_.reset();
    server_ = make_server<double>(run_context_);
    if (traits_of(*run_context_).asynchronous) {
      if (!asynchronous_twin_)
        asynchronous_twin_ = std::make_unique<AsynchronousTwin>(run_context_, plan_.experiment);
    } else if (has_quorum() && !twin_) {
      twin_ = std::make_unique<TwinFederation>(run_context_, plan_.experiment, plan_.schema);
    }
    progress_ = {};
    durable_ = std::make_unique<RunStore<double>>(
        journal, background_, codec_context(*run_context_, {}), *server_, progress_, save_metadata(metadata_),
        SnapshotPolicy{.records = 5, .bytes_beyond_state = 1 << 20});
  }

  const LoadedExperiment& loaded_;
  const Setting setting_;
  const End* const quiet_;
  SimulatedTime time_;
  CurrentServer current_server_;
  Random random_, servers_;
  SimulatedDisk disk_;
  const bool talks_;
  std::vector<std::unique_ptr<SimulatedPeer>> peers_;

  LazyBackground background_;
  RunMetadata metadata_;
  RunStage stage_ = RunStage::kRounds;
  RunPlan plan_;
  std::shared_ptr<const RunContext<double>> run_context_;
  std::unique_ptr<ServerAlgorithm<double>> server_;
  RunProgress progress_;
  std::unique_ptr<RunStore<double>> durable_;
  std::unique_ptr<TwinFederation> twin_;                 // in a run with a quorum
  std::unique_ptr<AsynchronousTwin> asynchronous_twin_;  // for an asynchronous algorithm
  std::uint32_t committed_ = 0;
  std::map<std::string, ClientId> numbers_;  // the numbers that servers have told clients, by name
  bool all_heard_ = false;
  SimulatedSite site_;
  End end_;
};

inline LoadedExperiment experiment_of(const std::string& algorithm, const std::string& dim,
                                      const std::string& clients = "") {
  return parse_experiment("[problem]\nkind = \"quadratic\"\ndim = " + dim +
                              "\nheterogeneity = 0.7\n[clients]\ncount = " + std::to_string(kClients) + "\n" +
                              clients + "[algorithm]\n" + algorithm,
                          "simulation.toml");
}

// Returns a setting between calm and wild, which the seed decides.
inline Setting setting_of(std::uint64_t seed, bool is_private) {
  Random random(seed, "setting");
  const auto share = [&](double largest) { return random.below(3) == 0 ? 0 : largest * random.uniform(); };
  Setting s;
  s.link_faults.delay_seconds = random.uniform();
  s.link_faults.cut = share(0.1);
  s.link_faults.silent = share(0.02);
  s.link_faults.stalled = share(0.05);
  s.link_faults.window_bytes = std::size_t{512} << random.below(9);
  s.habits.dies = share(0.1);
  s.habits.remembers = is_private || random.below(2) == 0;
  s.habits.disk_lost = is_private ? 0 : share(0.5);
  s.habits.compute_seconds = share(20);
  s.habits.reading_seconds = share(2);
  s.durability = random.below(2) == 0 ? Durability::kProcess : Durability::kPower;
  if (random.below(2) == 0) s.events_between_deaths = 100 + random.below(2000);
  if (random.below(2) == 0) s.calls_between_deaths = 10 + random.below(60);
  if (random.below(2) == 0) s.through_relay = 1 + static_cast<std::uint32_t>(random.below(kClients));
  if (s.through_relay > 0) s.link_faults.cut /= 3;  // a break hits all clients of the relay
  if (random.below(2) == 0) s.relay_dies_seconds = 200 + 1000 * random.uniform();
  s.relay_adds = random.below(2) == 0;
  constexpr std::size_t kAtOnce[] = {0, 1, 100};
  s.habits.bytes_at_once = kAtOnce[seed % 3];
  return s;
}

}  // namespace gradwire
