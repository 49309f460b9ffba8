// Tests of the real journal, round loop and clients on a simulated disk. Servers die in the middle of any
// call.
#include "storage/run_store.h"

#include <chrono>
#include <gtest/gtest.h>
#include <thread>

#include "proto/wire/codec_context.h"
#include "storage/folder_disk.h"
#include "tests/algorithms/every_algorithm.h"
#include "tests/simulated/lazy_background.h"
#include "tests/storage/simulated_disk.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::spec_for;

struct Life {
  Durability durability = Durability::kProcess;
  std::uint64_t seed = 0;
  std::uint64_t calls_between_crashes = 0;  // average; 0 means none
  bool announces_before_durable = false;    // a planted bug
};

template <class Real>
struct Death {
  std::string state;  // state of the algorithm at the end
  RunProgress progress;
  int crashes = 0;
  bool regressed = false;  // a round was lost after a client had been told of it
};

// Runs servers on one disk, one after the other, until one has done `rounds` rounds. The clients live on.
template <class Real>
Death<Real> live(const Federation<Real>& federation, std::shared_ptr<const RunContext<Real>> run_context,
                 std::uint32_t rounds, const Life& life) {
  Death<Real> death;
  SimulatedDisk disk(life.seed);
  Random random(life.seed, "crashes");
  FaultSimulation<Real> clients(run_context, federation.oracle_pointers(), {});
  const AlgorithmTraits& traits = find_algorithm(run_context->algorithm.name).traits;
  RoundLimits limits;
  limits.rounds = rounds;
  limits.evaluate_every = 7;
  std::uint32_t announced = 0;
  for (;;) {
    LazyBackground background;
    auto server = make_server<Real>(run_context);
    RunProgress progress;
    Journal journal(disk, life.durability);
    SnapshotPolicy policy{.records = 6, .bytes_beyond_state = 1 << 20};
    RunStore<Real> durable(journal, background, codec_context(*run_context, {}), *server, progress, "about",
                           policy);
    LoopHooks<Real> hooks;
    hooks.before_apply = [&] { durable.before_apply(); };
    hooks.on_commit = [&](const RoundCommit<Real>& commit) {
      if (life.announces_before_durable) announced = commit.progress.round;
      durable.commit(commit);
      announced = commit.progress.round;
    };
    if (life.calls_between_crashes > 0 && death.crashes < 12)
      disk.crash_at = disk.calls() + random.below(2 * life.calls_between_crashes);
    try {
      const Result<bool> found =
          journal.recover({.snapshot = [&](std::span<const Section> s) { return durable.load(s); },
                           .record = [&](std::string_view record) { return durable.replay(record); }});
      EXPECT_TRUE(found) << (found ? "" : found.error().message);
      if (!found) return death;
      death.regressed |= progress.round < announced;
      durable.begin();
      run_rounds<Real>(*server, traits, *run_context, clients, progress, limits, hooks);
      durable.end(RunStage::kOver, Outcome::kFinished);
      death.state = server->save();
      death.progress = progress;
      return death;
    } catch (const SimulatedCrash&) {
      death.crashes += 1;
      life.durability == Durability::kPower ? disk.lose_power() : disk.lose_process();
    }
  }
}

template <class Real>
void expect_same_end(const Death<Real>& got, const Death<Real>& want, const std::string& what) {
  EXPECT_FALSE(got.regressed) << what << ": a round that was announced was lost";
  EXPECT_EQ(got.state, want.state) << what;
  EXPECT_EQ(got.progress.round, want.progress.round) << what;
  EXPECT_EQ(got.progress.totals.bits_up, want.progress.totals.bits_up) << what;
  EXPECT_EQ(got.progress.totals.bytes_up, want.progress.totals.bytes_up) << what;
  EXPECT_EQ(got.progress.totals.bytes_down, want.progress.totals.bytes_down) << what;
}

template <class Real>
void deaths_change_nothing(std::uint64_t seeds) {
  const Federation<Real> federation(5, 9);
  int crashes = 0;
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    const auto run_context = federation.run_context(spec_for(algorithm));
    run_context->keep_client_state_replicas = true;
    const auto undisturbed = live<Real>(federation, run_context, 40, {});
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      for (const Durability durability : {Durability::kProcess, Durability::kPower}) {
        const auto disturbed = live<Real>(federation, run_context, 40, {durability, seed, 25});
        EXPECT_EQ(disturbed.progress.totals.grad_calls, undisturbed.progress.totals.grad_calls)
            << algorithm.traits.name;
        expect_same_end(disturbed, undisturbed,
                        std::string(algorithm.traits.name) + ", seed " + std::to_string(seed));
        crashes += disturbed.crashes;
      }
    }
  }
  EXPECT_GT(crashes, static_cast<int>(testing::synchronous_algorithms().size() * seeds));
}

TEST(RunStore, ServerDeathsChangeNoBitOfAnyAlgorithmInDouble) { deaths_change_nothing<double>(12); }
TEST(RunStore, ServerDeathsChangeNoBitOfAnyAlgorithmInFloat) { deaths_change_nothing<float>(3); }

TEST(RunStore, FindsACommitAnnouncedBeforeItIsDurable) {
  const Federation<double> federation(5, 9);
  const auto run_context = federation.run_context(testing::spec_of("ef21", "topk:k=2"));
  run_context->keep_client_state_replicas = true;
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    found += live<double>(federation, run_context, 40,
                          {.seed = seed, .calls_between_crashes = 25, .announces_before_durable = true})
                 .regressed;
  EXPECT_GT(found, 0);
}

void write_snapshots_by_a_thread(std::size_t dim) {
  const Federation<double> federation(5, dim);
  const auto run_context = federation.run_context(testing::spec_of("ef21", "topk:k=2"));
  const AlgorithmTraits& traits = find_algorithm("ef21").traits;
  const std::uint32_t rounds = dim > 1000 ? 8 : 60;
  const TemporaryFolder folder;
  FolderDisk disk(folder.path());
  const auto context = codec_context(*run_context, {});
  RoundLimits limits;
  limits.rounds = rounds;
  auto server = make_server<double>(run_context);
  RunProgress progress;
  {
    FaultSimulation<double> clients(run_context, federation.oracle_pointers(), {});
    Journal journal(disk, Durability::kProcess);
    const auto background = background_thread();
    RunStore<double> durable(journal, *background, context, *server, progress, "about", {.records = 1});
    durable.begin();
    LoopHooks<double> hooks;
    hooks.before_apply = [&] { durable.before_apply(); };
    hooks.on_commit = [&](const RoundCommit<double>& commit) { durable.commit(commit); };
    run_rounds<double>(*server, traits, *run_context, clients, progress, limits, hooks);
  }
  auto recovered = make_server<double>(run_context);
  RunProgress found;
  Journal journal(disk, Durability::kProcess);
  LazyBackground background;
  RunStore<double> durable(journal, background, context, *recovered, found, "about");
  std::uint32_t replayed = 0;
  ASSERT_TRUE(journal.recover(
      {.snapshot = [&](std::span<const Section> s) { return durable.load(s); },
       .record = [&](std::string_view record) { return ++replayed, durable.replay(record); }}));
  EXPECT_LT(replayed, rounds) << "no snapshot was written";
  EXPECT_EQ(recovered->save(), server->save());
  // The request ids of the last evaluation and of the shutdowns belong to no round.
  found.request_id = progress.request_id;
  EXPECT_EQ(save_progress(found), save_progress(progress));
}

TEST(RunStore, SnapshotsByAThreadDuringTheRoundsChangeNoBit) { write_snapshots_by_a_thread(9); }
// The thread writes the vectors directly from the algorithm's memory, while rounds change them.
TEST(RunStore, SnapshotsOfLongVectorsByAThreadChangeNoBit) { write_snapshots_by_a_thread(400'000); }

TEST(RunStore, AsksForTheMetadataOfASnapshot) {
  const Federation<double> federation(5, 9);
  const auto run_context = federation.run_context(testing::spec_of("ef21", "topk:k=2"));
  const TemporaryFolder folder;
  FolderDisk disk(folder.path());
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  LazyBackground background;
  const auto saved_metadata = [&] {
    Journal journal(disk, Durability::kProcess);
    std::string metadata;
    const auto found = journal.recover({.snapshot =
                                            [&](std::span<const Section> sections) {
                                              metadata = snapshot_metadata(sections)->metadata;
                                              return true;
                                            },
                                        .record = [](std::string_view) { return true; }});
    EXPECT_TRUE(found && *found);
    return metadata;
  };
  Journal journal(disk, Durability::kProcess);
  RunStore<double> store(journal, background, codec_context(*run_context, {}), *server, progress, "first");
  store.begin();
  EXPECT_EQ(saved_metadata(), "first");
  store.ask_metadata([] { return std::string("second"); });
  store.refresh_metadata();
  store.end(RunStage::kOver, Outcome::kFinished);
  EXPECT_EQ(saved_metadata(), "second");
}

// A run with its own disk.
class OnADisk {
 public:
  explicit OnADisk(const SnapshotPolicy& policy) : durable_(make(policy)) {}
  void run(std::uint32_t rounds, std::chrono::milliseconds apply_takes) {
    durable_->begin();
    LoopHooks<double> hooks;
    hooks.before_apply = [&] {
      durable_->before_apply();
      std::this_thread::sleep_for(apply_takes);
    };
    hooks.on_commit = [&](const RoundCommit<double>& commit) { durable_->commit(commit); };
    RoundLimits limits;
    limits.rounds = rounds;
    limits.evaluate_every = 0;
    run_rounds<double>(*server_, find_algorithm("ef21").traits, *run_context_, clients_, progress_, limits,
                       hooks);
  }
  // Starts the next process.
  void restart() {
    journal_ = std::make_unique<Journal>(disk, Durability::kProcess);
    server_ = make_server<double>(run_context_);
    progress_ = {};
    durable_ = make({});
    rounds_replayed = 0;
    const auto found =
        journal_->recover({.snapshot = [&](std::span<const Section> s) { return durable_->load(s); },
                           .record =
                               [&](std::string_view record) {
                                 rounds_replayed += !peek_end(record);
                                 return durable_->replay(record);
                               }});
    ASSERT_TRUE(found && *found);
  }
  RunStore<double>& durable() { return *durable_; }
  std::uint32_t round() const { return progress_.round; }

  SimulatedDisk disk{1};
  std::uint32_t rounds_replayed = 0;

 private:
  std::unique_ptr<RunStore<double>> make(const SnapshotPolicy& policy) {
    return std::make_unique<RunStore<double>>(*journal_, background_, codec_context(*run_context_, {}),
                                              *server_, progress_, "about", policy);
  }

  const Federation<double> federation_{5, 9};
  const std::shared_ptr<RunContext<double>> run_context_ =
      federation_.run_context(testing::spec_of("ef21", "topk:k=2"));
  FaultSimulation<double> clients_{run_context_, federation_.oracle_pointers(), {}};
  std::unique_ptr<Journal> journal_ = std::make_unique<Journal>(disk, Durability::kProcess);
  LazyBackground background_;
  std::unique_ptr<ServerAlgorithm<double>> server_ = make_server<double>(run_context_);
  RunProgress progress_;
  std::unique_ptr<RunStore<double>> durable_;
};

TEST(RunStore, KeepsNotesBetweenTheRounds) {
  const Federation<double> federation(5, 9);
  const auto run_context = federation.run_context(testing::spec_of("ef21", "topk:k=2"));
  SimulatedDisk disk(1);
  LazyBackground background;
  std::vector<std::string> notes;
  for (int life = 0; life < 3; ++life) {
    auto server = make_server<double>(run_context);
    RunProgress progress;
    Journal journal(disk, Durability::kProcess);
    RunStore<double> durable(journal, background, codec_context(*run_context, {}), *server, progress,
                             "about");
    notes.clear();
    const auto found =
        journal.recover({.snapshot = [&](std::span<const Section> s) { return durable.load(s); },
                         .record =
                             [&](std::string_view record) {
                               const auto note = peek_note(record);
                               if (note) notes.emplace_back(*note);
                               return note || durable.replay(record);
                             }});
    ASSERT_TRUE(found && *found == (life > 0));
    if (life == 2) break;
    if (life == 0) durable.begin();
    ASSERT_TRUE(durable.append_note("note " + std::to_string(life)));
    disk.lose_process();
  }
  EXPECT_EQ(notes, (std::vector<std::string>{"note 0", "note 1"}));
}

// A record after a torn one would never be read, so no round may follow a note that the disk did not take.
TEST(RunStore, CommitsNothingAfterATornNote) {
  const Federation<double> federation(5, 9);
  const auto run_context = federation.run_context(testing::spec_of("ef21", "topk:k=2"));
  SimulatedDisk disk(1);
  LazyBackground background;
  FaultSimulation<double> clients(run_context, federation.oracle_pointers(), {});
  auto server = make_server<double>(run_context);
  RunProgress progress;
  Journal journal(disk, Durability::kProcess);
  RunStore<double> durable(journal, background, codec_context(*run_context, {}), *server, progress, "about");
  durable.begin();
  disk.capacity = 0;
  EXPECT_FALSE(durable.append_note(std::string(100, 'n')));
  disk.capacity = SIZE_MAX;
  EXPECT_FALSE(durable.append_note("short"));
  RoundLimits limits;
  limits.rounds = 3;
  LoopHooks<double> hooks;
  hooks.before_apply = [&] { durable.before_apply(); };
  hooks.on_commit = [&](const RoundCommit<double>& commit) { durable.commit(commit); };
  EXPECT_THROW(run_rounds<double>(*server, find_algorithm("ef21").traits, *run_context, clients, progress,
                                  limits, hooks),
               std::runtime_error);
  EXPECT_THROW(durable.end(RunStage::kOver, Outcome::kFinished), std::runtime_error);
}

TEST(RunStore, WritesASnapshotIfApplyingTheRoundsAgainWouldTakeLong) {
  constexpr std::uint32_t kRounds = 60;
  for (const double apply_seconds : {1e9, 0.01}) {
    OnADisk run({.apply_seconds = apply_seconds});
    run.run(kRounds, std::chrono::milliseconds(2));
    run.restart();
    EXPECT_EQ(run.round(), kRounds);
    if (apply_seconds > 1) {
      EXPECT_EQ(run.rounds_replayed, kRounds);
    } else {
      EXPECT_LT(run.rounds_replayed, kRounds / 2);
    }
  }
}

TEST(RunStore, StaysOverIfItsLastSnapshotIsDamaged) {
  for (const RunStage stage : {RunStage::kNotifyingClients, RunStage::kOver}) {
    OnADisk run({});
    run.run(5, std::chrono::milliseconds(0));
    run.durable().end(RunStage::kNotifyingClients, Outcome::kReachedTarget);
    if (stage == RunStage::kOver) run.durable().end(stage, Outcome::kReachedTarget);
    std::string newest;
    const auto names = run.disk.list();
    for (const std::string& name : *names)
      if (name.starts_with("ckpt-")) newest = std::max(newest, name);
    run.disk.contents(newest).resize(30);
    run.restart();
    EXPECT_EQ(run.durable().stage().stage, stage) << newest;
    EXPECT_EQ(run.durable().stage().outcome, Outcome::kReachedTarget);
    EXPECT_EQ(run.round(), 5u);
    run.run(8, std::chrono::milliseconds(0));  // the run gets more rounds
    run.restart();
    EXPECT_EQ(run.durable().stage().stage, RunStage::kRounds);
    EXPECT_EQ(run.round(), 8u);
  }
}

TEST(RunStore, CommitsNothingWhileTheAlgorithmMayStillBeCopied) {
  const Federation<double> federation(5, 9);
  const auto run_context = federation.run_context(testing::spec_of("gd"));
  FaultSimulation<double> clients(run_context, federation.oracle_pointers(), {});
  SimulatedDisk disk(1);
  Journal journal(disk, Durability::kProcess);
  LazyBackground background;
  auto server = make_server<double>(run_context);
  RunProgress progress;
  RunStore<double> durable(journal, background, codec_context(*run_context, {}), *server, progress, "about",
                           {.records = 1});
  durable.begin();
  LoopHooks<double> hooks;  // without before_apply
  hooks.on_commit = [&](const RoundCommit<double>& commit) { durable.commit(commit); };
  RoundLimits limits;
  limits.rounds = 3;
  EXPECT_THROW(run_rounds<double>(*server, find_algorithm("gd").traits, *run_context, clients, progress,
                                  limits, hooks),
               std::logic_error);
}

// A simulation that writes a snapshot at each commit. Its journal outlives it.
struct SnapshotEveryCommit {
  SnapshotEveryCommit(const Federation<double>& federation,
                      std::shared_ptr<const RunContext<double>> run_context, Journal& journal, Log note = {})
      : clients(run_context, federation.oracle_pointers(), {}),
        server(make_server<double>(run_context)),
        store(journal,
              {.seconds = 0,
               .save_clients = [this] { return clients.save_clients(progress.committed); },
               .load_clients = [this](std::string_view bytes) { return clients.load_clients(bytes); }},
              *server, progress, "about", std::move(note)),
        run_context_(std::move(run_context)) {
    progress.committed.resize(run_context_->n);
  }
  void run(std::uint32_t rounds) {
    LoopHooks<double> hooks;
    hooks.on_commit = [this](const RoundCommit<double>& commit) { store.commit(commit); };
    RoundLimits limits;
    limits.rounds = rounds;
    limits.evaluate_every = 0;
    limits.keep_clients = true;
    run_rounds<double>(*server, traits_of(*run_context_), *run_context_, clients, progress, limits, hooks);
  }

  FaultSimulation<double> clients;
  std::unique_ptr<ServerAlgorithm<double>> server;
  RunProgress progress;
  RunStore<double> store;

 private:
  const std::shared_ptr<const RunContext<double>> run_context_;
};

TEST(RunStore, HoldsServerAndClientsOfASimulation) {
  const Federation<double> federation(5, 9);
  const auto run_context = federation.run_context(testing::spec_of("ef21", "topk:k=2"));
  SimulatedDisk disk(1), another_disk(2);
  Journal journal(disk, Durability::kProcess), another_journal(another_disk, Durability::kProcess);
  SnapshotEveryCommit first(federation, run_context, journal),
      quiet(federation, run_context, another_journal);
  first.run(20);
  disk.lose_process();

  Journal found(disk, Durability::kProcess);
  SnapshotEveryCommit second(federation, run_context, found);
  const Result<bool> recovered = found.recover(
      {.snapshot = [&](std::span<const Section> sections) { return second.store.load(sections); },
       .record = [](std::string_view record) { return record.empty(); }});
  ASSERT_TRUE(recovered && *recovered);
  EXPECT_TRUE(second.store.recovered());
  EXPECT_EQ(second.progress.round, 20u);
  second.run(40);
  quiet.run(40);
  EXPECT_EQ(second.server->save(), quiet.server->save());
  EXPECT_EQ(second.clients.save_clients(second.progress.committed),
            quiet.clients.save_clients(quiet.progress.committed));
}

TEST(RunStore, WarnsOfAFailedSnapshotOfASimulationAndContinues) {
  const Federation<double> federation(5, 9);
  const auto run_context = federation.run_context(testing::spec_of("ef21", "topk:k=2"));
  SimulatedDisk disk(1);
  Journal journal(disk, Durability::kProcess);
  std::vector<LogLine> lines;
  SnapshotEveryCommit run(federation, run_context, journal,
                          [&](const LogLine& line) { lines.push_back(line); });
  run.store.before_snapshots([&]() -> Status {
    if (run.progress.round == 3) return Error{"the disk is full"};
    return Unit{};
  });
  run.run(6);
  EXPECT_EQ(run.progress.round, 6u);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].text, "no checkpoint of round 3: the disk is full");
  EXPECT_EQ(lines[0].level, LogLevel::kWarning);
  EXPECT_EQ(lines[0].round, 3u);
}

}  // namespace
}  // namespace gradwire
