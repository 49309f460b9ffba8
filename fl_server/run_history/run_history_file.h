// registry.sqlite3: the clients of each run, and the cost of each round, for users and their queries. A model
// is never restored from it. docs/reference/registry.md describes its tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/core/message.h"
#include "base/result.h"
#include "fl_server/run_history/sqlite.h"
#include "storage/journal.h"

namespace gradwire {

inline constexpr const char* kRunHistoryName = "registry.sqlite3";  // in the --state folder

// The facts about a run that are known before its first client joins.
struct RunHistoryRun {
  std::string id;  // 16 hexadecimal digits
  std::string name, algorithm;
  std::uint32_t clients = 0;  // n
  std::string folder;         // the --state folder, absolute
};

// The state after a round. A number is cumulative if it is cumulative in metrics.csv.
struct RunHistoryRound {
  std::uint32_t round = 0;
  bool evaluation = false;  // if true, only loss, grad_norm_sq and accuracy are set
  double seconds = 0;
  std::uint32_t replies = 0;          // used in this round
  double bits_up = 0, bits_down = 0;  // per client on average
  std::uint64_t bytes_up = 0, bytes_down = 0;
  double loss = 0;
  std::optional<double> grad_norm_sq = std::nullopt, accuracy = std::nullopt;
};

struct RunHistoryClient {
  ClientId number = 0;
  std::string name, peer, build, kernels;
  std::uint64_t samples = 0;
  bool connected = false;
  // Times are UTC, as in 2026-01-31T12:00:00.000Z. Empty if never.
  std::string first_joined, last_joined, last_lost, why_lost;
  // In a batch these are counts since the last batch.
  std::uint64_t times_joined = 0, times_lost = 0;
  std::uint64_t replies_used = 0;
  std::uint64_t replies_unused = 0;  // late, or from a round that the algorithm did not use
};

// The changes since the last batch.
struct RunHistoryBatch {
  // Set if the server was restarted: no client is connected, and rounds after this one run again.
  std::optional<std::uint32_t> resumed_after;
  std::optional<std::size_t> dim;  // d, once the clients have reported it
  std::vector<RunHistoryRound> rounds;
  std::vector<RunHistoryClient> clients;  // clients that changed
  std::optional<std::uint32_t> round;     // rounds done
  std::string outcome;                    // empty unless the run has ended
};

class RunHistoryFile {
 public:
  // Serves one run. Does not open the file yet.
  RunHistoryFile(std::filesystem::path file, Durability durability, RunHistoryRun run);
  ~RunHistoryFile();

  // Returns the last round of the run in the file, or 0. Returns an error if the file cannot be read now.
  Result<std::uint32_t> rounds();
  // Writes a batch in one transaction; after an error nothing is written. Opens the file first if necessary.
  Status write(const RunHistoryBatch& batch);
  // Returns true if the last error was another program's lock, which may be temporary.
  bool locked() const { return locked_; }
  // Returns one line about a damaged file that was set aside, once; then an empty string.
  std::string take_note() { return std::exchange(note_, {}); }

 private:
  Status open();
  Status try_open();
  void make_tables();
  void write_run(const RunHistoryBatch& batch);
  void write_rows(const RunHistoryBatch& batch);
  void write_end(const RunHistoryBatch& batch);
  Status failed();
  Status set_aside(const std::string& why);

  const std::filesystem::path file_;
  const Durability durability_;
  const RunHistoryRun run_;
  std::unique_ptr<Database> database_;
  bool was_set_aside_ = false, suspect_ = false, locked_ = false;
  std::string damage_;  // found while opening
  std::string note_;
};

// Return values in the form of the tables: the current time, the id of a run, the folder of a run.
std::string run_history_time();
std::string run_history_id(std::uint64_t run);
std::string run_history_folder(const std::filesystem::path& state);

// A run as recorded in the run history.
struct RunHistoryContent {
  std::string id, began, ended, outcome;
  std::vector<RunHistoryClient> clients;  // ascending numbers
};
// Returns the run `id`, or the last run of the folder if `id` is empty, or nullopt if there is none. Only
// reads, so it works while a server writes and in read-only folders.
Result<std::optional<RunHistoryContent>> read_run_history(const std::filesystem::path& file,
                                                          const std::string& id, const std::string& folder);

}  // namespace gradwire
