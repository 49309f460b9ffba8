#include "c_api/dry_server.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "config/settings.h"
#include "config/start_frame.h"
#include "fl_client/worker.h"
#include "gradwire/bad_input.h"
#include "proto/wire/codec_context.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/frame.h"
#include "proto/wire/scatter.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kHeartbeatMs = 10 * 60'000;

// A function whose gradient has no two equal entries.
template <class Real>
class AnyFunction final : public Oracle<Real> {
 public:
  explicit AnyFunction(std::size_t dim) : dim_(dim) {}
  std::size_t dim() const override { return dim_; }
  std::size_t sample_count() const override { return 1; }
  Real loss_and_gradient(View<Real>, Batch, Out<Real> gradient) override {
    for (std::size_t j = 0; j < gradient.size(); ++j) gradient[j] = 1 / static_cast<Real>(j + 1);
    return 1;
  }

 private:
  const std::size_t dim_;
};

template <class Real>
class RealDryServer final : public DryServer {
 public:
  explicit RealDryServer(const RunPlan& plan)
      : plan_(plan),
        codec_(codec_context(*make_run_context<Real>(plan, Role::kClient), {ZstdMode::Kind::kOff, 1})),
        x_(plan.d) {
    find_shape();
  }
  ~RealDryServer() override {
    if (fd_ >= 0) ::close(fd_);
  }

  int connect() override {
    std::array<int, 2> ends{};
    if (fd_ >= 0 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return -1;
    fd_ = ends[1];
    return ends[0];
  }

  void step() override {
    if (fd_ < 0) return;
    std::array<std::byte, 64 * 1024> piece;
    for (ssize_t got = 0; (got = ::recv(fd_, piece.data(), piece.size(), MSG_DONTWAIT)) > 0;)
      arrived_.insert(arrived_.end(), piece.begin(), piece.begin() + got);
    while (take_frame()) {
    }
    const ssize_t sent = ::send(fd_, leaving_.data(), leaving_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) leaving_.erase(0, static_cast<std::size_t>(sent));
  }

 private:
  // The requests: one that brings all of the client's state, an ordinary one, and evaluations.
  static constexpr std::array<RequestKind, 5> kRequests = {RequestKind::kRound, RequestKind::kRound,
                                                           RequestKind::kEvaluate, RequestKind::kRound,
                                                           RequestKind::kShutdown};

  // Returns a message with this many vectors of length d.
  Downlink<Real> message(std::size_t parts) const {
    Downlink<Real> down;
    down.round = 1;
    for (std::size_t k = 0; k < parts; ++k) down.parts.push_back(Payload<Real>::dense(x_));
    return down;
  }
  Encoded encode(RequestKind kind, std::uint64_t id, std::optional<std::size_t> resync, std::size_t parts) {
    Request<Real> request;
    request.kind = kind;
    request.request_id = id;
    request.committed = id - 1;
    if (kind != RequestKind::kShutdown) body_ = codec_.encode_body(message(is_evaluation(kind) ? 1 : parts));
    if (resync) resync_ = codec_.encode_body(message(*resync));
    return codec_.encode(request, kind == RequestKind::kShutdown ? nullptr : body_.get(),
                         resync ? resync_.get() : nullptr);
  }

  // Finds the numbers of vectors that a client accepts, with as much state as possible.
  void find_shape() {
    for (const std::optional<std::size_t> resync :
         {std::optional<std::size_t>(3), std::optional<std::size_t>(2), std::optional<std::size_t>(1),
          std::optional<std::size_t>(0), std::optional<std::size_t>()})
      for (const std::size_t parts : {std::size_t{1}, std::size_t{2}})
        if (answers(resync, parts)) {
          resync_parts_ = resync;
          parts_ = parts;
          return;
        }
    throw BadInput("the memory of '" + plan_.experiment.algorithm.name + "' cannot be found by a dry run");
  }
  bool answers(std::optional<std::size_t> resync, std::size_t parts) {
    WorkerOptions options;
    if constexpr (sizeof(Real) == sizeof(float))
      options.oracle.fp32 = std::make_unique<AnyFunction<Real>>(plan_.d);
    else
      options.oracle.fp64 = std::make_unique<AnyFunction<Real>>(plan_.d);
    const auto worker = make_worker(plan_, {}, 0, std::move(options));
    const Encoded request = encode(RequestKind::kRound, 1, resync, parts);
    const Result<Prefix> prefix = read_prefix(request.prefix, worker->max_payload());
    if (!prefix) return false;
    const auto places = worker->receive_head(*prefix, std::as_bytes(std::span(request.header)));
    return places && scatter(request.sections, *places) && worker->receive_payload() &&
           worker->take_up(false);
  }

  bool take_frame() {
    if (arrived_.size() < kPrefixBytes) return false;
    const Result<Prefix> prefix = read_prefix(std::span(arrived_).template first<kPrefixBytes>(),
                                              max_payload_bytes(codec_.context(), sizeof(Real)));
    if (!prefix) return false;
    const std::size_t size =
        kPrefixBytes + prefix->header_len + static_cast<std::size_t>(prefix->payload_len);
    if (arrived_.size() < size) return false;
    arrived_.erase(arrived_.begin(), arrived_.begin() + static_cast<std::ptrdiff_t>(size));
    switch (prefix->type) {
      case FrameType::kHello: welcome(); break;
      case FrameType::kJoin: start(); break;
      case FrameType::kReply: ask(); break;
      default: break;
    }
    return true;
  }
  void welcome() {
    wire::Welcome welcome;
    welcome.set_client(0);
    welcome.set_experiment(pack_experiment(plan_.experiment));
    welcome.set_heartbeat_ms(kHeartbeatMs);
    welcome.set_max_payload(max_payload_bytes(codec_.context(), sizeof(Real)));
    leaving_ += control_frame(FrameType::kWelcome, welcome);
  }
  void start() {
    leaving_ += start_frame(plan_, 1);
    ask();
  }
  void ask() {
    if (asked_ == kRequests.size()) return;
    const Encoded request =
        encode(kRequests[asked_], asked_ + 1, asked_ == 0 ? resync_parts_ : std::nullopt, parts_);
    ++asked_;
    append(request.prefix);
    append(std::as_bytes(std::span(request.header)));
    for (const auto section : request.sections) append(section);
  }
  void append(std::span<const std::byte> bytes) {
    leaving_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  const RunPlan& plan_;
  Codec<Real> codec_;
  const Vec<Real> x_;
  std::optional<std::size_t> resync_parts_;
  std::size_t parts_ = 1;
  std::shared_ptr<const EncodedBody<Real>> body_, resync_;
  int fd_ = -1;
  std::vector<std::byte> arrived_;
  std::string leaving_;
  std::size_t asked_ = 0;  // requests so far
};

}  // namespace

std::unique_ptr<DryServer> make_dry_server(const RunPlan& plan) {
  if (plan.experiment.precision == Precision::kFp32) return std::make_unique<RealDryServer<float>>(plan);
  return std::make_unique<RealDryServer<double>>(plan);
}

}  // namespace gradwire
