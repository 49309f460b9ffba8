// What survives a run's process. Of a server every committed round: it is in the journal before any client is
// told, and from time to time a snapshot, written while the rounds go on, keeps the journal short. Of a
// simulation a snapshot from time to time, with the states of its clients.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/log.h"
#include "rounds/round_loop.h"
#include "storage/journal.h"
#include "storage/round_record.h"

namespace gradwire {

// Runs the two steps of a job on a thread of its own, one job at a time: while the first one runs, nothing
// that it reads may change. A simulation runs them when it wants.
class Background {
 public:
  virtual ~Background() = default;
  // REQUIRES: not busy(). Throws std::system_error when no thread can be made.
  virtual void start(std::function<void()> look, std::function<void()> write) = 0;
  virtual void wait_looked() = 0;  // until the first step of the last job is over
  virtual bool busy() const = 0;
  virtual void wait() = 0;  // until not busy()
};
std::unique_ptr<Background> background_thread();

// When the journal is long enough for a snapshot.
struct SnapshotPolicy {
  std::uint64_t records = 4096;
  std::uint64_t bytes_beside_state = std::uint64_t{64} << 20;  // beyond the bytes of the state
  double apply_seconds = 3;  // that a restart would take to apply the rounds again; or four times as long as
                             // the last snapshot took, if that is more
};

enum class RunStage : char {
  kRounds = 0,            // rounds are left
  kNotifyingClients = 1,  // the results are written; some clients may not have heard that the run is over
  kOver = 2,
};

// Where a run is, and how it ended where no rounds are left.
struct RunEnd {
  RunStage stage = RunStage::kRounds;
  Outcome outcome = Outcome::kStopped;
};
// Reads a record that end() wrote; nothing: the record is of a round.
std::optional<RunEnd> peek_end(std::string_view record);

// Of a run whose clients live in its process.
struct SimulationSnapshots {
  double seconds = 30;  // from one to the next, about; infinity: none
  std::function<std::string()> save_clients;
  std::function<bool(std::string_view)> load_clients;  // false: save_clients() did not write it
  // Asked after each round; empty: RunStore::is_due() says it.
  std::function<bool()> is_due = {};
};

template <class Real>
class RunStore {
 public:
  // Of a server. `metadata`: whatever else a restart must know. What is passed by
  // reference must outlive this.
  RunStore(Journal& journal, Background& background, const CodecContext& context,
           ServerAlgorithm<Real>& server, RunProgress& progress, std::string metadata,
           SnapshotPolicy policy = {}, Log note = {});
  // Of a simulation: what is committed after the last snapshot is done again. The run goes on where a
  // snapshot cannot be written, and `note` gets a warning.
  RunStore(Journal& journal, SimulationSnapshots snapshots, ServerAlgorithm<Real>& server,
           RunProgress& progress, std::string metadata, Log note = {});
  ~RunStore();

  // Readers for Journal::recover, to be used after snapshot_metadata() has told which run it is.
  bool load(std::span<const Section> sections);
  bool replay(std::string_view record);
  // Of what was recovered.
  bool recovered() const { return recovered_; }
  RunEnd stage() const { return stage_; }

  // Is called before each snapshot is written: makes durable what a snapshot relies on. Another thread may
  // call it while the rounds go on.
  void before_snapshots(std::function<Status()> make_durable) { make_durable_ = std::move(make_durable); }
  // Sets what commit() asks for the `metadata` of its snapshots, in place of the text that the constructor
  // got. begin() and end(), which may run on another thread, do not ask: call refresh_metadata() before them.
  void ask_metadata(std::function<std::string()> metadata) { ask_metadata_ = std::move(metadata); }
  void refresh_metadata() {
    if (ask_metadata_) metadata_ = ask_metadata_();
  }
  // Of a server: to be called before the first round of this process, of a new run or of a recovered one.
  // Request ids that an earlier process issued are never issued again, even if no record names them. Request
  // id numbers of a recovered run skip ahead by `jump`, a random number: after two starts from copies of one
  // folder the request ids differ, too. Throws std::runtime_error.
  static constexpr std::uint32_t kMostRequestIdJump = 1U << 24;
  void begin(std::uint32_t jump = 0);
  // LoopHooks::before_apply: a snapshot may read the algorithm until here.
  void before_apply();
  // LoopHooks::on_commit. REQUIRES: before_apply() since the last one. Of a server: throws std::runtime_error
  // when the disk fails; then only this round is lost, and no client knows of it.
  void commit(const RoundCommit<Real>& commit);
  // Writes a snapshot of a simulation if one is due.
  void snapshot_if_due();
  // Of a simulation: `seconds` have passed since the last snapshot.
  bool is_due() const {
    return std::chrono::duration<double>(Clock::now() - last_snapshot_).count() >= simulation_.seconds;
  }
  // Writes a last snapshot; of a server after a record that says the same in case the snapshot is damaged,
  // and throws std::runtime_error when the disk fails.
  void end(RunStage stage, Outcome outcome);

 private:
  using Clock = std::chrono::steady_clock;
  struct Snapshot;
  // Holds all but the algorithm.
  std::shared_ptr<Snapshot> new_snapshot(RunStage stage, Outcome outcome = Outcome::kStopped) const;
  // Writes a snapshot before it returns; returns the bytes of the algorithm.
  std::size_t snapshot_now(RunStage stage, Outcome outcome = Outcome::kStopped);
  bool is_worth_a_snapshot() const;
  void snapshot_beside();
  void write_simulation_snapshot(RunStage stage, Outcome outcome = Outcome::kStopped);

  Journal& journal_;
  Background* const background_;  // null: of a simulation
  const SimulationSnapshots simulation_;
  ServerAlgorithm<Real>& server_;
  RunProgress& progress_;
  std::string metadata_;
  std::function<std::string()> ask_metadata_;  // may be empty
  const SnapshotPolicy policy_;
  const Log note_;
  std::function<Status()> make_durable_;       // may be empty
  std::optional<RoundRecords<Real>> records_;  // of a server
  bool recovered_ = false;
  std::size_t state_bytes_ = 0;  // of the last snapshot
  RunEnd stage_;
  Clock::time_point last_snapshot_ = Clock::now();  // of a simulation
  std::uint64_t records_since_ = 0, bytes_since_ = 0;
  double apply_seconds_since_ = 0;
  Clock::time_point apply_begun_ = Clock::now();
  std::shared_ptr<Snapshot>
      copying_;  // is written from the algorithm itself, beside the round; null: none is
  // How the last snapshot that was written beside the rounds went.
  struct Beside {
    std::optional<Error> failed;
    double seconds = 0;
  };
  const std::shared_ptr<Beside> beside_;
};

// The section of a snapshot with what save_clients() gave.
inline constexpr std::uint32_t kClientsSection = 5;

// Takes the state of the algorithm, the progress and, where load_clients is not empty, the clients from a
// snapshot. False: it is not one of this run.
template <class Real>
bool load_snapshot(std::span<const Section> sections, ServerAlgorithm<Real>& server, RunProgress& progress,
                   const std::function<bool(std::string_view)>& load_clients);

// What a snapshot says about its run.
struct SnapshotAbout {
  std::string metadata;
  RunStage stage = RunStage::kRounds;
  Outcome outcome = Outcome::kStopped;  // of a run that has no rounds left
  RunProgress progress;                 // without its list of clients
};
std::optional<SnapshotAbout> snapshot_metadata(std::span<const Section> sections);

}  // namespace gradwire
