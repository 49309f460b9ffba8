#include "fl_client/worker.h"

#include <stdexcept>
#include <utility>

#include "fl_client/runtime.h"
#include "proto/codec_context.h"
#include "proto/experiment.h"
#include "proto/problem_spec.h"

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
             std::unique_ptr<Oracle<Real>> oracle, ClientId client)
      : oracle_(std::move(oracle)),
        runtime_(setup, client, *oracle_),
        codec_(codec_context(*setup, zstd)),
        slot_(codec_.context()) {}

  std::uint64_t max_payload() const override { return max_payload_bytes(codec_.context(), sizeof(Real)); }
  std::uint64_t answered() const override { return answered_; }

  Result<Received> receive(ServerConnection& from, const ServerConnection::Frame& frame) override {
    const auto targets = slot_.prepare(frame.prefix, frame.header);
    if (!targets) return targets.error();
    if (Status status = from.read_payload(*targets); !status) return status.error();
    const Result<Envelope<Real>> envelope = slot_.finish();
    if (!envelope) return envelope.error();
    if (!runtime_.accepts(*envelope)) return Error{"the server sent a message of the wrong shape"};
    envelope_ = *envelope;
    if (envelope_.request != Request::kGoodbye) return Received::kRequest;
    runtime_.handle(envelope_, scratch_);
    return Received::kGoodbye;
  }

  Status answer(ServerConnection& to) override {
    const Uplink<Real>* uplink = runtime_.handle(envelope_, scratch_);
    if (uplink == nullptr) return Unit{};
    Status written = to.write(codec_.encode(*uplink));
    codec_.release_uplink();
    if (!written) return written;
    answered_ += 1;
    return Unit{};
  }

 private:
  std::unique_ptr<Oracle<Real>> oracle_;
  ClientRuntime<Real> runtime_;
  Codec<Real> codec_;
  EnvelopeSlot<Real> slot_;
  Scratch<Real> scratch_;
  Envelope<Real> envelope_;  // views slot_
  std::uint64_t answered_ = 0;
};

template <class Real>
std::unique_ptr<Worker> make(const proto::Experiment& e, const ProblemSpec& spec, const Agreement& agreement,
                             const Part& part, ClientId client, const ZstdMode& zstd) {
  const auto setup = make_setup<Real>(e, model_dim(spec, agreement));
  return std::make_unique<RealWorker<Real>>(setup, zstd, make_oracle<Real>(spec, agreement, part, client),
                                            client);
}

}  // namespace

std::unique_ptr<Worker> make_worker(const proto::Experiment& experiment, const Agreement& agreement,
                                    const Part& part, std::uint32_t client) {
  const ProblemSpec spec = problem_spec(experiment);
  check_agreement(spec, agreement);
  const Result<ZstdMode> zstd = parse_zstd_mode(experiment.server().zstd());
  if (!zstd) throw std::runtime_error("server.zstd: " + zstd.error().message);
  if (experiment.precision() == "fp32") return make<float>(experiment, spec, agreement, part, client, *zstd);
  return make<double>(experiment, spec, agreement, part, client, *zstd);
}

}  // namespace gradwire
