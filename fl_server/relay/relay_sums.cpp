#include "fl_server/relay/relay_sums.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "algorithms/algorithms.h"
#include "config/experiment_spec.h"
#include "config/settings.h"
#include "proto/wire/codec_context.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/scatter.h"
#include "proto/wire/wire.pb.h"
#include "rounds/finite.h"
#include "rounds/reply_sum.h"

namespace gradwire {

// A decoder of replies, equal to that of the server, and an encoder of their sum.
class RelaySums::Adder {
 public:
  virtual ~Adder() = default;
  // Reads the header of a reply. Returns nullopt if it cannot be decoded.
  virtual std::optional<UplinkHeader> head(const ForwardedFrame& forwarded) = 0;
  // Returns the sum of the replies that can be added, and makes them kAdded. The clients must be ascending.
  // Returns nullopt if there is no sum or it would save no bytes; then all stay kHeld.
  virtual std::optional<Outgoing> add(std::span<RelayReply* const> replies) = 0;
};

namespace {

using ReplyStage = RelaySums::RelayReply::ReplyStage;

std::span<const std::byte> header_of(const ForwardedFrame& forwarded) {
  return std::as_bytes(std::span(forwarded.header));
}

// Makes a frame that owns its payload.
Outgoing whole(const Encoded& message) {
  Outgoing frame;
  frame.head.assign(reinterpret_cast<const char*>(message.prefix.data()), message.prefix.size());
  frame.head += message.header;
  const auto payload = std::make_shared<std::vector<std::byte>>();
  for (const auto section : message.sections) payload->insert(payload->end(), section.begin(), section.end());
  if (!payload->empty()) frame.sections = {*payload};
  frame.keep = payload;
  return frame;
}

template <class Real>
class RealAdder final : public RelaySums::Adder {
 public:
  explicit RealAdder(const CodecContext& context) : codec_(context), slot_(context) {}

  std::optional<UplinkHeader> head(const ForwardedFrame& forwarded) override {
    if (!slot_.prepare(forwarded.prefix, header_of(forwarded))) return std::nullopt;
    return slot_.announced();
  }

  std::optional<Outgoing> add(std::span<RelaySums::RelayReply* const> replies) override {
    try {
      if (auto sum = sum_of(replies)) return sum;
    } catch (const std::bad_alloc&) {  // forwarded one by one, they need less memory
    }
    for (RelaySums::RelayReply* const reply : replies) reply->stage = ReplyStage::kHeld;
    return std::nullopt;
  }

 private:
  std::optional<Outgoing> sum_of(std::span<RelaySums::RelayReply* const> replies) {
    sum_.clear();
    std::uint64_t bytes = 0;
    for (RelaySums::RelayReply* const reply : replies) {
      if (!decode_and_add(*reply)) continue;
      reply->stage = ReplyStage::kAdded;
      bytes += reply->forwarded.bytes();
    }
    if (sum_.covers().size() < 2) return std::nullopt;
    const Uplink<Real> sum = sum_.sum();
    if (!is_finite(sum)) return std::nullopt;
    const Encoded& message = codec_.encode(sum, sum_.covers());
    if (message.bytes < bytes) return whole(message);
    return std::nullopt;
  }
  bool decode_and_add(const RelaySums::RelayReply& reply) {
    const auto places = slot_.prepare(reply.forwarded.prefix, header_of(reply.forwarded));
    if (!places) return false;
    if (!scatter(std::span(reply.forwarded.payload.get(), reply.forwarded.prefix.payload_len), *places))
      return false;
    const Result<UplinkView<Real>> up = slot_.finish(reply.client, &draws_);
    return up && sum_.add(*up);
  }

  Codec<Real> codec_;
  UplinkSlot<Real> slot_;
  BlockMemo draws_;
  ReplySum<Real> sum_;
};

template <class Real>
std::unique_ptr<RelaySums::Adder> make_adder(const ExperimentSpec& experiment, std::size_t d) {
  const Result<ZstdMode> zstd = parse_zstd_mode(experiment.server.zstd);
  if (!zstd) return nullptr;
  RunContext<Real> run_context;
  run_context.seed = experiment.seed;
  run_context.n = experiment.clients.count;
  run_context.d = d;
  run_context.algorithm = algorithm_spec(experiment);
  run_context.compressor = uplink_compressor(run_context.algorithm, d, run_context.n);
  return std::make_unique<RealAdder<Real>>(codec_context(run_context, *zstd));
}

}  // namespace

RelaySums::RelaySums(std::function<void(const Outgoing&)> up, Log log)
    : up_(std::move(up)), log_(std::move(log)) {}
RelaySums::~RelaySums() = default;

// ---- frames of the server ----

void RelaySums::allow(bool allow) {
  allowed_ = allow;
  if (allow || std::exchange(warned_of_sums_, true)) return;
  log_(
      "the server accepts no sums (the algorithm, server.client_state_replicas or clients.weights need each "
      "reply); "
      "replies are forwarded one by one");
}

// Handles the Start header. If it cannot be read, the clients report the error.
void RelaySums::begin(const std::string& start) {
  if (start == start_) return;
  start_ = start;
  for (auto& [channel, reply] : replies_)  // they can no longer be added
    if (reply.stage == RelayReply::ReplyStage::kHeld) forward(reply);
  replies_.clear();
  bytes_held_ = 0;
  adder_.reset();
  wire::Start message;
  if (!parse_control(std::as_bytes(std::span(start)), message)) return;
  const Result<ExperimentSpec> experiment = unpack_experiment(message.experiment());
  if (!experiment) return;
  try {
    adder_ = experiment->precision == Precision::kFp32 ? make_adder<float>(*experiment, message.dim())
                                                       : make_adder<double>(*experiment, message.dim());
  } catch (const std::exception&) {
    return;
  }
  half_deadline_ = std::chrono::milliseconds(experiment->server.deadline_ms / 2);
}

bool RelaySums::watch(std::uint32_t channel, const ForwardedFrame& forwarded) {
  const auto header = header_of(forwarded);
  if (forwarded.prefix.type == FrameType::kStart) begin(forwarded.header);
  if (wire::Welcome welcome; forwarded.prefix.type == FrameType::kWelcome && parse_control(header, welcome))
    clients_[channel] = welcome.client();
  wire::Received received;
  return forwarded.prefix.type != FrameType::kReceived || !parse_control(header, received) ||
         heard(channel, received);
}

void RelaySums::asked(std::uint32_t channel, const wire::Round& round, SteadyTime now) {
  if (round.request_id() > request_id_) {  // the held replies are too late
    replies_.clear();
    bytes_held_ = 0;
    request_id_ = round.request_id();
    round_ = round.body().round();
    since_ = now;
  }
  const auto client = clients_.find(channel);
  if (!allowed_ || !adder_ || round.request_id() != request_id_ || round.request() != wire::REQUEST_ROUND ||
      client == clients_.end())
    return;
  if (const auto known = replies_.find(channel); known != replies_.end()) {
    // Asked again, so the server's deadline has passed.
    if (known->second.stage == ReplyStage::kHeld) send_all();
    return;
  }
  replies_[channel] = {ReplyStage::kAwaited, channel, client->second, {}};
  all_asked_ = false;
}

void RelaySums::asked_all(std::uint64_t request_id) {
  if (request_id != request_id_) return;
  all_asked_ = true;
  send_when_complete();
}

// Handles the acknowledgement of a reply. The client need not know that a sum with its reply was refused.
bool RelaySums::heard(std::uint32_t channel, const wire::Received& received) {
  const auto found = replies_.find(channel);
  if (received.request_id() != request_id_ || found == replies_.end() ||
      found->second.stage == ReplyStage::kPassedOn)
    return true;
  const bool was_added = found->second.stage == ReplyStage::kAdded;
  if (received.receipt() != wire::RECEIPT_REFUSED) {
    if (was_added) settle(found->second);
    return true;
  }
  if (was_added) forward(found->second);
  return false;
}

// ---- frames of clients ----

bool RelaySums::take(std::uint32_t channel, ForwardedFrame& forwarded) {
  const auto found = replies_.find(channel);
  if (found == replies_.end()) return false;
  RelayReply& reply = found->second;
  // A duplicate: the reply, or a sum with it, was already sent to the server. The server decides what to do
  // with it.
  if (reply.stage == ReplyStage::kAdded || reply.stage == ReplyStage::kPassedOn) return false;
  const auto head = adder_->head(forwarded);
  // An error status or a late reply: the client may still send the expected reply.
  if (head && (head->request_id != request_id_ || head->status != ReplyStatus::kReply)) return false;
  const bool is_sound = head && head->round == round_ && head->client == reply.client;
  if (!is_sound && reply.stage == ReplyStage::kHeld) return false;  // the held reply may be valid
  if (is_sound && bytes_held_ + forwarded.bytes() > kMostBytesHeld) send_all();
  if (reply.stage == ReplyStage::kAdded || reply.stage == ReplyStage::kPassedOn) return false;
  if (!is_sound || bytes_held_ + forwarded.bytes() > kMostBytesHeld) {
    settle(reply);
    send_when_complete();
    return false;
  }
  if (reply.stage == ReplyStage::kHeld) bytes_held_ -= reply.forwarded.bytes();
  reply.stage = ReplyStage::kHeld;
  reply.forwarded = std::move(forwarded);
  bytes_held_ += reply.forwarded.bytes();
  send_when_complete();
  return true;
}

void RelaySums::left(std::uint32_t channel, bool by_server) {
  clients_.erase(channel);
  const auto found = replies_.find(channel);
  if (found == replies_.end()) return;
  if (found->second.stage == ReplyStage::kHeld && !by_server) forward(found->second);
  settle(found->second);
  replies_.erase(found);
  send_when_complete();
}

void RelaySums::check_time(SteadyTime now) {
  if (now - since_ >= half_deadline_) send_all();
}

void RelaySums::forget() {
  allowed_ = false;
  clients_.clear();
  replies_.clear();
  request_id_ = bytes_held_ = 0;
}

// ---- sending ----

// Releases a reply that is finished.
void RelaySums::settle(RelayReply& reply) {
  if (reply.stage == ReplyStage::kHeld || reply.stage == ReplyStage::kAdded)
    bytes_held_ -= reply.forwarded.bytes();
  reply.stage = ReplyStage::kPassedOn;
  reply.forwarded = {};
}

void RelaySums::forward(RelayReply& reply) {
  const Outgoing frame = reply.forwarded.for_channel(reply.channel);
  settle(reply);
  up_(frame);
}

void RelaySums::send_when_complete() {
  const bool waits = std::any_of(replies_.begin(), replies_.end(), [](const auto& reply) {
    return reply.second.stage == ReplyStage::kAwaited;
  });
  if (all_asked_ && !waits) send_all();
}

void RelaySums::send_all() {
  std::vector<RelayReply*> held;
  for (auto& [channel, reply] : replies_)
    if (reply.stage == ReplyStage::kHeld) held.push_back(&reply);
  std::stable_sort(held.begin(), held.end(), [](auto* a, auto* b) { return a->client < b->client; });
  for (std::span<RelayReply* const> rest = held; !rest.empty();) {
    const auto some = rest.first(std::min(rest.size(), kMostCovered));
    rest = rest.subspan(some.size());
    if (const auto sum = adder_->add(some)) up_(*sum);
    for (RelayReply* const reply : some)
      if (reply->stage == ReplyStage::kHeld) forward(*reply);
  }
}

}  // namespace gradwire
