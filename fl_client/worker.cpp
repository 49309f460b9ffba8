#include "fl_client/worker.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "fl_client/client_journal.h"
#include "fl_client/stoppable_oracle.h"
#include "fl_client/upload_chunks.h"
#include "proto/wire/codec_context.h"
#include "proto/wire/little_endian.h"
#include "proto/wire/reply_tail.h"
#include "proto/wire/scatter.h"
#include "rounds/runtime.h"

namespace gradwire {
namespace {

template <class Real>
class RealWorker final : public Worker, private EarlyValues<Real> {
 public:
  RealWorker(std::shared_ptr<const RunContext<Real>> run_context, const ZstdMode& zstd,
             std::unique_ptr<Oracle<Real>> oracle, ClientId client, const WorkerOptions& options,
             bool overlaps, bool shares_work)
      : oracle_(std::move(oracle), options.stop),
        runtime_(run_context, client, oracle_),
        codec_(codec_context(*run_context, zstd)),
        queue_{{QueuedRequest(codec_.context()), QueuedRequest(codec_.context())}},
        keeps_no_state_(traits_of(*run_context).client_state == ClientState::kNone),
        journal_(keeps_no_state_ ? nullptr : options.journal),  // there is nothing to store
        client_(client),
        keeps_replies_(runtime_.follows_replies()),
        shares_work_(shares_work),
        overlaps_(overlaps && zstd.kind == ZstdMode::Kind::kOff &&
                  codec_.context().longest() * sizeof(Real) >= UploadChunks::kLeastBytes),
        recalled_(codec_.context()) {}

  // Resumes the run from the journal. Throws std::runtime_error.
  void resume_from_journal(const std::string& run, Durability durability) {
    if (journal_ == nullptr) return;
    const Status status =
        journal_->begin(run, durability,
                        {.load = [this](std::string_view state) { return runtime_.load(state); },
                         .recall =
                             [this](std::string_view record) {
                               return keeps_replies_ ? recall(record) : answer_again(record);
                             },
                         .recalls_fast = keeps_replies_});
    throw_if_failed(status);
  }

  std::uint64_t max_payload() const override { return max_payload_bytes(codec_.context(), sizeof(Real)); }
  std::uint64_t request_id() const override { return queue_[last_].request.request_id; }
  void begin_connection() override {
    runtime_.expect_any_request_id();
    newest_ = 0;
  }
  bool finds_older_server() override {
    return runtime_.is_ahead_of(queue_[last_].request) &&
           std::exchange(reported_older_, runtime_.committed()) != runtime_.committed();
  }
  bool shares_work() const override { return shares_work_; }
  std::uint64_t answered() const override { return answered_; }

  Result<std::span<const std::span<std::byte>>> receive_head(const Prefix& prefix,
                                                             std::span<const std::byte> header) override {
    last_ = computes_ ? 1 - current_ : current_;
    QueuedRequest& to = queue_[last_];
    const auto targets = to.slot.prepare(prefix, header);
    if (!targets) return targets.error();
    // Copied now, because reading more may overwrite the header, and unpacking frees the packed bytes.
    to.bytes.clear();
    if (keeps_requests()) {
      const auto raw = write_prefix(prefix.type, header, prefix.payload_len, prefix.payload_crc);
      to.bytes.append(text_of(raw)).append(text_of(header));
    }
    arriving_ = *targets;
    return arriving_;
  }
  Result<Received> receive_payload() override {
    QueuedRequest& to = queue_[last_];
    if (keeps_requests())
      for (const auto target : arriving_) to.bytes.append(text_of(target));
    const Result<Request<Real>> request = to.slot.finish();
    if (!request) return request.error();
    to.request = *request;
    return to.request.kind == RequestKind::kShutdown ? Received::kShutdown : Received::kRequest;
  }

  Status take_up(bool may_send_chunks) override {
    const QueuedRequest& queued = queue_[last_];
    if (!runtime_.accepts(queued.request)) return Error{"the server sent a message of the wrong shape"};
    current_ = last_;
    computes_ = true;
    sends_chunks_ = overlaps_ && may_send_chunks && queued.request.kind == RequestKind::kRound &&
                    queued.slot.have_bytes() == 0;
    runtime_.show_early(sends_chunks_ ? this : nullptr);
    if (sends_chunks_) chunks_.begin(queued.request.request_id);
    oracle_.resume();
    return Unit{};
  }

  void compute() override {
    const QueuedRequest& queued = queue_[current_];
    const Request<Real>& request = queued.request;
    // Late requests are not stored: the last record must belong to the request whose answer may be used.
    const bool keeps =
        journal_ != nullptr && request.kind == RequestKind::kRound && request.request_id >= newest_;
    if (keeps) newest_ = request.request_id;
    if (keeps && !keeps_replies_) throw_if_failed(journal_->remember(queued.bytes));
    const bool jumps = runtime_.jumps(request);
    const Uplink<Real>* const uplink = runtime_.handle(request, scratch_);
    answer_ = uplink == nullptr ? nullptr : &codec_.encode(*uplink);
    if (keeps && keeps_replies_ && uplink != nullptr && uplink->status == ReplyStatus::kReply) {
      throw_if_failed(journal_->remember(record_of(request.committed)));
      if (jumps) throw_if_failed(journal_->shorten(runtime_.save()));
    }
  }

  UploadChunks* chunks() override { return sends_chunks_ ? &chunks_ : nullptr; }

  const Encoded* answer() override {
    came_ = {};
    if (answer_ == nullptr) return nullptr;
    const std::uint64_t there = queue_[current_].slot.have_bytes();
    if (sends_chunks_) came_ = chunks_.sent_of(*answer_);
    if (there > 0 && there < payload_bytes()) return &(rest_ = reply_tail(*answer_, there));
    return came_.empty() ? answer_ : &(rest_ = reply_without(*answer_, came_));
  }
  void answer_sent() override {
    answered_ += 1;
    sent_.bytes += payload_bytes();
    for (const ChunkRange& range : came_) sent_.in_chunks += range.bytes;
  }
  Sent sent() const override { return sent_; }

  void put_away() override {
    computes_ = sends_chunks_ = false;
    answer_ = nullptr;
    codec_.release_uplink();
    if (journal_ != nullptr && journal_->is_long()) throw_if_failed(journal_->shorten(runtime_.save()));
  }

  void stop() override { oracle_.stop(); }
  bool is_superseded() const override {
    return keeps_no_state_ && computes_ &&
           queue_[last_].request.request_id > queue_[current_].request.request_id;
  }

 private:
  // Implements EarlyValues. The values of a plain payload are its bytes.
  void begin(View<Real> values) override { chunks_.place(std::as_bytes(values)); }
  void ready(std::size_t first, std::size_t count) override {
    chunks_.ready({first * sizeof(Real), count * sizeof(Real)});
  }

  bool keeps_requests() const { return journal_ != nullptr && !keeps_replies_; }
  std::uint64_t payload_bytes() const { return answer_->bytes - kPrefixBytes - answer_->header.size(); }
  static std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Returns the record of an answer: the request id that the request named as committed, and then the frame.
  const std::string& record_of(std::uint64_t committed) {
    record_.clear();
    put(record_, committed);
    record_.append(text_of(answer_->prefix)).append(answer_->header);
    for (const auto section : answer_->sections) record_.append(text_of(section));
    return record_;
  }
  // Restores a record of remember(). Returns false if it is not from this run.
  bool recall(std::string_view record) {
    if (record.size() < sizeof(std::uint64_t)) return false;
    const auto committed = get<std::uint64_t>(record, 0);
    runtime_.settle(committed);  // reads the previous answer, which the slot still holds
    if (!read_frame(std::as_bytes(std::span(record.substr(sizeof(std::uint64_t)))), recalled_)) return false;
    const Result<UplinkView<Real>> uplink = recalled_.finish(client_);
    if (!uplink || uplink->status != ReplyStatus::kReply) return false;
    newest_ = uplink->request_id;
    runtime_.recall(committed, *uplink);
    return true;
  }
  // Reads a whole frame into a slot. Returns false if it is damaged or not from this run.
  template <class Slot>
  bool read_frame(std::span<const std::byte> bytes, Slot& slot) const {
    if (bytes.size() < kPrefixBytes) return false;
    const auto prefix = read_prefix(bytes.template first<kPrefixBytes>(), max_payload());
    if (!prefix || bytes.size() != kPrefixBytes + prefix->header_len + prefix->payload_len) return false;
    const auto targets = slot.prepare(*prefix, bytes.subspan(kPrefixBytes, prefix->header_len));
    if (!targets) return false;
    return scatter(bytes.subspan(kPrefixBytes + prefix->header_len), *targets);
  }
  // Answers a request that remember() stored. Returns false if it is not from this run.
  bool answer_again(std::string_view frame) {
    RequestSlot<Real>& slot = queue_[current_].slot;
    if (!read_frame(std::as_bytes(std::span(frame)), slot)) return false;
    const Result<Request<Real>> request = slot.finish();
    if (!request || !runtime_.accepts(*request)) return false;
    newest_ = request->request_id;
    runtime_.expect_any_request_id();  // the server may have been restored from an older copy meanwhile
    runtime_.handle(*request, scratch_);
    return true;
  }

  struct QueuedRequest {
    explicit QueuedRequest(const CodecContext& context) : slot(context) {}
    RequestSlot<Real> slot;
    Request<Real> request;  // views the slot
    std::string bytes;      // as received, for the journal
  };

  StoppableOracle<Real> oracle_;
  ClientRuntime<Real> runtime_;
  Codec<Real> codec_;
  std::array<QueuedRequest, 2> queue_;
  std::size_t current_ = 0, last_ = 0;  // places in queue_: of the request taken up, and of the last one
  bool computes_ = false;               // if true, the next request gets the other place of queue_
  std::span<const std::span<std::byte>> arriving_;  // places of the payload of the last head
  Scratch<Real> scratch_;
  const Encoded* answer_ = nullptr;   // the computed answer; null if there is no answer
  Encoded rest_;                      // the answer without the bytes that the server has, if it has some
  std::span<const ChunkRange> came_;  // sent in chunks
  std::uint64_t answered_ = 0;
  Sent sent_;
  std::uint64_t newest_ = 0;          // request id of the last stored request
  std::uint64_t reported_older_ = 0;  // runtime_.committed() when finds_older_server() was true last
  const bool keeps_no_state_;
  ClientJournal* const journal_;  // null if there is none, or nothing to store
  const ClientId client_;
  // True if the state follows from the used answers. Then the answers are stored: compressed ones are short,
  // and nothing is computed again. Otherwise the requests are stored.
  const bool keeps_replies_;
  const bool shares_work_;
  const bool overlaps_;
  bool sends_chunks_ = false;  // the current request allows chunks
  UploadChunks chunks_;
  UplinkSlot<Real> recalled_;  // holds the last restored answer
  std::string record_;         // work space
};

template <class Real>
std::unique_ptr<Worker> make(const RunPlan& plan, ClientDataset part, ClientId client,
                             std::unique_ptr<Oracle<Real>> oracle, const WorkerOptions& options) {
  const Result<ZstdMode> zstd = parse_zstd_mode(plan.experiment.server.zstd);
  if (!zstd) throw std::runtime_error("server.zstd: " + zstd.error().message);
  if (oracle == nullptr)
    oracle = make_oracle<Real>(problem_spec(plan.experiment), plan.schema, std::move(part), client);
  const bool shares = options.sharing.threads > 1 && oracle->share_work(options.sharing);
  auto worker = std::make_unique<RealWorker<Real>>(make_run_context<Real>(plan, Role::kClient), *zstd,
                                                   std::move(oracle), client, options,
                                                   plan.experiment.server.overlap, shares);
  worker->resume_from_journal(options.run,
                              survives_power(plan.experiment) ? Durability::kPower : Durability::kProcess);
  return worker;
}

}  // namespace

std::unique_ptr<Worker> make_worker(const RunPlan& plan, ClientDataset part, std::uint32_t client,
                                    WorkerOptions options) {
  if (plan.experiment.precision == Precision::kFp32)
    return make<float>(plan, std::move(part), client, std::move(options.oracle.fp32), options);
  return make<double>(plan, std::move(part), client, std::move(options.oracle.fp64), options);
}

}  // namespace gradwire
