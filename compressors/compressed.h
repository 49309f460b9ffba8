// The content of a Compressed: a payload and its memory.
#pragma once

#include <memory>

#include "base/arena.h"
#include "compressors/payload.h"
#include "compressors/payload_copy.h"
#include "gradwire/compressor.h"

namespace gradwire {

template <class Real>
struct CompressedContent {
  CompressedContent() = default;
  explicit CompressedContent(const Payload<Real>& part) : copy_(part), is_copy_(true) {
    copy_payload(copy_, arena_);
  }

  PayloadBuffer<Real> buffer;  // owns the payload, unless this is a copy

  const Payload<Real>& payload() const { return is_copy_ ? copy_ : buffer.view(); }

 private:
  Arena arena_;
  Payload<Real> copy_;
  bool is_copy_ = false;
};

template <class Real>
Compressed<Real> copy_of(const Payload<Real>& part) {
  return Compressed<Real>(std::make_shared<const CompressedContent<Real>>(part));
}

}  // namespace gradwire
