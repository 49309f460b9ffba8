// A writer of the run history. Its functions hold a lock for a moment and do not wait for the disk, except
// settle(). If the database fails, the run continues.
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
#include "fl_server/run_history/run_history_file.h"
#include "fl_server/sessions/session_manager.h"
#include "rounds/round_loop.h"

namespace gradwire {

class RunHistory final : public SessionObserver {
 public:
  // Limit on the number of rounds that wait for the writer; further ones displace the oldest.
  static constexpr std::size_t kMostRounds = 65'536;

  // Opens the file; waits a tenth of a second for the lock of another program. `log` takes one line for each
  // kind of failure, on the thread that calls the functions below; it may be empty.
  RunHistory(const std::filesystem::path& file, Durability durability, RunHistoryRun run, Log log);
  // Writes the remaining changes, for at most two seconds.
  ~RunHistory() override;

  void began(std::size_t dim);              // all clients have joined
  void resumed_after(std::uint32_t round);  // resumes the run of an earlier process
  // Waits until all changes so far are written or have failed, for at most `most`. Must be called before the
  // journal of a recovered run discards the rounds that it replayed.
  void settle(std::chrono::milliseconds most);
  // Records a committed round and the clients whose replies it used. A round that the file has already is
  // written again, but its replies are not counted twice.
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
  // Wakes the writer; must be called before a change is added. A writer that is busy or rests between batches
  // sees the change by itself.
  void wake_writer() {
    if (!anything()) wake_.notify_one();
  }

  const RunHistoryRun run_;
  const Log log_;
  RunHistoryFile file_;        // used only by the writer once it runs
  std::uint32_t counted_ = 0;  // rounds whose replies are counted in the file

  std::mutex mutex_;  // guards all members below
  std::condition_variable wake_, written_;
  bool writing_ = false, failed_ = false;  // a batch is being written; the last one failed
  bool flushing_ = false;                  // no rest between batches
  bool again_ = false;                     // changes other than rounds and clients are waiting
  RunHistoryBatch run_changes_;
  std::deque<RunHistoryRound> rounds_;
  std::uint64_t left_out_ = 0;             // rounds dropped since the last batch
  std::vector<RunHistoryClient> clients_;  // by number; their counts are those not yet written
  std::vector<ClientId> changed_;
  std::vector<char> is_changed_;    // by number
  std::set<std::string> troubles_;  // failures already logged
  std::vector<std::string> to_tell_;
  bool stop_ = false;
  std::thread writer_;
};

}  // namespace gradwire
