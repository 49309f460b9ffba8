#include "fl_server/run_history/run_history.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace gradwire {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kBatchEvery{200};
// After a batch, the writer rests for this many times the time that the batch took.
constexpr int kRestPerWork = 10;
constexpr milliseconds kRetry{500};
constexpr milliseconds kLastTries{2000};
constexpr std::size_t kRoundsOfBatch = 8192;
constexpr std::uint32_t kUnknown = UINT32_MAX;

}  // namespace

RunHistory::RunHistory(const std::filesystem::path& file, Durability durability, RunHistoryRun run, Log log)
    : run_(std::move(run)),
      log_(std::move(log)),
      file_(file, durability, run_),
      clients_(run_.clients),
      is_changed_(run_.clients, 0) {
  for (ClientId client = 0; client < clients_.size(); ++client) clients_[client].number = client;
  const Result<std::uint32_t> counted = file_.rounds();
  // If the file cannot be read, replies of replayed rounds are not counted.
  counted_ = counted ? *counted : kUnknown;
  if (const std::string note = file_.take_note(); !note.empty()) to_tell_.push_back(note);
  if (!counted) to_tell_.push_back(counted.error().message);
  troubles_.insert(to_tell_.begin(), to_tell_.end());
  again_ = true;
  tell_trouble();
  writer_ = std::thread([this] { write_batches(); });
}

RunHistory::~RunHistory() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  writer_.join();
  tell_trouble();
}

// ---- what happens ----

void RunHistory::began(std::size_t dim) {
  const std::lock_guard lock(mutex_);
  wake_writer();
  run_changes_.dim = dim;
  counted_ = counted_ == kUnknown ? 0 : counted_;
  again_ = true;
}

void RunHistory::resumed_after(std::uint32_t round) {
  const std::lock_guard lock(mutex_);
  wake_writer();
  run_changes_.resumed_after = round;
  run_changes_.round = round;
  counted_ = counted_ == kUnknown ? round : counted_;
  again_ = true;
}

void RunHistory::ended(const std::string& outcome) {
  tell_trouble();
  const std::lock_guard lock(mutex_);
  wake_writer();
  run_changes_.outcome = outcome;
  again_ = true;
}

void RunHistory::add_round(RunHistoryRound round) {
  if (rounds_.size() >= kMostRounds) {
    rounds_.pop_front();
    ++left_out_;
  }
  wake_writer();
  rounds_.push_back(round);
}

void RunHistory::round_done(const RunProgress& progress, std::span<const ClientId> used) {
  tell_trouble();
  const double n = run_.clients;
  const std::lock_guard lock(mutex_);
  run_changes_.round = progress.round;
  add_round({.round = progress.round,
             .seconds = progress.totals.seconds,
             .replies = progress.totals.replies,
             .bits_up = progress.totals.bits_up / n,
             .bits_down = progress.totals.bits_down / n,
             .bytes_up = progress.totals.bytes_up,
             .bytes_down = progress.totals.bytes_down});
  if (progress.round <= counted_) return;
  for (const ClientId client : used) ++changed(client).replies_used;
}

void RunHistory::evaluated(const RoundRecord& record) {
  const std::lock_guard lock(mutex_);
  add_round({.round = record.round,
             .evaluation = true,
             .loss = record.loss,
             .grad_norm_sq = record.grad_norm_sq,
             .accuracy = record.accuracy});
}

RunHistoryClient& RunHistory::changed(ClientId client) {
  if (!std::exchange(is_changed_[client], 1)) {
    wake_writer();
    changed_.push_back(client);
  }
  return clients_[client];
}

void RunHistory::reply_unused(ClientId client) {
  const std::lock_guard lock(mutex_);
  ++changed(client).replies_unused;
}

void RunHistory::client_joined(ClientId client, const ClientInfo& info, const std::string& peer) {
  tell_trouble();
  const std::lock_guard lock(mutex_);
  RunHistoryClient& c = changed(client);
  c.name = info.name;
  c.peer = peer;
  c.build = info.build;
  c.kernels = info.kernels;
  c.samples = info.sample_count;
  c.connected = true;
  c.last_joined = run_history_time();
  if (c.first_joined.empty()) c.first_joined = c.last_joined;
  ++c.times_joined;
}

void RunHistory::client_gone(ClientId client, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (clients_[client].last_joined.empty()) return;  // it has never joined
  RunHistoryClient& c = changed(client);
  c.connected = false;
  if (!why.empty()) {
    c.last_lost = run_history_time();
    c.why_lost = why;
    ++c.times_lost;
  }
}

void RunHistory::settle(milliseconds most) {
  std::unique_lock lock(mutex_);
  flushing_ = true;
  wake_.notify_one();
  written_.wait_for(lock, most, [&] { return failed_ || (!anything() && !writing_); });
  flushing_ = false;
}

void RunHistory::tell_trouble() {
  std::vector<std::string> lines;
  {
    const std::lock_guard lock(mutex_);
    lines.swap(to_tell_);
  }
  if (log_)
    for (const std::string& line : lines) log_(LogLine::warning(line));
}

// ---- the writer ----

RunHistoryBatch RunHistory::take_batch() {
  RunHistoryBatch batch = run_changes_;
  const std::size_t count = std::min(rounds_.size(), kRoundsOfBatch);
  batch.rounds.assign(rounds_.begin(), rounds_.begin() + static_cast<std::ptrdiff_t>(count));
  for (const ClientId client : changed_) {
    batch.clients.push_back(clients_[client]);
    is_changed_[client] = 0;
  }
  left_out_ = 0;
  changed_.clear();
  again_ = false;
  return batch;
}

// Removes the written changes and keeps those made while the batch was written.
void RunHistory::forget(const RunHistoryBatch& written) {
  const std::size_t gone = std::min<std::size_t>(left_out_, written.rounds.size());
  rounds_.erase(rounds_.begin(), rounds_.begin() + static_cast<std::ptrdiff_t>(written.rounds.size() - gone));
  for (const RunHistoryClient& before : written.clients) {
    RunHistoryClient& c = clients_[before.number];
    c.times_joined -= before.times_joined;
    c.times_lost -= before.times_lost;
    c.replies_used -= before.replies_used;
    c.replies_unused -= before.replies_unused;
  }
  if (written.resumed_after) run_changes_.resumed_after.reset();
  if (written.dim) run_changes_.dim.reset();
  if (run_changes_.outcome == written.outcome) run_changes_.outcome.clear();
}

void RunHistory::write_batches() {
  std::unique_lock lock(mutex_);
  Clock::time_point give_up = Clock::time_point::max();
  const auto stopped = [&] { return stop_ || flushing_; };
  for (;;) {
    wake_.wait(lock, [&] { return stop_ || anything(); });
    if (!anything()) return;
    if (stop_ && give_up == Clock::time_point::max()) give_up = Clock::now() + kLastTries;
    const RunHistoryBatch batch = take_batch();
    writing_ = true;
    lock.unlock();
    const Clock::time_point started = Clock::now();
    const Status status = file_.write(batch);
    const std::string note = file_.take_note();
    const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - started);
    lock.lock();
    writing_ = false;
    for (const std::string& line : {note, status ? std::string() : status.error().message})
      if (!line.empty() && troubles_.insert(line).second) to_tell_.push_back(line);
    failed_ = !status;
    if (status) {
      forget(batch);
      if (!anything()) written_.notify_all();
      wake_.wait_for(lock, std::max(kBatchEvery, took * kRestPerWork), stopped);
      continue;
    }
    for (const RunHistoryClient& client : batch.clients) changed(client.number);
    again_ = true;
    if (stop_ && (!file_.locked() || Clock::now() > give_up)) return;
    written_.notify_all();
    wake_.wait_for(lock, kRetry, [&] { return stop_; });
    if (stop_) wake_.wait_for(lock, kBatchEvery);  // a pause between the last tries
  }
}

}  // namespace gradwire
