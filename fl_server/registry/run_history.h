// Writes what happens in a run into the run history, beside the rounds: these calls hold a lock for a moment
// and never wait for the disk; if the database fails, the run goes on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "fl_server/hub/session_manager.h"
#include "fl_server/registry/run_history_file.h"
#include "rounds/round_loop.h"

namespace gradwire {

class RunHistory final : public SessionObserver {
 public:
  static constexpr std::size_t kMostRounds =
      65'536;  // that wait for the writer; if there are more, the oldest are left out

  // Opens the file; waits a tenth of a second for the lock of another program. log: one line per kind of
  // trouble, from whichever thread calls the functions below; may be empty.
  RunHistory(const std::filesystem::path& file, Durability durability, RunHistoryRun run, Log log);
  // Writes what is left, for two seconds at most.
  ~RunHistory() override;

  void began(std::size_t dim);              // all clients are there
  void goes_on_after(std::uint32_t round);  // continues a run of an earlier process
  // Waits until all that happened so far is written, or cannot be written, for `most` at most. To be called
  // before the journal of a recovered run discards the rounds that it has handed out.
  void settle(std::chrono::milliseconds most);
  // A committed round. `used`: whose replies it used. A round that is in the file already is written again,
  // but its replies are not counted again.
  void round_done(const RunProgress& progress, std::span<const ClientId> used);
  void evaluated(const RoundRecord& record);
  void reply_unused(ClientId client);
  void ended(const std::string& outcome);

  void client_joined(ClientId client, const ClientInfo& info, const std::string& peer) override;
  void client_gone(ClientId client, const std::string& why) override;

 private:
  RunHistoryClient& changed(ClientId client);
  void add_round(RunHistoryRound round);
  void tell_trouble();
  void write_batches();
  RunHistoryBatch take_batch();
  void forget(const RunHistoryBatch& written);
  bool anything() const { return again_ || !rounds_.empty() || !changed_.empty(); }
  // To be called before something is added. A writer that is busy, or rests between batches, looks by itself.
  void wake_writer() {
    if (!anything()) wake_.notify_one();
  }

  const RunHistoryRun run_;
  const Log log_;
  RunHistoryFile file_;        // of the writer, once it runs
  std::uint32_t counted_ = 0;  // rounds whose replies the file has

  std::mutex mutex_;  // of all below
  std::condition_variable wake_, written_;
  bool writing_ = false, failed_ = false;  // a batch is being written; the last one failed
  bool hurry_ = false;                     // no rest between batches
  bool again_ = false;                     // something beside rounds and clients is to be written
  RunHistoryBatch run_changes_;
  std::deque<RunHistoryRound> rounds_;
  std::uint64_t left_out_ = 0;             // rounds that did not fit, since the last batch
  std::vector<RunHistoryClient> clients_;  // by number; their counts are those not yet written
  std::vector<ClientId> changed_;
  std::vector<char> is_changed_;    // by number
  std::set<std::string> troubles_;  // that were told
  std::vector<std::string> to_tell_;
  bool stop_ = false;
  std::thread writer_;
};

}  // namespace gradwire
