// Compresses one section of a payload to one zstd frame.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/byte_buffer.h"
#include "base/result.h"
#include "proto/wire/codec.h"

struct ZSTD_CCtx_s;

namespace gradwire {

class SectionCompressor {
 public:
  // Returns whether compress() may shorten a section of this size.
  static bool applies(const ZstdMode& mode, std::size_t raw_bytes) {
    return mode.kind != ZstdMode::Kind::kOff && raw_bytes >= kZstdMinBytes;
  }
  // Returns the compressed section, in `to`. Empty if the raw one should be sent: it is too small, or nothing
  // is gained.
  std::span<const std::byte> compress(const ZstdMode& mode, std::span<const std::byte> raw, ByteBuffer& to);

 private:
  // Returns the frame. Empty if it would be longer than `limit`.
  std::span<const std::byte> frame(int level, std::span<const std::byte> raw, std::size_t limit,
                                   ByteBuffer& to);

  struct ContextDeleter {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, ContextDeleter>
      context_;  // made when first needed, because most codecs never compress
};

// Decompresses `sent`, which must be exactly one zstd frame of exactly raw.size() bytes according to its own
// header. Never writes or allocates beyond that.
Status decompress_section(std::span<const std::byte> sent, std::span<std::byte> raw);

}  // namespace gradwire
