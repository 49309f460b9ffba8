#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

#include "base/crc32c.h"
#include "proto/wire/codec.h"
#include "proto/wire/codec_body.h"
#include "proto/wire/codec_layout.h"
#include "proto/wire/wire.pb.h"
#include "proto/wire/zstd_section.h"

namespace gradwire {
namespace {

using Sections = std::vector<std::span<const std::byte>>;

std::uint64_t message_field_bytes(std::uint64_t length) {
  assert(length < 128 * 128);
  return (length < 128 ? 2 : 3) + length;
}

// Appends an embedded message that is already serialized.
void append_message_field(std::string& header, int field, const std::string& message) {
  header.push_back(static_cast<char>(field << 3 | 2));
  if (message.size() < 128) {
    header.push_back(static_cast<char>(message.size()));
  } else {
    header.push_back(static_cast<char>(message.size() % 128 | 128));
    header.push_back(static_cast<char>(message.size() / 128));
  }
  header += message;
}

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s)); }

std::uint32_t crc_of(const Sections& sections, std::uint32_t crc) {
  for (const auto section : sections) crc = crc32c(section, crc);
  return crc;
}

std::uint64_t size_of(const Sections& sections) {
  std::uint64_t size = 0;
  for (const auto section : sections) size += section.size();
  return size;
}

void finish(Encoded& message, FrameType type, std::uint64_t payload_len, std::uint32_t payload_crc) {
  message.prefix = write_prefix(type, bytes_of(message.header), payload_len, payload_crc);
  message.bytes = kPrefixBytes + message.header.size() + payload_len;
}

// The compressor and key with which the receiver of a message draws supports again. `compressor` is null if
// the receiver draws none.
struct Redraws {
  const Compressor* compressor;
  RngKey key;  // key of part 0: seed of the run, client, round
};

template <class Real>
Redraws redraws_of(const CodecContext& context, const UplinkView<Real>& uplink) {
  return {&context.compressor,
          {context.seed, uplink.client, draw_number(context.asynchronous, uplink.round, uplink.request_id),
           RngDomain::kCompressor}};
}
template <class Real>
Redraws redraws_of(const CodecContext& context, const Downlink<Real>& body) {
  return {context.compressor_down ? &*context.compressor_down : nullptr,
          {context.seed, kServerClient, body.round, RngDomain::kCompressor}};
}

// Returns whether the receiver draws the same support. It does not if another compressor drew it, which is a
// programming error of the algorithm.
template <class Real>
[[maybe_unused]] bool redraws_to(const Compressor* c, const Payload<Real>& p) {
  std::vector<std::uint32_t> indices;
  std::uint32_t first = 0;
  if (c == nullptr || !redraw_support(*c, p.shape, p.values.size(), p.dim, *p.key, indices, first))
    return false;
  return p.shape == Shape::kRange
             ? first == p.first
             : std::equal(indices.begin(), indices.end(), p.indices.begin(), p.indices.end());
}

// Returns whether the receiver can derive this support.
template <class Real>
bool derivable(const Redraws& redraws, const Payload<Real>& p, std::size_t part, std::size_t link) {
  if (p.key == nullptr || redraws.compressor == nullptr || *p.key != part_key(redraws.key, part, link))
    return false;
  assert(redraws_to(chain_link(*redraws.compressor, link), p));
  return true;
}

// Calls use(payload, layout, number) for the parts and their second summands. `number` selects the work
// space.
template <class Real, class Use>
void each_layout(std::span<const Payload<Real>> parts, const Redraws& redraws, Use use) {
  for (std::size_t k = 0; k < parts.size(); ++k) {
    std::size_t link = 0;
    for (const Payload<Real>* p = &parts[k]; p != nullptr; p = p->next, ++link) {
      if (link == kMaxLinks) throw std::logic_error("codec: a payload has too many summands");
      Layout layout = layout_of(*p, derivable(redraws, *p, k, link));
      use(*p, layout, k * kMaxLinks + link);
    }
  }
}

template <class Real>
bool is_evaluation(const UplinkView<Real>& uplink) {
  return uplink.tested != 0 || uplink.correct != 0;
}

// Makes the sections of one part as sent, and notes in the layout which ones were compressed.
class PartWriter {
 public:
  PartWriter(const ZstdMode& zstd, SectionCompressor& compressor) : zstd_(zstd), compressor_(compressor) {}

  bool may_compress(const Layout& layout) const {
    return SectionCompressor::applies(zstd_, layout.index_bytes) ||
           SectionCompressor::applies(zstd_, layout.value_bytes);
  }

  template <class Real>
  void write(const Payload<Real>& p, Layout& layout, PartSpace& space, Sections& to) {
    if (layout.index_bytes > 0) {
      const auto packed = space.indices.take(layout.index_bytes);
      pack_indices(p.indices, p.dim, packed);
      layout.index_zstd = push(packed, space.index_frame, to);
    }
    if (layout.value_bytes > 0) {
      std::span<const std::byte> raw = std::as_bytes(p.values);
      if (layout.is_packed()) {
        const auto packed = space.values.take(layout.value_bytes);
        pack_values<Real>(p.values, {p.packing, p.levels, p.unit}, packed);
        raw = packed;
      }
      layout.value_zstd = push(raw, space.value_frame, to);
    }
  }

 private:
  // Appends a section, compressed if that pays. Returns its compressed size, or 0 if it is sent raw.
  std::uint64_t push(std::span<const std::byte> raw, ByteBuffer& frame, Sections& to) {
    const auto compressed = compressor_.compress(zstd_, raw, frame);
    if (compressed.empty()) frame.release_if_large();
    to.push_back(compressed.empty() ? raw : compressed);
    return compressed.size();
  }

  const ZstdMode& zstd_;
  SectionCompressor& compressor_;
};

}  // namespace

template <class Real>
struct Codec<Real>::Impl {
  explicit Impl(CodecContext c) : context(std::move(c)), writer(context.zstd, compressor) {}

  // The bytes that parts add to header and payload.
  struct Size {
    std::uint64_t header = 0, payload = 0;
  };
  Size size_of_parts(std::span<const Payload<Real>> parts, const Redraws& redraws) {
    Size size;
    each_layout<Real>(parts, redraws, [&](const Payload<Real>& p, Layout& layout, std::size_t) {
      if (writer.may_compress(layout)) {
        unsent.clear();
        writer.write(p, layout, sizing, unsent);
        sizing.release_if_large();
      }
      size.header += layout.header_bytes();
      size.payload += layout.sent_bytes();
    });
    return size;
  }

  CodecContext context;
  SectionCompressor compressor;
  PartWriter writer;
  wire::Reply reply;  // reused, so that its parts are allocated only once
  Encoded uplink;
  std::array<PartSpace, kMaxParts * kMaxLinks> spaces;  // work space of `uplink`
  PartSpace sizing;                                     // for encoded_bytes(), which leaves `uplink` alone
  Sections unsent;
};

template <class Real>
Codec<Real>::Codec(CodecContext context) : impl_(std::make_unique<Impl>(std::move(context))) {}
template <class Real>
Codec<Real>::~Codec() = default;
template <class Real>
const CodecContext& Codec<Real>::context() const {
  return impl_->context;
}

template <class Real>
std::shared_ptr<const EncodedBody<Real>> Codec<Real>::encode_body(const Downlink<Real>& body) {
  auto encoded = std::make_shared<EncodedBody<Real>>();
  wire::Body header;
  header.set_round(body.round);
  header.set_flags(body.flags);
  each_layout<Real>(body.parts, redraws_of(impl_->context, body),
                    [&](const Payload<Real>& p, Layout& layout, std::size_t number) {
                      impl_->writer.write(p, layout, encoded->spaces[number], encoded->sections);
                      if (layout.value_bytes > 0 && !layout.is_packed() && layout.value_zstd == 0)
                        encoded->borrows = true;
                      write_layout(layout, *header.add_parts());
                    });
  header.SerializeToString(&encoded->header);
  encoded->payload_len = size_of(encoded->sections);
  encoded->payload_crc = crc_of(encoded->sections, 0);
  return encoded;
}

template <class Real>
std::uint64_t Codec<Real>::body_bytes(const Downlink<Real>& body) {
  const auto size = impl_->size_of_parts(body.parts, redraws_of(impl_->context, body));
  return message_field_bytes(kBodyFields + size.header) + size.payload;
}

template <class Real>
Encoded Codec<Real>::encode(const Request<Real>& request, const EncodedBody<Real>* body,
                            const EncodedBody<Real>* resync, std::uint64_t have_bytes, bool same_body) const {
  Encoded message;
  wire::Round header;
  header.set_request(static_cast<wire::RequestKind>(request.kind));
  header.set_request_id(request.request_id);
  header.set_committed(request.committed);
  if (have_bytes > 0) header.set_have_bytes(have_bytes);
  if (same_body) header.set_same_body(true);
  message.header.reserve(kMaxRoundHeaderBytes);
  header.AppendToString(&message.header);
  std::uint64_t payload_len = 0;
  std::uint32_t payload_crc = 0;
  if (body != nullptr) {
    append_message_field(message.header, wire::Round::kBodyFieldNumber, body->header);
    message.sections = body->sections;
    payload_len = body->payload_len;
    payload_crc = body->payload_crc;
  }
  if (resync != nullptr) {
    append_message_field(message.header, wire::Round::kResyncFieldNumber, resync->header);
    message.sections.insert(message.sections.end(), resync->sections.begin(), resync->sections.end());
    payload_len += resync->payload_len;
    payload_crc = crc_of(resync->sections, payload_crc);
  }
  finish(message, FrameType::kRound, payload_len, payload_crc);
  return message;
}

template <class Real>
std::uint64_t Codec<Real>::request_bytes(std::uint64_t body, std::uint64_t resync) {
  return kPrefixBytes + kRoundFields + body + resync;
}

template <class Real>
const Encoded& Codec<Real>::encode(const UplinkView<Real>& uplink, std::span<const ClientId> covers) {
  Impl& m = *impl_;
  wire::Reply& header = m.reply;
  header.Clear();
  header.set_request_id(uplink.request_id);
  header.set_round(uplink.round);
  header.set_client(uplink.client);
  header.set_answer(static_cast<wire::ReplyStatus>(uplink.status));
  header.set_loss(uplink.loss);
  header.set_grad_calls(uplink.grad_calls);
  if (is_evaluation(uplink)) {
    header.set_correct(uplink.correct);
    header.set_tested(uplink.tested);
  }
  header.mutable_covers()->Assign(covers.begin(), covers.end());
  release_uplink();
  each_layout<Real>(uplink.parts, redraws_of(m.context, uplink),
                    [&](const Payload<Real>& p, Layout& layout, std::size_t number) {
                      m.writer.write(p, layout, m.spaces[number], m.uplink.sections);
                      write_layout(layout, *header.add_parts());
                    });
  header.SerializeToString(&m.uplink.header);
  finish(m.uplink, FrameType::kReply, size_of(m.uplink.sections), crc_of(m.uplink.sections, 0));
  return m.uplink;
}

template <class Real>
void Codec<Real>::release_uplink() {
  impl_->uplink.sections.clear();
  for (PartSpace& space : impl_->spaces) space.release_if_large();
}

template <class Real>
std::uint64_t Codec<Real>::encoded_bytes(const UplinkView<Real>& uplink) {
  const auto size = impl_->size_of_parts(uplink.parts, redraws_of(impl_->context, uplink));
  return kPrefixBytes + kReplyFields + (is_evaluation(uplink) ? kEvaluationFields : 0) + size.header +
         size.payload;
}

template class Codec<float>;
template class Codec<double>;

}  // namespace gradwire
