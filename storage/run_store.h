// The durable state of a run. A server journals every round before a client learns of it, and truncates the
// journal with periodic snapshots, which it writes during the rounds. A simulation only takes periodic
// snapshots, with the states of its clients.
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

// Runs the two steps of a job on its own thread, one job at a time. During the first step, nothing that it
// reads may change. A simulated Background decides when the steps run.
class Background {
 public:
  virtual ~Background() = default;
  // Starts a job. REQUIRES: not busy(). Throws std::system_error if no thread can be created.
  virtual void start(std::function<void()> read, std::function<void()> write) = 0;
  virtual void wait_read() = 0;  // waits until the first step of the last job is done
  virtual bool busy() const = 0;
  virtual void wait() = 0;  // waits until not busy()
};
std::unique_ptr<Background> background_thread();

// The length of the journal that makes a snapshot worthwhile.
struct SnapshotPolicy {
  std::uint64_t records = 4096;
  std::uint64_t bytes_beyond_state = std::uint64_t{64} << 20;  // in addition to the bytes of the state
  // The time that a restart would take to apply the rounds again. The limit is the larger of this and four
  // times the time of the last snapshot.
  double apply_seconds = 3;
};

enum class RunStage : char {
  kRounds = 0,            // rounds are left
  kNotifyingClients = 1,  // the results are written; some clients may not know yet that the run is over
  kOver = 2,
};

// The stage of a run, and its outcome if no rounds are left.
struct RunEnd {
  RunStage stage = RunStage::kRounds;
  Outcome outcome = Outcome::kStopped;
};
// Reads a record of end(). Returns nullopt if the record is of a round.
std::optional<RunEnd> peek_end(std::string_view record);

// Reads a record of append_note(). Returns nullopt if the record is of a round or of end().
std::optional<std::string_view> peek_note(std::string_view record);

// The snapshots of a run whose clients live in its process.
struct SimulationSnapshots {
  double seconds = 30;  // approximate interval; infinity disables them
  std::function<std::string()> save_clients;
  // Returns false if save_clients() did not write the bytes.
  std::function<bool(std::string_view)> load_clients;
  // Returns whether a snapshot is due, after each round. If empty, RunStore::is_due() decides.
  std::function<bool()> is_due = {};
};

template <class Real>
class RunStore {
 public:
  // Makes the store of a server. `metadata` is everything else that a restart must know. References must
  // outlive this object.
  RunStore(Journal& journal, Background& background, const CodecContext& context,
           ServerAlgorithm<Real>& server, RunProgress& progress, std::string metadata,
           SnapshotPolicy policy = {}, Log note = {});
  // Makes the store of a simulation. Rounds after the last snapshot are computed again. If a snapshot cannot
  // be written, the run continues and `note` gets a warning.
  RunStore(Journal& journal, SimulationSnapshots snapshots, ServerAlgorithm<Real>& server,
           RunProgress& progress, std::string metadata, Log note = {});
  ~RunStore();

  // Readers for Journal::recover. Use them after snapshot_metadata() has identified the run.
  bool load(std::span<const Section> sections);
  bool replay(std::string_view record);
  // Return whether a state was recovered, and the stage of the run.
  bool recovered() const { return recovered_; }
  RunEnd stage() const { return stage_; }

  // Sets a function that is called before each snapshot is written, and makes durable what the snapshot
  // relies on. Another thread may call it during the rounds.
  void before_snapshots(std::function<Status()> make_durable) { make_durable_ = std::move(make_durable); }
  // Sets a function that returns the metadata of the snapshots that commit() makes, in place of the
  // constructor's text. begin() and end() may run on another thread and do not call it; call
  // refresh_metadata() before them.
  void ask_metadata(std::function<std::string()> metadata) { ask_metadata_ = std::move(metadata); }
  void refresh_metadata() {
    if (ask_metadata_) metadata_ = ask_metadata_();
  }
  // Prepares a server process for its first round, in a new or a recovered run. Request ids of an earlier
  // process are never issued again, even if no record names them. In a recovered run they skip ahead by
  // `jump`, a random number, so that request ids differ after two starts from copies of one folder. Throws
  // std::runtime_error.
  static constexpr std::uint32_t kMostRequestIdJump = 1U << 24;
  void begin(std::uint32_t jump = 0);
  // LoopHooks::before_apply. Copies what a snapshot still has to read from the algorithm.
  void before_apply();
  // LoopHooks::on_commit. REQUIRES: before_apply() since the last commit. In a server, throws
  // std::runtime_error if the disk fails; then only this round is lost, and no client knows of it.
  void commit(const RoundCommit<Real>& commit);
  // Appends a record that replay() does not take: its reader asks peek_note() first. The next snapshot's
  // metadata must contain what it says. If the disk fails, the next commit() throws, because a record after a
  // torn one would be lost. REQUIRES: begin() or end() is not running.
  Status append_note(std::string_view note);
  // Writes a snapshot of a simulation if one is due.
  void snapshot_if_due();
  // Returns whether `seconds` have passed since the last snapshot of a simulation.
  bool is_due() const {
    return std::chrono::duration<double>(Clock::now() - last_snapshot_).count() >= simulation_.seconds;
  }
  // Writes the last snapshot. A server first writes a record with the same content, in case the snapshot gets
  // damaged, and throws std::runtime_error if the disk fails.
  void end(RunStage stage, Outcome outcome);

 private:
  using Clock = std::chrono::steady_clock;
  struct Snapshot;
  // Returns a snapshot of everything except the algorithm.
  std::shared_ptr<Snapshot> new_snapshot(RunStage stage, Outcome outcome = Outcome::kStopped) const;
  // Writes a snapshot before it returns. Returns the size of the algorithm in bytes.
  std::size_t snapshot_now(RunStage stage, Outcome outcome = Outcome::kStopped);
  bool is_worth_a_snapshot() const;
  void start_snapshot();
  void write_simulation_snapshot(RunStage stage, Outcome outcome = Outcome::kStopped);

  Journal& journal_;
  Background* const background_;  // null in a simulation
  const SimulationSnapshots simulation_;
  ServerAlgorithm<Real>& server_;
  RunProgress& progress_;
  std::string metadata_;
  std::function<std::string()> ask_metadata_;  // may be empty
  const SnapshotPolicy policy_;
  const Log note_;
  std::function<Status()> make_durable_;       // may be empty
  std::optional<RoundRecords<Real>> records_;  // in a server
  Status noted_ = Unit{};                      // the error of the note that was not written
  bool recovered_ = false;
  std::size_t state_bytes_ = 0;  // size of the last snapshot
  RunEnd stage_;
  Clock::time_point last_snapshot_ = Clock::now();  // in a simulation
  std::uint64_t records_since_ = 0, bytes_since_ = 0;
  double apply_seconds_since_ = 0;
  Clock::time_point apply_begun_ = Clock::now();
  // A snapshot that is written from the algorithm's memory during the round. Null if there is none.
  std::shared_ptr<Snapshot> copying_;
  // The result of the last snapshot that was written during the rounds.
  struct BackgroundResult {
    std::optional<Error> failed;
    double seconds = 0;
  };
  const std::shared_ptr<BackgroundResult> background_result_;
};

// The section of a snapshot with the bytes of save_clients().
inline constexpr std::uint32_t kClientsSection = 5;

// Restores the algorithm, the progress and, if load_clients is not empty, the clients from a snapshot.
// Returns false if it is not from this run.
template <class Real>
bool load_snapshot(std::span<const Section> sections, ServerAlgorithm<Real>& server, RunProgress& progress,
                   const std::function<bool(std::string_view)>& load_clients);

// The description of a run in a snapshot.
struct SnapshotMetadata {
  std::string metadata;
  RunStage stage = RunStage::kRounds;
  Outcome outcome = Outcome::kStopped;  // outcome of a run without rounds left
  RunProgress progress;                 // without its list of clients
};
std::optional<SnapshotMetadata> snapshot_metadata(std::span<const Section> sections);

}  // namespace gradwire
