// Receives the parts of one message, and the frame around them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "proto/wire/codec.h"
#include "proto/wire/codec_layout.h"
#include "proto/wire/wire.pb.h"
#include "proto/wire/wire_fields.h"
#include "proto/wire/zstd_section.h"

namespace gradwire {

using Targets = std::vector<std::span<std::byte>>;

// Resizes a reused vector. Frees memory that only a much larger message needed.
template <class T>
void resize_kept(std::vector<T>& v, std::size_t size) {
  const bool wasteful = v.capacity() * sizeof(T) > ByteBuffer::kKeptBytes && size < v.capacity() / 4;
  if (wasteful || size > v.capacity()) std::vector<T>().swap(v);  // free before allocating, and copy nothing
  v.resize(size);
}

// A reused array that frees memory which only a much larger message needed. Its contents are not initialized,
// so a message that is announced but does not come takes address space, but no memory.
template <class T>
class KeptArray {
 public:
  void resize(std::size_t size) {
    const bool wasteful = capacity_ * sizeof(T) > ByteBuffer::kKeptBytes && size < capacity_ / 4;
    if (wasteful || size > capacity_) {
      items_.reset();  // free before allocating
      size_ = capacity_ = 0;
      if (size > 0) items_ = std::make_unique_for_overwrite<T[]>(size);
      capacity_ = size;
    }
    size_ = size;
  }
  std::span<T> span() { return {items_.get(), size_}; }
  std::span<const T> span() const { return {items_.get(), size_}; }

 private:
  std::unique_ptr<T[]> items_;
  std::size_t size_ = 0, capacity_ = 0;
};

// Receives one part into reused vectors.
template <class Real>
class PartReader {
 public:
  Status plan(const wire::Part& header, const CodecContext& context, bool may_be_seeded) {
    auto layout = read_layout(header, context.longest(), sizeof(Real), may_be_seeded);
    if (!layout) return layout.error();
    layout_ = *layout;
    return Unit{};
  }
  const Layout& layout() const { return layout_; }

  // Allocates the buffers, and appends to `targets` where the received bytes go. Call it after plan() of all
  // parts. A compressed vector gets room only for its compressed bytes until unpack().
  void make_room(Targets& targets) {
    values_.resize(layout_.value_zstd != 0 && !layout_.is_packed() ? 0 : layout_.count);
    keeps_frame_ = true;
    finite_ = false;
    push_target(raw_indices(), layout_.index_zstd, layout_.index_bytes, index_frame_, targets);
    push_target(raw_values(), layout_.value_zstd, layout_.value_bytes, value_frame_, targets);
  }

  // Returns whether `target` is the vector of values itself, which is read straight from the socket.
  bool is_vector(std::span<const std::byte> target) const {
    return layout_.value_zstd == 0 && !layout_.is_packed() && layout_.count > 0 &&
           target.data() == std::as_bytes(values_.span()).data();
  }
  // Continues a checksum over the vector, and notes whether its values are finite.
  std::uint32_t check_vector(std::uint32_t crc) {
    const CheckedNumbers checked = check_numbers(values(), crc);
    finite_ = checked.finite;
    return checked.crc;
  }
  bool is_known_finite() const { return finite_; }
  View<Real> values() const { return values_.span(); }

  // Unpacks the sections. With `keep`, the received bytes stay until release() if they are worth keeping.
  Status unpack(bool keep) {
    if (layout_.index_zstd != 0) {
      if (Status s = decompress_section(index_frame_.take(layout_.index_zstd), raw_indices()); !s) return s;
    }
    if (layout_.value_zstd != 0) {
      values_.resize(layout_.count);
      if (Status s = decompress_section(value_frame_.take(layout_.value_zstd), raw_values()); !s) return s;
    }
    resize_kept(indices_, layout_.shape == Shape::kSparse ? layout_.count : 0);
    if (layout_.shape == Shape::kSparse && !layout_.seeded) {
      if (Status s = unpack_indices(raw_indices(), layout_.dim, indices_); !s) return s;
    }
    packed_ = {layout_.packing, static_cast<std::uint16_t>(layout_.levels), static_cast<Real>(layout_.unit)};
    if (layout_.is_packed()) {
      if (Status s = unpack_values<Real>(raw_values(), packed_, values_.span()); !s) return s;
    }
    if (layout_.index_zstd != 0) packed_indices_.release_if_large();
    if (layout_.value_zstd != 0) packed_values_.release_if_large();
    if (!keep || !is_worth_keeping()) release();
    return Unit{};
  }
  // Returns whether the received bytes are kept. Call it after unpack(true).
  bool keeps_frame() const { return keeps_frame_; }
  void release() {
    keeps_frame_ = false;
    for (ByteBuffer* buffer : {&packed_indices_, &packed_values_, &index_frame_, &value_frame_})
      buffer->release_if_large();
  }

  // Draws a seeded support again. Call it before view(). `compressor` is null if the run has none for this
  // part.
  Status redraw(const Compressor* compressor, const RngKey& key, BlockMemo& draws) {
    if (!layout_.seeded) return Unit{};
    if (key_ == nullptr) key_ = std::make_unique<RngKey>();
    *key_ = key;
    if (compressor == nullptr || !redraw_support(*compressor, layout_.shape, layout_.count, layout_.dim, key,
                                                 indices_, layout_.first, draws)) {
      return Error{"the compressor of this run does not make such a seeded support"};
    }
    const bool fits =
        layout_.shape == Shape::kRange ? layout_.first < layout_.dim : indices_.size() == layout_.count;
    return fits ? Status(Unit{}) : Status(Error{"the seeded support does not fit the values"});
  }

  Payload<Real> view() const {
    Payload<Real> p;
    p.shape = layout_.shape;
    p.packing = packed_.packing;
    p.levels = packed_.levels;
    p.unit = packed_.unit;
    p.rows = layout_.rows;
    p.dim = layout_.dim;
    p.first = layout_.first;
    if (layout_.shape == Shape::kSparse) p.indices = indices_;
    p.values = values();
    if (layout_.seeded) p.key = key_.get();
    return p;
  }

 private:
  std::span<std::byte> raw_indices() { return packed_indices_.take(layout_.index_bytes); }
  std::span<std::byte> raw_values() {
    if (layout_.is_packed()) return packed_values_.take(layout_.value_bytes);
    return std::as_writable_bytes(values_.span());
  }

  // Returns whether to keep the compressed bytes of a vector. Long ones are kept only if they are at most
  // half as long as the uncompressed vector.
  bool is_worth_keeping() const {
    const std::uint64_t twice = 2 * layout_.value_zstd;
    return layout_.is_packed() || layout_.value_zstd <= ByteBuffer::kKeptBytes ||
           twice <= layout_.value_bytes;
  }

  // `raw_bytes` bounds the compressed size in later messages of the same shape.
  static void push_target(std::span<std::byte> raw, std::uint64_t zstd_bytes, std::uint64_t raw_bytes,
                          ByteBuffer& frame, Targets& targets) {
    const std::span<std::byte> target = zstd_bytes != 0 ? frame.take(zstd_bytes, raw_bytes) : raw;
    if (!target.empty()) targets.push_back(target);
  }

  Layout layout_;
  Packed<Real> packed_;
  std::unique_ptr<RngKey> key_;  // keeps its address when this object is moved
  bool keeps_frame_ = true;
  bool finite_ = false;  // the values are known to be finite
  std::vector<std::uint32_t> indices_;
  KeptArray<Real> values_;
  ByteBuffer packed_indices_, packed_values_;  // sections that are not the vectors themselves
  ByteBuffer index_frame_, value_frame_;       // compressed sections, as received
};

// Reads the parts of one Downlink or Uplink, with one reader for each part of the header. A payload with a
// second summand has two readers, one after the other.
template <class Real>
class PartsReader {
 public:
  template <class Repeated>
  Status plan(const Repeated& headers, const CodecContext& context, bool may_be_seeded) {
    count_ = 0;
    const auto needed = static_cast<std::size_t>(headers.size());
    if (needed > kMaxParts * kMaxLinks) return Error{"a message has too many parts"};
    if (needed > readers_.size()) {
      readers_.resize(needed);
      place_.resize(needed);
    }
    std::size_t part = 0, link = 0;
    for (const wire::Part& header : headers) {
      if (part == kMaxParts) return Error{"a message has too many parts"};
      PartReader<Real>& reader = readers_[count_];
      place_[count_] = {part, link};
      if (Status s = reader.plan(header, context, may_be_seeded); !s) return in_part(count_, s);
      if (link > 0 && reader.layout().dim != readers_[count_ - 1].layout().dim)
        return in_part(count_, Error{"the second summand has a different dimension from the first"});
      ++count_;
      link = reader.layout().continued ? link + 1 : 0;
      part += link == 0 ? 1 : 0;
      if (link == kMaxLinks) return in_part(count_ - 1, Error{"a part has too many summands"});
    }
    return link == 0 ? Status(Unit{}) : Status(Error{"the second summand of the last part is missing"});
  }
  void forget() { count_ = 0; }

  std::uint64_t payload_bytes() const {
    std::uint64_t bytes = 0;
    for (std::size_t k = 0; k < count_; ++k) bytes += readers_[k].layout().sent_bytes();
    return bytes;
  }
  void make_room(Targets& targets) {
    for (std::size_t k = 0; k < count_; ++k) readers_[k].make_room(targets);
  }
  Status unpack(bool keep = false) {
    for (std::size_t k = 0; k < count_; ++k) {
      if (Status s = readers_[k].unpack(keep); !s) return in_part(k, s);
    }
    return Unit{};
  }
  // Continues a checksum over a target.
  std::uint32_t check(std::span<const std::byte> target, std::uint32_t crc) {
    for (std::size_t k = 0; k < count_; ++k)
      if (readers_[k].is_vector(target)) return readers_[k].check_vector(crc);
    return crc32c(target, crc);
  }
  // Calls f(part, values) until it returns false, for values that check() has not found finite.
  void each_unchecked(auto&& f) const {
    for (std::size_t k = 0; k < count_; ++k)
      if (!readers_[k].is_known_finite() && !f(place_[k].part, readers_[k].values())) return;
  }
  bool keeps_frame() const {
    return std::all_of(readers_.begin(), readers_.begin() + static_cast<std::ptrdiff_t>(count_),
                       [](const PartReader<Real>& reader) { return reader.keeps_frame(); });
  }
  void release() {
    for (std::size_t k = 0; k < count_; ++k) readers_[k].release();
  }
  // Draws the seeded supports again. `key` is the key of part 0; part_key() gives the keys of the others.
  Status redraw(const Compressor& compressor, const RngKey& key, BlockMemo& draws) {
    for (std::size_t k = 0; k < count_; ++k) {
      const auto [part, link] = place_[k];
      const Compressor* const c = chain_link(compressor, link);
      if (Status s = readers_[k].redraw(c, part_key(key, part, link), draws); !s) return in_part(k, s);
    }
    return Unit{};
  }
  // Returns the parts; they view this object. Call it after unpacking and redrawing.
  Parts<Real> view() {
    Parts<Real> parts;
    for (std::size_t k = 0; k < count_; ++k) {
      Payload<Real> p = readers_[k].view();
      if (readers_[k].layout().continued) {
        seconds_.resize(kMaxParts);
        seconds_[place_[k].part] = readers_[k + 1].view();
        p.next = &seconds_[place_[k].part];
        ++k;
      }
      parts.push_back(p);
    }
    return parts;
  }

 private:
  struct PartPlace {
    std::size_t part = 0, link = 0;
  };

  Error in_part(std::size_t k, const Status& s) const {
    return Error{"part " + std::to_string(place_[k].part) + ": " + s.error().message};
  }

  // As many readers as the largest message so far needed. Not more, because a server keeps such a vector for
  // each client, and most messages have one part.
  std::vector<PartReader<Real>> readers_;
  std::vector<PartPlace> place_;
  std::vector<Payload<Real>> seconds_;  // targets of `next` in views; empty or kMaxParts
  std::size_t count_ = 0;
};

// Check the lengths in a header before protobuf trusts them.
inline bool fits_part(std::span<const std::byte> part) {
  return fields_fit(part, [](int, auto) { return true; });
}
inline bool fits(std::span<const std::byte> header, const wire::Reply&) {
  std::size_t parts = 0;  // the header of a sum may be long enough for very many
  return fields_fit(header, [&](int field, auto part) {
    return field != wire::Reply::kPartsFieldNumber || (++parts <= kMaxParts * kMaxLinks && fits_part(part));
  });
}
inline bool fits(std::span<const std::byte> header, const wire::Round&) {
  return fields_fit(header, [](int field, auto body) {
    if (field != wire::Round::kBodyFieldNumber && field != wire::Round::kResyncFieldNumber) return true;
    return fields_fit(
        body, [](int inner, auto part) { return inner != wire::Body::kPartsFieldNumber || fits_part(part); });
  });
}

// Checks the frame around the parts, for requests and uplinks.
class FrameReader {
 public:
  template <class Message>
  Status parse(const Prefix& prefix, std::span<const std::byte> header, FrameType type, Message& message,
               std::size_t most_bytes = kMaxRoundHeaderBytes) {
    planned_ = false;
    targets_.clear();
    prefix_ = prefix;
    if (prefix.type != type) return Error{"unexpected message type"};
    if (header.size() != prefix.header_len) return Error{"the header's length differs from its prefix"};
    if (header.size() > most_bytes) return Error{"the header is too long for a round message"};
    if (!fits(header, message) || !message.ParseFromArray(header.data(), static_cast<int>(header.size()))) {
      return Error{"the header is damaged"};
    }
    return Unit{};
  }
  // Checks the payload's length once all sections are known, before allocating them.
  Status check_length(std::uint64_t payload_bytes) const {
    if (payload_bytes == prefix_.payload_len) return Unit{};
    return Error{"the payload has " + std::to_string(prefix_.payload_len) + " bytes, but the header needs " +
                 std::to_string(payload_bytes)};
  }
  Targets& targets() { return targets_; }
  const Prefix& prefix() const { return prefix_; }
  std::span<const std::span<std::byte>> ready() {
    planned_ = true;
    return targets_;
  }
  // Verifies the payload, once per message. check(target, crc) continues a checksum over a target.
  Status check_payload(auto&& check) {
    if (!std::exchange(planned_, false)) return Error{"no message was announced"};
    std::uint32_t crc = 0;
    for (const auto target : targets_) crc = check(target, crc);
    if (crc != prefix_.payload_crc) return Error{"the payload is damaged (wrong checksum)"};
    return Unit{};
  }

 private:
  Prefix prefix_;
  Targets targets_;
  bool planned_ = false;
};

}  // namespace gradwire
