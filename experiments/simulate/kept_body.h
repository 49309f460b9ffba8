// A Downlink as it was when it was sent: the server's half goes on while clients work at it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/support/message.h"
#include "proto/wire/codec.h"

namespace gradwire {

template <class Real>
class KeptBody {
 public:
  // Copies the body into memory that is kept for the next one.
  void keep(const Downlink<Real>& from) {
    down_ = from;
    down_.parts = {};
    for (std::size_t k = 0; k < from.parts.size(); ++k) {
      if (copies_.size() <= k) copies_.push_back(std::make_unique<Part>());
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

  std::uint64_t bytes = 0;                           // that it adds to an envelope
  std::shared_ptr<const EncodedBody<Real>> encoded;  // of down(), where messages are encoded
  std::uint32_t users = 0;

 private:
  struct Link {
    Payload<Real> payload;
    StreamKey key;
    Vec<Real> values;
    std::vector<std::uint32_t> indices;
  };
  struct Part {
    Link links[kMaxLinks];

    const Payload<Real>& keep(const Payload<Real>& from) {
      const Payload<Real>* source = &from;
      for (std::size_t l = 0; l < kMaxLinks && source != nullptr; ++l, source = source->next) {
        Link& link = links[l];
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
  std::vector<std::unique_ptr<Part>> copies_;  // keep their addresses
};

}  // namespace gradwire
