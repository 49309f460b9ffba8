#include "fl_server/durable_run.h"

#include <array>
#include <atomic>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace gradwire {
namespace {

constexpr std::uint32_t kAbout = 1, kLedger = 2, kHalf = 3, kStage = 4;
constexpr int kTicketsOfOneProcess = 32;  // bits: a restart begins above all that could have been issued

std::string_view section(std::span<const Section> sections, std::uint32_t tag) {
  for (const Section& s : sections)
    if (s.tag == tag) return s.bytes;
  return {};
}

void check(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

class BackgroundThread final : public Background {
 public:
  ~BackgroundThread() override { BackgroundThread::wait(); }
  void start(std::function<void()> copy, std::function<void()> write) override {
    wait();
    busy_ = true;
    copied_ = false;
    try {
      thread_ = std::thread([this, copy = std::move(copy), write = std::move(write)] {
        copy();
        copied_ = true;
        copied_.notify_one();
        write();
        busy_ = false;
      });
    } catch (...) {
      busy_ = false;
      copied_ = true;
      throw;
    }
  }
  void wait_copied() override { copied_.wait(false); }
  bool busy() const override { return busy_; }
  void wait() override {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> busy_ = false, copied_ = true;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Background> background_thread() { return std::make_unique<BackgroundThread>(); }

std::optional<SnapshotAbout> snapshot_about(std::span<const Section> sections) {
  const std::string_view stage = section(sections, kStage);
  if (section(sections, kLedger).empty() || stage.size() != 2) return std::nullopt;
  const auto ledger = peek_ledger(section(sections, kLedger));
  if (!ledger) return std::nullopt;
  return SnapshotAbout{std::string(section(sections, kAbout)), static_cast<RunStage>(stage[0]),
                       static_cast<Outcome>(stage[1]), *ledger};
}

template <class Real>
struct DurableRun<Real>::Snapshot {
  std::string about, ledger, half, stage;

  std::array<Section, 4> sections() const {
    return {{{kAbout, about}, {kLedger, ledger}, {kHalf, half}, {kStage, stage}}};
  }
};

template <class Real>
DurableRun<Real>::DurableRun(Journal& journal, Background& background, const CodecContext& context,
                             ServerHalf<Real>& half, Ledger& ledger, std::string about, SnapshotPolicy policy,
                             std::function<void(const std::string&)> note)
    : journal_(journal),
      background_(background),
      half_(half),
      ledger_(ledger),
      about_(std::move(about)),
      policy_(policy),
      note_(std::move(note)),
      records_(context),
      beside_(std::make_shared<std::optional<Error>>()) {
  ledger_.committed.resize(context.clients, 0);
}

template <class Real>
DurableRun<Real>::~DurableRun() {
  background_.wait();
}

template <class Real>
bool DurableRun<Real>::load(std::span<const Section> sections) {
  const std::string_view half = section(sections, kHalf);
  state_bytes_ = half.size();
  recovered_ = true;
  return load_ledger(section(sections, kLedger), ledger_) && half_.load(half);
}

template <class Real>
bool DurableRun<Real>::replay(std::string_view record) {
  return records_.replay(record, half_, ledger_);
}

template <class Real>
typename DurableRun<Real>::Snapshot DurableRun<Real>::new_snapshot(RunStage stage, Outcome outcome) const {
  return {about_, save_ledger(ledger_), {}, {static_cast<char>(stage), static_cast<char>(outcome)}};
}

template <class Real>
std::size_t DurableRun<Real>::snapshot_now(RunStage stage, Outcome outcome) {
  Snapshot snapshot = new_snapshot(stage, outcome);
  snapshot.half = half_.save();
  check(journal_.snapshot(snapshot.sections()));
  return snapshot.half.size();
}

template <class Real>
void DurableRun<Real>::begin() {
  if (recovered_) ledger_.ticket = ((ledger_.ticket >> kTicketsOfOneProcess) + 1) << kTicketsOfOneProcess;
  state_bytes_ = snapshot_now(RunStage::kRounds);
}

template <class Real>
void DurableRun<Real>::before_apply() {
  if (!copying_) return;
  background_.wait_copied();
  if (!copying_->half.empty()) state_bytes_ = copying_->half.size();
  copying_.reset();
}

template <class Real>
void DurableRun<Real>::commit(const RoundCommit<Real>& commit) {
  if (copying_) throw std::logic_error("before_apply() was not called: a snapshot may be of half a round");
  const auto record = records_.encode(commit, half_, state_bytes_);
  check(journal_.append(record));
  records_since_ += 1;
  for (const std::string_view piece : record) bytes_since_ += piece.size();
  records_.release();
  if (records_since_ >= policy_.records || bytes_since_ >= state_bytes_ + policy_.bytes_beside_state)
    snapshot_beside();
}

template <class Real>
void DurableRun<Real>::snapshot_beside() {
  if (background_.busy()) return;
  background_.wait();
  if (const auto failed = std::exchange(*beside_, std::nullopt); failed && note_)
    note_("a snapshot was not written, the journal grows: " + failed->message);
  const auto snapshot = std::make_shared<Snapshot>(new_snapshot(RunStage::kRounds));
  copying_ = snapshot;
  records_since_ = bytes_since_ = 0;
  const auto unless_short = [failed = beside_](auto&& step) {
    try {
      if (!*failed) step();
    } catch (const std::bad_alloc&) {
      *failed = Error{"there is no memory for it"};
    }
  };
  // Between its commit and the next apply() a round only reads the half.
  const auto copy = [&half = half_, snapshot, unless_short] {
    unless_short([&] { snapshot->half = half.save(); });
  };
  const auto write = [&journal = journal_, number = journal_.begin_snapshot(), snapshot, failed = beside_,
                      unless_short] {
    unless_short([&] {
      if (Status status = journal.write_snapshot(number, snapshot->sections()); !status)
        *failed = status.error();
    });
  };
  try {
    background_.start(copy, write);
  } catch (const std::system_error& error) {
    copying_.reset();
    *beside_ = Error{std::string("no thread for it: ") + error.what()};
  }
}

template <class Real>
void DurableRun<Real>::end(RunStage stage, Outcome outcome) {
  background_.wait();
  copying_.reset();
  snapshot_now(stage, outcome);
}

template class DurableRun<float>;
template class DurableRun<double>;

}  // namespace gradwire
