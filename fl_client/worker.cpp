#include "fl_client/worker.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "fl_client/memory.h"
#include "fl_client/runtime.h"
#include "proto/codec_context.h"
#include "proto/experiment.h"
#include "proto/experiment.pb.h"
#include "proto/problem_spec.h"
#include "proto/reply_tail.h"

namespace gradwire {
namespace {

template <class Real>
std::shared_ptr<const Setup<Real>> make_setup(const proto::Experiment& e, std::size_t d) {
  auto setup = std::make_shared<Setup<Real>>();
  setup->seed = e.seed();
  setup->n = e.clients().count();
  setup->d = d;
  setup->algorithm = algorithm_spec(e);
  setup->compressor = uplink_compressor(setup->algorithm, d, setup->n);
  return setup;
}

template <class Real>
class RealWorker final : public Worker {
 public:
  RealWorker(std::shared_ptr<const Setup<Real>> setup, const ZstdMode& zstd,
             std::unique_ptr<Oracle<Real>> oracle, ClientId client, ClientMemory* memory)
      : oracle_(std::move(oracle)),
        runtime_(setup, client, *oracle_),
        codec_(codec_context(*setup, zstd)),
        slot_(codec_.context()),
        // Of a client without state there is nothing to remember.
        memory_(facts_of(*setup).client_state == ClientState::kNone ? nullptr : memory) {}

  // Throws std::runtime_error.
  void go_on(const std::string& run, Durability durability) {
    if (memory_ == nullptr) return;
    const Status status =
        memory_->begin(run, durability,
                       {.load = [this](std::string_view state) { return runtime_.load(state); },
                        .answer = [this](std::string_view request) { return answer_again(request); }});
    if (!status) throw std::runtime_error(status.error().message);
  }

  std::uint64_t max_payload() const override { return max_payload_bytes(codec_.context(), sizeof(Real)); }
  std::uint64_t ticket() const override { return envelope_.ticket; }
  std::uint64_t answered() const override { return answered_; }

  Result<Received> receive(Link& from, const Prefix& prefix, std::span<const std::byte> header) override {
    const auto targets = slot_.prepare(prefix, header);
    if (!targets) return targets.error();
    std::string
        request;  // copied now: reading on may overwrite the header, and unpacking frees what was packed
    if (memory_ != nullptr) {
      const auto raw = write_prefix(prefix.type, header, prefix.payload_len, prefix.payload_crc);
      request.append(text_of(raw)).append(text_of(header));
    }
    if (Status status = from.read_payload(*targets); !status) return status.error();
    if (memory_ != nullptr)
      for (const auto target : *targets) request.append(text_of(target));
    const Result<Envelope<Real>> envelope = slot_.finish();
    if (!envelope) return envelope.error();
    if (!runtime_.accepts(*envelope)) return Error{"the server sent a message of the wrong shape"};
    envelope_ = *envelope;
    // Not those that come late: the last one remembered must be the one whose answer may be used.
    if (memory_ != nullptr && envelope_.request == Request::kRound && envelope_.ticket >= newest_) {
      newest_ = envelope_.ticket;
      const Status status = memory_->remember(request);
      if (!status) throw std::runtime_error(status.error().message);
    }
    if (envelope_.request != Request::kGoodbye) return Received::kRequest;
    runtime_.handle(envelope_, scratch_);
    return Received::kGoodbye;
  }

  Status answer(Link& to) override {
    const Uplink<Real>* uplink = runtime_.handle(envelope_, scratch_);
    if (uplink == nullptr) return Unit{};
    const Encoded& whole = codec_.encode(*uplink);
    const std::uint64_t there = slot_.have_bytes();
    const bool resumes = there > 0 && there < whole.bytes - kPrefixBytes - whole.header.size();
    Status written = resumes ? to.write(reply_tail(whole, there)) : to.write(whole);
    codec_.release_uplink();
    if (!written) return written;
    answered_ += 1;
    if (memory_ == nullptr || !memory_->is_long()) return Unit{};
    const Status status = memory_->shorten(runtime_.save());
    if (!status) throw std::runtime_error(status.error().message);
    return Unit{};
  }

 private:
  static std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // A request as remember() got it. False: it is not one of this run.
  bool answer_again(std::string_view request) {
    const auto bytes = std::as_bytes(std::span(request));
    if (bytes.size() < kPrefixBytes) return false;
    const auto prefix = read_prefix(bytes.template first<kPrefixBytes>(), max_payload());
    if (!prefix || bytes.size() != kPrefixBytes + prefix->header_len + prefix->payload_len) return false;
    const auto targets = slot_.prepare(*prefix, bytes.subspan(kPrefixBytes, prefix->header_len));
    if (!targets) return false;
    const std::byte* from = bytes.data() + kPrefixBytes + prefix->header_len;
    for (const std::span<std::byte> target : *targets) {
      std::copy_n(from, target.size(), target.begin());
      from += target.size();
    }
    const Result<Envelope<Real>> envelope = slot_.finish();
    if (!envelope || !runtime_.accepts(*envelope)) return false;
    newest_ = envelope->ticket;
    runtime_.handle(*envelope, scratch_);
    return true;
  }

  std::unique_ptr<Oracle<Real>> oracle_;
  ClientRuntime<Real> runtime_;
  Codec<Real> codec_;
  EnvelopeSlot<Real> slot_;
  Scratch<Real> scratch_;
  Envelope<Real> envelope_;  // views slot_
  std::uint64_t answered_ = 0;
  std::uint64_t newest_ = 0;    // ticket of the last request that was remembered
  ClientMemory* const memory_;  // null: there is none, or nothing to remember
};

template <class Real>
std::unique_ptr<Worker> make(const proto::Experiment& e, const ProblemSpec& spec, const Agreement& agreement,
                             const Part& part, ClientId client, const ZstdMode& zstd, ClientMemory* memory,
                             const std::string& run) {
  const auto setup = make_setup<Real>(e, model_dim(spec, agreement));
  auto worker = std::make_unique<RealWorker<Real>>(
      setup, zstd, make_oracle<Real>(spec, agreement, part, client), client, memory);
  worker->go_on(run, e.server().durability() == "power" ? Durability::kPower : Durability::kProcess);
  return worker;
}

}  // namespace

std::unique_ptr<Worker> make_worker(const proto::Experiment& experiment, const Agreement& agreement,
                                    const Part& part, std::uint32_t client, ClientMemory* memory,
                                    const std::string& run) {
  const ProblemSpec spec = problem_spec(experiment);
  check_agreement(spec, agreement);
  const Result<ZstdMode> zstd = parse_zstd_mode(experiment.server().zstd());
  if (!zstd) throw std::runtime_error("server.zstd: " + zstd.error().message);
  if (experiment.precision() == "fp32")
    return make<float>(experiment, spec, agreement, part, client, *zstd, memory, run);
  return make<double>(experiment, spec, agreement, part, client, *zstd, memory, run);
}

}  // namespace gradwire
