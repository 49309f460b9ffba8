// registry.sqlite3: who took part in which run, and what each round cost; for people and their queries. A
// model is never restored from it (docs/deployment.md describes its tables).
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
#include "fl_server/registry/sqlite.h"
#include "storage/journal.h"

namespace gradwire {

inline constexpr const char* kRunHistoryName = "registry.sqlite3";  // in the folder of --state

// What is known of a run before its first client joins.
struct RunHistoryRun {
  std::string id;  // 16 hexadecimal digits
  std::string name, algorithm;
  std::uint32_t clients = 0;  // n
  std::string folder;         // of --state, absolute
};

// After round k; a number is cumulative if it is cumulative in metrics.csv.
struct RunHistoryRound {
  std::uint32_t round = 0;
  bool evaluation = false;  // true: only loss, grad_norm_sq and accuracy
  double seconds = 0;
  std::uint32_t replies = 0;          // used in the round that led here
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
  // Times are UTC, as in 2026-01-31T12:00:00.000Z; empty: never.
  std::string first_joined, last_joined, last_lost, why_lost;
  // In a batch: counted since the batch before.
  std::uint64_t times_joined = 0, times_lost = 0;
  std::uint64_t replies_used = 0;
  std::uint64_t replies_unused = 0;  // late, or of a round that the algorithm did not use
};

// What happened since the batch before.
struct RunHistoryBatch {
  // The server was started again: nobody is connected, and rounds after this one will be done again.
  std::optional<std::uint32_t> goes_on_after;
  std::optional<std::size_t> dim;  // d, once the clients have said it
  std::vector<RunHistoryRound> rounds;
  std::vector<RunHistoryClient> clients;  // that changed
  std::optional<std::uint32_t> round;     // rounds done
  std::string outcome;                    // of a run that ended; empty: it goes on
};

class RunHistoryFile {
 public:
  // For one run. Does not open the file yet.
  RunHistoryFile(std::filesystem::path file, Durability durability, RunHistoryRun run);
  ~RunHistoryFile();

  // The last round of the run in the file; 0: none. An error when the file cannot be read now.
  Result<std::uint32_t> rounds();
  // One transaction: all of it, or nothing and an error. Opens the file first if needed.
  Status write(const RunHistoryBatch& batch);
  // The last error was another program's lock, which may be gone in a moment.
  bool locked() const { return locked_; }
  // One line about a damaged file that was set aside, once; else empty.
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

// As the tables write them: the time now, the number of a run, the folder of a run.
std::string run_history_time();
std::string run_history_id(std::uint64_t run);
std::string run_history_folder(const std::filesystem::path& state);

// A run as the run history has it.
struct RunHistorySeen {
  std::string id, began, ended, outcome;
  std::vector<RunHistoryClient> clients;  // ascending numbers
};
// The run `id`, or the last one of the folder if `id` is empty; nothing: the file has no such run. Only
// reads: also while a server writes, also where nothing can be written.
Result<std::optional<RunHistorySeen>> look_into_run_history(const std::filesystem::path& file,
                                                            const std::string& id, const std::string& folder);

}  // namespace gradwire
