#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "proto/wire/codec.h"
#include "proto/wire/codec_reader.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

static_assert(static_cast<int>(ReplyStatus::kReply) == wire::ANSWER_REPLY);
static_assert(static_cast<int>(ReplyStatus::kNeedsState) == wire::ANSWER_NEEDS_STATE);
static_assert(static_cast<int>(ReplyStatus::kNeedsBroadcast) == wire::ANSWER_NEEDS_BROADCAST);
static_assert(static_cast<int>(ReplyStatus::kNotFinite) == wire::ANSWER_NOT_FINITE);
static_assert(static_cast<int>(RequestKind::kRound) == wire::REQUEST_ROUND);
static_assert(static_cast<int>(RequestKind::kEvaluate) == wire::REQUEST_EVALUATE);
static_assert(static_cast<int>(RequestKind::kShutdown) == wire::REQUEST_GOODBYE);
static_assert(static_cast<int>(RequestKind::kMeasure) == wire::REQUEST_MEASURE);

// Returns the position of the first value that is not finite, or values.size().
template <class Real>
std::size_t first_non_finite(View<Real> values) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits kInfinity = sizeof(Real) == 4 ? Bits{0x7F800000} : static_cast<Bits>(0x7FF0000000000000);
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Real) - 1);
  constexpr std::size_t kBlock = 4096;  // scanned without branches, so that the loop is vectorized
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, values.size());
    Bits largest = 0;
    for (std::size_t i = begin; i < end; ++i)
      largest = std::max<Bits>(largest, std::bit_cast<Bits>(values[i]) & ~kSign);
    if (largest < kInfinity) continue;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(values[i])) return i;
    }
  }
  return values.size();
}

}  // namespace

template <class Real>
struct RequestSlot<Real>::Impl {
  explicit Impl(const CodecContext& c) : context(c) {}

  Status plan();
  Status redraw();
  Status check_evaluation() const;

  CodecContext context;
  FrameReader frame;
  wire::Round header;
  PartsReader<Real> body_parts, resync_parts;
  Downlink<Real> body, resync;
  BlockMemo draws;
};

template <class Real>
Status RequestSlot<Real>::Impl::plan() {
  if (!header.has_request() || !header.has_request_id() || !header.has_committed()) {
    return Error{"request, request id or committed is missing or unknown"};
  }
  if (header.has_body() == (header.request() == wire::REQUEST_GOODBYE)) {
    return Error{"only a shutdown has no body"};
  }
  if (header.has_resync() && !header.has_body()) return Error{"a resync without a body"};
  body_parts.forget();
  resync_parts.forget();
  if (header.has_body()) {
    const wire::Body& b = header.body();
    if (!b.has_round() || !b.has_flags()) return Error{"the body lacks its round or flags"};
    if (Status s = body_parts.plan(b.parts(), context, context.compressor_down.has_value()); !s) return s;
  }
  if (header.has_resync()) {
    const wire::Body& r = header.resync();
    if (!r.has_round() || !r.has_flags()) return Error{"the resync lacks its round or flags"};
    if (Status s = resync_parts.plan(r.parts(), context, context.compressor_down.has_value()); !s) return s;
  }
  if (is_evaluation(static_cast<RequestKind>(header.request()))) return check_evaluation();
  return Unit{};
}

template <class Real>
Status RequestSlot<Real>::Impl::redraw() {
  if (!context.compressor_down) return Unit{};
  const RngKey key{context.seed, kServerClient, header.body().round(), RngDomain::kCompressor};
  if (Status s = body_parts.redraw(*context.compressor_down, key, draws); !s) return s;
  RngKey resync_key = key;
  resync_key.round = header.resync().round();
  return resync_parts.redraw(*context.compressor_down, resync_key, draws);
}

template <class Real>
Status RequestSlot<Real>::Impl::check_evaluation() const {
  const auto& parts = header.body().parts();
  if (parts.size() != 1 || parts[0].shape() != wire::SHAPE_DENSE || parts[0].dim() != context.dim) {
    return Error{"the body of an evaluation must be one dense vector of the run's dimension"};
  }
  return Unit{};
}

template <class Real>
RequestSlot<Real>::RequestSlot(const CodecContext& context) : impl_(std::make_unique<Impl>(context)) {}
template <class Real>
RequestSlot<Real>::~RequestSlot() = default;

template <class Real>
Result<std::span<const std::span<std::byte>>> RequestSlot<Real>::prepare(const Prefix& prefix,
                                                                         std::span<const std::byte> header) {
  Impl& m = *impl_;
  if (Status s = m.frame.parse(prefix, header, FrameType::kRound, m.header); !s) return s.error();
  if (m.header.has_same_body()) return Error{"same_body: only a relay can receive it"};
  if (Status s = m.plan(); !s) return s.error();
  if (Status s = m.frame.check_length(m.body_parts.payload_bytes() + m.resync_parts.payload_bytes()); !s) {
    return s.error();
  }
  m.body_parts.make_room(m.frame.targets());
  m.resync_parts.make_room(m.frame.targets());
  return m.frame.ready();
}

template <class Real>
Result<Request<Real>> RequestSlot<Real>::finish() {
  Impl& m = *impl_;
  if (Status s = m.frame.check_payload(crc32c); !s) return s.error();
  if (Status s = m.body_parts.unpack(); !s) return s.error();
  if (Status s = m.resync_parts.unpack(); !s) return s.error();
  if (Status s = m.redraw(); !s) return s.error();
  Request<Real> request;
  request.kind = static_cast<RequestKind>(m.header.request());
  request.request_id = m.header.request_id();
  request.committed = m.header.committed();
  if (m.header.has_body()) {
    m.body = {m.header.body().round(), m.header.body().flags(), m.body_parts.view()};
    request.body = &m.body;
  }
  if (m.header.has_resync()) {
    m.resync = {m.header.resync().round(), m.header.resync().flags(), m.resync_parts.view()};
    request.resync = &m.resync;
  }
  return request;
}

template <class Real>
struct UplinkSlot<Real>::Impl {
  Impl(const CodecContext& c, bool keep) : context(c), keeps_frames(keep) {}

  Result<std::span<const std::span<std::byte>>> plan();
  void keep_header(std::span<const std::byte> bytes);
  void keep_frame();
  Status check_fields() const;
  Status check_covers() const;
  Status check_finite(const UplinkView<Real>& uplink) const;

  CodecContext context;
  const bool keeps_frames;
  std::string head;  // prefix and header, as received
  std::vector<std::span<const std::byte>> segments;
  FrameReader frame;
  wire::Reply header;
  PartsReader<Real> parts;
  Parts<Real> finished;  // viewed by the last result of finish()
  BlockMemo draws;
};

// Makes room for the parts of the header if header and frame agree on the length.
template <class Real>
Result<std::span<const std::span<std::byte>>> UplinkSlot<Real>::Impl::plan() {
  if (Status s = parts.plan(header.parts(), context, true); !s) return s.error();
  if (Status s = frame.check_length(parts.payload_bytes()); !s) return s.error();
  parts.make_room(frame.targets());
  return frame.ready();
}

template <class Real>
void UplinkSlot<Real>::Impl::keep_header(std::span<const std::byte> bytes) {
  segments.clear();
  if (!keeps_frames) return;
  head.assign(kPrefixBytes, '\0');
  head.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

template <class Real>
void UplinkSlot<Real>::Impl::keep_frame() {
  if (!keeps_frames || !parts.keeps_frame()) return;
  const auto header_bytes = std::as_bytes(std::span(head)).subspan(kPrefixBytes);
  const Prefix& prefix = frame.prefix();
  const auto raw = write_prefix(FrameType::kReply, header_bytes, prefix.payload_len, prefix.payload_crc);
  std::memcpy(head.data(), raw.data(), raw.size());
  segments.assign(1, std::as_bytes(std::span(head)));
  segments.insert(segments.end(), frame.targets().begin(), frame.targets().end());
}

template <class Real>
Status UplinkSlot<Real>::Impl::check_fields() const {
  if (!header.has_request_id() || !header.has_round() || !header.has_client() || !header.has_answer() ||
      !header.has_loss() || !header.has_grad_calls()) {
    return Error{"request id, round, client, answer, loss or grad_calls is missing or unknown"};
  }
  if (header.has_correct() != header.has_tested() || header.correct() > header.tested()) {
    return Error{"correct and tested contradict each other"};
  }
  if (header.has_from_byte()) return Error{"it is the rest of a message whose beginning is missing"};
  if (header.has_in_pieces()) return Error{"its chunks are missing"};
  return Unit{};
}

// Checks a sum's list of clients, and that it is a reply of plain vectors, which can be added.
template <class Real>
Status UplinkSlot<Real>::Impl::check_covers() const {
  const auto& covers = header.covers();
  if (covers.size() < 2 || static_cast<std::size_t>(covers.size()) > kMostCovered)
    return Error{"a sum covers " + std::to_string(covers.size()) + " clients"};
  for (int k = 1; k < covers.size(); ++k)
    if (covers[k] <= covers[k - 1]) return Error{"the clients of a sum are not in ascending order"};
  if (covers[covers.size() - 1] >= context.clients || covers[0] != header.client())
    return Error{"a sum covers an unknown client, or is not named after its first client"};
  if (header.answer() != wire::ANSWER_REPLY || header.has_tested())
    return Error{"a sum of replies that cannot be added up"};
  for (const wire::Part& part : header.parts()) {
    const bool whole = part.shape() == wire::SHAPE_NOTHING || part.shape() == wire::SHAPE_DENSE;
    if (!whole || part.packing() != wire::PACKING_PLAIN || part.continued())
      return Error{"a sum must consist of whole vectors"};
  }
  return Unit{};
}

template <class Real>
Status UplinkSlot<Real>::Impl::check_finite(const UplinkView<Real>& uplink) const {
  const auto refuse = [&](const std::string& what) {
    return Error{"client " + std::to_string(uplink.client) + ", round " + std::to_string(uplink.round) +
                 ": " + what + " is not finite"};
  };
  if (!std::isfinite(uplink.loss)) return refuse("the loss");
  Status status = Unit{};
  parts.each_unchecked([&](std::size_t part, View<Real> values) {
    const std::size_t i = first_non_finite(values);
    if (i < values.size()) status = refuse("value " + std::to_string(i) + " of part " + std::to_string(part));
    return status.has_value();
  });
  return status;
}

template <class Real>
UplinkSlot<Real>::UplinkSlot(const CodecContext& context, bool keeps_frames)
    : impl_(std::make_unique<Impl>(context, keeps_frames)) {}
template <class Real>
UplinkSlot<Real>::~UplinkSlot() = default;

template <class Real>
Result<std::span<const std::span<std::byte>>> UplinkSlot<Real>::prepare(const Prefix& prefix,
                                                                        std::span<const std::byte> header) {
  Impl& m = *impl_;
  if (Status s = m.frame.parse(prefix, header, FrameType::kReply, m.header); !s) return s.error();
  if (Status s = m.check_fields(); !s) return s.error();
  if (m.header.covers_size() > 0) return Error{"a client answers for others"};
  m.keep_header(header);
  return m.plan();
}

template <class Real>
Result<std::span<const std::span<std::byte>>> UplinkSlot<Real>::prepare_sum(
    const Prefix& prefix, std::span<const std::byte> header) {
  Impl& m = *impl_;
  const std::size_t most_bytes = kMaxRoundHeaderBytes + kMostCovered * sizeof(ClientId);
  if (Status s = m.frame.parse(prefix, header, FrameType::kReply, m.header, most_bytes); !s) return s.error();
  if (Status s = m.check_fields(); !s) return s.error();
  if (Status s = m.check_covers(); !s) return s.error();
  return m.plan();
}

template <class Real>
std::span<const ClientId> UplinkSlot<Real>::covers() const {
  const auto& covers = impl_->header.covers();
  return {covers.data(), static_cast<std::size_t>(covers.size())};
}

template <class Real>
Result<UplinkView<Real>> UplinkSlot<Real>::finish(ClientId client, BlockMemo* draws) {
  Impl& m = *impl_;
  const auto check = [&m](std::span<const std::byte> target, std::uint32_t crc) {
    return m.parts.check(target, crc);
  };
  if (Status s = m.frame.check_payload(check); !s) return s.error();
  if (m.header.client() != client) {
    return Error{"client " + std::to_string(client) + " answered in the name of client " +
                 std::to_string(m.header.client())};
  }
  UplinkView<Real> uplink(announced(), {});
  if (Status s = m.parts.unpack(m.keeps_frames); !s) return s.error();
  const std::uint32_t draw = draw_number(m.context.asynchronous, uplink.round, uplink.request_id);
  const RngKey key{m.context.seed, client, draw, RngDomain::kCompressor};
  if (Status s = m.parts.redraw(m.context.compressor, key, draws != nullptr ? *draws : m.draws); !s)
    return s.error();
  m.finished = m.parts.view();
  uplink.parts = m.finished;
  if (Status s = m.check_finite(uplink); !s) return s.error();
  m.keep_frame();
  return uplink;
}

template <class Real>
std::span<const std::span<const std::byte>> UplinkSlot<Real>::frame() const {
  return impl_->segments;
}
template <class Real>
void UplinkSlot<Real>::release() {
  impl_->segments.clear();
  impl_->parts.release();
}

template <class Real>
std::uint64_t RequestSlot<Real>::have_bytes() const {
  return impl_->header.have_bytes();
}
template <class Real>
std::uint64_t UplinkSlot<Real>::request_id() const {
  return impl_->header.request_id();
}
template <class Real>
UplinkHeader UplinkSlot<Real>::announced() const {
  const wire::Reply& header = impl_->header;
  UplinkHeader uplink;
  uplink.request_id = header.request_id();
  uplink.round = header.round();
  uplink.client = header.client();
  uplink.status = static_cast<ReplyStatus>(header.answer());
  uplink.loss = header.loss();
  uplink.grad_calls = header.grad_calls();
  uplink.correct = header.correct();
  uplink.tested = header.tested();
  return uplink;
}

template class RequestSlot<float>;
template class RequestSlot<double>;
template class UplinkSlot<float>;
template class UplinkSlot<double>;

}  // namespace gradwire
