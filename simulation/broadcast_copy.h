// Copy of a Downlink as it was sent, so that the server algorithm can continue while clients still work on
// it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/core/message.h"
#include "base/serialize.h"
#include "proto/wire/codec.h"

namespace gradwire {

template <class Real>
class BroadcastCopy {
 public:
  // Copies the body into buffers that the next call reuses.
  void keep(const Downlink<Real>& from) {
    down_ = from;
    down_.parts = {};
    for (std::size_t k = 0; k < from.parts.size(); ++k) {
      if (copies_.size() <= k) copies_.push_back(std::make_unique<KeptPart>());
      down_.parts.push_back(copies_[k]->keep(from.parts[k]));
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
    copies_.clear();
    for (std::uint64_t k = 0; k < parts; ++k) {
      copies_.push_back(std::make_unique<KeptPart>());
      if (!copies_.back()->load(from)) return false;
      down_.parts.push_back(copies_.back()->links[0].payload);
    }
    encoded = nullptr;
    return true;
  }

  std::uint64_t bytes = 0;                           // added to a request by the body
  std::shared_ptr<const EncodedBody<Real>> encoded;  // encoded down(); null if messages are not encoded
  std::uint32_t users = 0;

 private:
  struct PayloadLink {
    Payload<Real> payload;
    RngKey key;
    Vec<Real> values;
    std::vector<std::uint32_t> indices;
  };
  struct KeptPart {
    PayloadLink links[kMaxLinks];

    const Payload<Real>& keep(const Payload<Real>& from) {
      const Payload<Real>* source = &from;
      for (std::size_t l = 0; l < kMaxLinks && source != nullptr; ++l, source = source->next) {
        PayloadLink& link = links[l];
        link.payload = *source;
        link.values.assign(source->values.begin(), source->values.end());
        link.indices.assign(source->indices.begin(), source->indices.end());
        link.payload.values = link.values;
        link.payload.indices = link.indices;
        if (source->key != nullptr) {
          link.key = *source->key;
          link.payload.key = &link.key;
        }
        link.payload.next = source->next == nullptr ? nullptr : &links[l + 1].payload;
      }
      return links[0].payload;
    }
    bool load(Loader& from) {
      std::uint8_t has_next = 1;
      for (std::size_t l = 0; has_next != 0; ++l) {
        if (l == kMaxLinks) return false;
        PayloadLink& link = links[l];
        Payload<Real>& p = link.payload;
        std::uint8_t shape = 0, packing = 0, has_key = 0;
        std::uint32_t domain = 0;
        has_next = 0;
        from(shape), from(packing), from(p.levels), from(p.dim), from(p.first), from(p.rows), from(p.unit);
        from(link.indices), from(link.values);
        from(has_key), from(link.key.seed), from(link.key.client), from(link.key.round);
        from(domain), from(has_next);
        p.shape = static_cast<Shape>(shape);
        p.packing = static_cast<Packing>(packing);
        if (p.shape == Shape::kDense && link.values.size() != p.dim) return false;
        link.key.domain = static_cast<RngDomain>(domain);
        p.indices = link.indices;
        p.values = link.values;
        p.key = has_key != 0 ? &link.key : nullptr;
        p.next = has_next != 0 && l + 1 < kMaxLinks ? &links[l + 1].payload : nullptr;
      }
      return true;
    }
  };

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
  std::vector<std::unique_ptr<KeptPart>> copies_;  // pointers, so that their addresses stay valid
};

}  // namespace gradwire
