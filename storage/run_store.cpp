#include "storage/run_store.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace gradwire {
namespace {

constexpr std::uint32_t kMetadata = 1, kProgress = 2, kServer = 3, kStage = 4;
// First bytes of records that are not of rounds; RoundRecords has the values of those.
constexpr char kEndOfRun = 3, kNote = 4;
constexpr int kRequestIdsOfOneProcess = 24;  // bits: a restart begins above all issued request ids

std::string_view section(std::span<const Section> sections, std::uint32_t tag) {
  for (const Section& s : sections)
    if (s.tag == tag) return s.bytes;
  return {};
}

class BackgroundThread final : public Background {
 public:
  ~BackgroundThread() override { BackgroundThread::wait(); }
  void start(std::function<void()> read, std::function<void()> write) override {
    wait();
    busy_ = true;
    read_done_ = false;
    try {
      thread_ = std::thread([this, read = std::move(read), write = std::move(write)] {
        read();
        read_done_ = true;
        read_done_.notify_one();
        write();
        busy_ = false;
      });
    } catch (...) {
      busy_ = false;
      read_done_ = true;
      throw;
    }
  }
  void wait_read() override { read_done_.wait(false); }
  bool busy() const override { return busy_; }
  void wait() override {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> busy_ = false, read_done_ = true;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Background> background_thread() { return std::make_unique<BackgroundThread>(); }

std::optional<SnapshotMetadata> snapshot_metadata(std::span<const Section> sections) {
  const std::string_view stage = section(sections, kStage);
  if (section(sections, kProgress).empty() || stage.size() != 2) return std::nullopt;
  const auto progress = peek_progress(section(sections, kProgress));
  if (!progress) return std::nullopt;
  return SnapshotMetadata{std::string(section(sections, kMetadata)), static_cast<RunStage>(stage[0]),
                          static_cast<Outcome>(stage[1]), *progress};
}

std::optional<RunEnd> peek_end(std::string_view record) {
  if (record.size() != 3 || record[0] != kEndOfRun) return std::nullopt;
  return RunEnd{static_cast<RunStage>(record[1]), static_cast<Outcome>(record[2])};
}

std::optional<std::string_view> peek_note(std::string_view record) {
  if (record.empty() || record[0] != kNote) return std::nullopt;
  return record.substr(1);
}

template <class Real>
bool load_snapshot(std::span<const Section> sections, ServerAlgorithm<Real>& server, RunProgress& progress,
                   const std::function<bool(std::string_view)>& load_clients) {
  return load_progress(section(sections, kProgress), progress) && server.load(section(sections, kServer)) &&
         (!load_clients || load_clients(section(sections, kClientsSection)));
}
template bool load_snapshot(std::span<const Section>, ServerAlgorithm<float>&, RunProgress&,
                            const std::function<bool(std::string_view)>&);
template bool load_snapshot(std::span<const Section>, ServerAlgorithm<double>&, RunProgress&,
                            const std::function<bool(std::string_view)>&);

template <class Real>
struct RunStore<Real>::Snapshot {
  std::string metadata, progress, server, stage;
  std::optional<std::string> clients;  // states of the clients; set only in a simulation
  CowSnapshot cow_snapshot;            // the algorithm, if `server` is empty

  std::vector<Section> sections() const {
    std::vector<Section> all = {{kMetadata, metadata}, {kProgress, progress}};
    if (!server.empty()) all.push_back({kServer, server});
    all.push_back({kStage, stage});
    if (clients) all.push_back({kClientsSection, *clients});
    return all;
  }
};

template <class Real>
RunStore<Real>::RunStore(Journal& journal, Background& background, const CodecContext& context,
                         ServerAlgorithm<Real>& server, RunProgress& progress, std::string metadata,
                         SnapshotPolicy policy, Log note)
    : journal_(journal),
      background_(&background),
      server_(server),
      progress_(progress),
      metadata_(std::move(metadata)),
      policy_(policy),
      note_(std::move(note)),
      records_(context),
      background_result_(std::make_shared<BackgroundResult>()) {
  progress_.committed.resize(context.clients, 0);
}

template <class Real>
RunStore<Real>::RunStore(Journal& journal, SimulationSnapshots snapshots, ServerAlgorithm<Real>& server,
                         RunProgress& progress, std::string metadata, Log note)
    : journal_(journal),
      background_(nullptr),
      simulation_(std::move(snapshots)),
      server_(server),
      progress_(progress),
      metadata_(std::move(metadata)),
      note_(std::move(note)) {}

template <class Real>
RunStore<Real>::~RunStore() {
  if (background_ != nullptr) background_->wait();
}

template <class Real>
bool RunStore<Real>::load(std::span<const Section> sections) {
  const std::string_view server = section(sections, kServer);
  const auto metadata = snapshot_metadata(sections);
  stage_ = metadata ? RunEnd{metadata->stage, metadata->outcome} : RunEnd{};
  state_bytes_ = server.size();
  recovered_ = true;
  return load_snapshot(sections, server_, progress_, simulation_.load_clients);
}

template <class Real>
bool RunStore<Real>::replay(std::string_view record) {
  const auto end = peek_end(record);
  stage_ = end.value_or(RunEnd{});
  return end || records_->replay(record, server_, progress_);
}

template <class Real>
std::shared_ptr<typename RunStore<Real>::Snapshot> RunStore<Real>::new_snapshot(RunStage stage,
                                                                                Outcome outcome) const {
  const auto snapshot = std::make_shared<Snapshot>();
  snapshot->metadata = metadata_;
  snapshot->progress = save_progress(progress_);
  snapshot->stage = {static_cast<char>(stage), static_cast<char>(outcome)};
  return snapshot;
}

template <class Real>
std::size_t RunStore<Real>::snapshot_now(RunStage stage, Outcome outcome) {
  std::optional<std::string> clients;
  // Save the clients first, because other processes may take part.
  if (simulation_.save_clients) clients = simulation_.save_clients();
  const auto snapshot = new_snapshot(stage, outcome);
  snapshot->server = server_.save();
  snapshot->clients = std::move(clients);
  if (make_durable_) throw_if_failed(make_durable_());
  throw_if_failed(journal_.snapshot(snapshot->sections()));
  return snapshot->server.size();
}

template <class Real>
void RunStore<Real>::begin(std::uint32_t jump) {
  // Skip 2, because the last process may have issued a few more request ids than its last record names.
  if (recovered_)
    progress_.request_id = ((progress_.request_id >> kRequestIdsOfOneProcess) + 2 + jump % kMostRequestIdJump)
                           << kRequestIdsOfOneProcess;
  state_bytes_ = snapshot_now(RunStage::kRounds);
}

template <class Real>
void RunStore<Real>::before_apply() {
  if (copying_) {
    background_->wait_read();
    if (copying_->cow_snapshot.size() > 0) state_bytes_ = copying_->cow_snapshot.size();
    try {
      copying_->cow_snapshot.own_rest();
    } catch (const std::bad_alloc&) {
      background_->wait();  // the snapshot is then written directly from the algorithm's memory
    }
    copying_.reset();
  }
  apply_begun_ = Clock::now();
}

template <class Real>
void RunStore<Real>::snapshot_if_due() {
  if (simulation_.is_due ? simulation_.is_due() : is_due()) write_simulation_snapshot(RunStage::kRounds);
}

template <class Real>
void RunStore<Real>::commit(const RoundCommit<Real>& commit) {
  if (background_ == nullptr) return snapshot_if_due();
  if (copying_) throw std::logic_error("before_apply() was not called: a snapshot may contain half a round");
  throw_if_failed(noted_);
  apply_seconds_since_ += std::chrono::duration<double>(Clock::now() - apply_begun_).count();
  const auto record = records_->encode(commit, server_, state_bytes_);
  throw_if_failed(journal_.append(record));
  records_since_ += 1;
  for (const std::string_view segment : record) bytes_since_ += segment.size();
  records_->release();
  if (is_worth_a_snapshot()) start_snapshot();
}

template <class Real>
Status RunStore<Real>::append_note(std::string_view note) {
  const std::string_view segments[] = {{&kNote, 1}, note};
  if (noted_) noted_ = journal_.append(segments);
  if (noted_) records_since_ += 1;
  return noted_;
}

template <class Real>
void RunStore<Real>::write_simulation_snapshot(RunStage stage, Outcome outcome) {
  try {
    snapshot_now(stage, outcome);
    throw_if_failed(journal_.append({}));  // so that the next snapshot has a new number
  } catch (const std::exception& error) {
    if (note_)
      note_(
          LogLine::warning("no checkpoint of round " + std::to_string(progress_.round) + ": " + error.what())
              .in_round(progress_.round));
  }
  last_snapshot_ = Clock::now();
}

template <class Real>
bool RunStore<Real>::is_worth_a_snapshot() const {
  if (background_->busy()) return false;
  return records_since_ >= policy_.records || bytes_since_ >= state_bytes_ + policy_.bytes_beyond_state ||
         apply_seconds_since_ >= std::max(policy_.apply_seconds, 4 * background_result_->seconds);
}

template <class Real>
void RunStore<Real>::start_snapshot() {
  background_->wait();
  if (const auto failed = std::exchange(background_result_->failed, std::nullopt); failed && note_)
    note_(LogLine::warning("a snapshot was not written, so the journal grows: " + failed->message));
  refresh_metadata();
  const auto snapshot = new_snapshot(RunStage::kRounds);
  copying_ = snapshot;
  records_since_ = bytes_since_ = 0;
  apply_seconds_since_ = 0;
  const auto step = [result = background_result_](auto&& do_it) {
    const Clock::time_point begun = Clock::now();
    try {
      if (!result->failed) do_it();
    } catch (const std::bad_alloc&) {
      result->failed = Error{"there is not enough memory"};
    }
    result->seconds += std::chrono::duration<double>(Clock::now() - begun).count();
  };
  // Between its commit and the next apply(), a round only reads the algorithm.
  const auto read = [&server = server_, snapshot, step, result = background_result_] {
    result->seconds = 0;
    step([&] {
      ByteSegments segments;
      server.save_in_place(segments);
      snapshot->cow_snapshot.begin(std::move(segments));
    });
  };
  const auto write = [&journal = journal_, number = journal_.begin_snapshot(), snapshot, step,
                      result = background_result_, make_durable = make_durable_] {
    step([&] {
      Status status = make_durable ? make_durable() : Status(Unit{});
      const CowSection cow_section{kServer, &snapshot->cow_snapshot};
      if (status) status = journal.write_snapshot(number, snapshot->sections(), &cow_section);
      if (!status) result->failed = status.error();
    });
    snapshot->cow_snapshot.close();
  };
  try {
    background_->start(read, write);
  } catch (const std::system_error& error) {
    copying_.reset();
    background_result_->failed = Error{std::string("no thread can be created: ") + error.what()};
  }
}

template <class Real>
void RunStore<Real>::end(RunStage stage, Outcome outcome) {
  if (background_ == nullptr) {
    if (std::isfinite(simulation_.seconds)) write_simulation_snapshot(stage, outcome);
    return;
  }
  background_->wait();
  copying_.reset();
  throw_if_failed(noted_);
  if (stage != RunStage::kRounds) {
    const char record[] = {kEndOfRun, static_cast<char>(stage), static_cast<char>(outcome)};
    const std::string_view bytes(record, sizeof record);
    throw_if_failed(journal_.append(std::span(&bytes, 1)));
  }
  snapshot_now(stage, outcome);
}

template class RunStore<float>;
template class RunStore<double>;

}  // namespace gradwire
