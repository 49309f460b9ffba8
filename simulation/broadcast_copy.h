// Copy of a Downlink as it was sent. The server algorithm can go to the next round while clients still work
// on the copy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/core/message.h"
#include "base/serialize.h"
#include "compressors/payload_copy.h"
#include "proto/wire/codec.h"

namespace gradwire {

template <class Real>
class BroadcastCopy {
 public:
  // Copies the body into buffers that the next call reuses.
  void keep(const Downlink<Real>& from) {
    down_ = from;
    down_.parts = {};
    arena_.clear();
    for (Payload<Real> part : from.parts) {
      copy_payload(part, arena_);
      down_.parts.push_back(part);
    }
    encoded = nullptr;
  }
  bool is(const Downlink<Real>& other) const {
    if (down_.round != other.round || down_.flags != other.flags || down_.parts.size() != other.parts.size())
      return false;
    for (std::size_t k = 0; k < other.parts.size(); ++k)
      if (!are_equal(&down_.parts[k], &other.parts[k])) return false;
    return true;
  }
  const Downlink<Real>& down() const { return down_; }

  void save(Saver& to) const {
    to(down_.round), to(down_.flags), to(static_cast<std::uint64_t>(down_.parts.size()));
    for (const Payload<Real>& part : down_.parts) {
      for (const Payload<Real>* p = &part; p != nullptr; p = p->next) {
        to(static_cast<std::uint8_t>(p->shape)), to(static_cast<std::uint8_t>(p->packing));
        to(p->levels), to(p->dim), to(p->first), to(p->rows), to(p->unit);
        to(std::vector(p->indices.begin(), p->indices.end()));
        to(std::vector(p->values.begin(), p->values.end()));
        const RngKey key = p->key == nullptr ? RngKey{} : *p->key;
        to(static_cast<std::uint8_t>(p->key != nullptr)), to(key.seed), to(key.client), to(key.round);
        to(static_cast<std::uint32_t>(key.domain)), to(static_cast<std::uint8_t>(p->next != nullptr));
      }
    }
  }
  // Returns false if the bytes are not those of save().
  bool load(Loader& from) {
    std::uint64_t parts = 0;
    from(down_.round), from(down_.flags), from(parts);
    if (parts > kMaxParts) return false;
    down_.parts = {};
    arena_.clear();
    for (std::uint64_t k = 0; k < parts; ++k) {
      Payload<Real> part;
      if (!load_link(from, part, 1)) return false;
      down_.parts.push_back(part);
    }
    encoded = nullptr;
    return true;
  }

  std::uint64_t bytes = 0;                           // number of bytes that the body adds to a request
  std::shared_ptr<const EncodedBody<Real>> encoded;  // encoded down(); null if messages are not encoded
  std::uint32_t users = 0;

 private:
  // Reads the `place`th link of a part, and its successors.
  bool load_link(Loader& from, Payload<Real>& p, std::size_t place) {
    if (place > kMaxLinks) return false;
    std::uint8_t shape = 0, packing = 0, has_key = 0, has_next = 0;
    std::uint32_t domain = 0;
    std::vector<std::uint32_t> indices;
    std::vector<Real> values;
    RngKey key;
    from(shape), from(packing), from(p.levels), from(p.dim), from(p.first), from(p.rows), from(p.unit);
    from(indices), from(values);
    from(has_key), from(key.seed), from(key.client), from(key.round);
    from(domain), from(has_next);
    p.shape = static_cast<Shape>(shape);
    p.packing = static_cast<Packing>(packing);
    if (p.shape == Shape::kDense && values.size() != p.dim) return false;
    key.domain = static_cast<RngDomain>(domain);
    p.indices = arena_.copy(std::span<const std::uint32_t>(indices));
    p.values = arena_.copy(std::span<const Real>(values));
    if (has_key != 0) p.key = arena_.copy(std::span<const RngKey>(&key, 1)).data();
    if (has_next == 0) return true;
    Payload<Real> next;
    if (!load_link(from, next, place + 1)) return false;
    p.next = arena_.copy(std::span<const Payload<Real>>(&next, 1)).data();
    return true;
  }

  static bool are_equal(const Payload<Real>* a, const Payload<Real>* b) {
    for (; a != nullptr && b != nullptr; a = a->next, b = b->next) {
      if (a->shape != b->shape || a->packing != b->packing || (a->key == nullptr) != (b->key == nullptr) ||
          a->dim != b->dim || a->first != b->first || a->rows != b->rows || a->levels != b->levels ||
          a->unit != b->unit ||
          !std::equal(a->indices.begin(), a->indices.end(), b->indices.begin(), b->indices.end()) ||
          !std::equal(a->values.begin(), a->values.end(), b->values.begin(), b->values.end()))
        return false;
    }
    return a == b;
  }

  Downlink<Real> down_;
  Arena arena_;  // holds what the parts view
};

}  // namespace gradwire
