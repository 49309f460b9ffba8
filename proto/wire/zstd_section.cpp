#include "proto/wire/zstd_section.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <zstd.h>

namespace gradwire {
namespace {

struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Returns the decompressor of this thread. It takes more memory than most messages, and there may be
// thousands of slots.
ZSTD_DCtx* decompressor() {
  thread_local std::unique_ptr<ZSTD_DCtx, FreeDecompressor> context(ZSTD_createDCtx());
  return context.get();
}

}  // namespace

#ifdef GRADWIRE_SMALL  // sends all sections as they are, without the code of the compressor

void SectionCompressor::ContextDeleter::operator()(ZSTD_CCtx_s*) const {}
std::span<const std::byte> SectionCompressor::compress(const ZstdMode&, std::span<const std::byte>,
                                                       ByteBuffer&) {
  return {};
}

#else

namespace {

constexpr int kAutoLevel = 1;

// Returns the size below which compression pays: it must save 5 %.
std::size_t worthwhile_bytes(std::size_t raw_bytes) { return raw_bytes / 20 * 19 + raw_bytes % 20 * 19 / 20; }

}  // namespace

void SectionCompressor::ContextDeleter::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

std::span<const std::byte> SectionCompressor::frame(int level, std::span<const std::byte> raw,
                                                    std::size_t limit, ByteBuffer& to) {
  if (context_ == nullptr) {
    context_.reset(ZSTD_createCCtx());
    if (context_ == nullptr) throw std::bad_alloc();
  }
  // zstd gets a buffer of `limit` bytes, and stops once it is full.
  const std::span<std::byte> room = to.take(limit);
  const std::size_t size =
      ZSTD_compressCCtx(context_.get(), room.data(), room.size(), raw.data(), raw.size(), level);
  if (ZSTD_isError(size)) return {};
  return room.first(size);
}

std::span<const std::byte> SectionCompressor::compress(const ZstdMode& mode, std::span<const std::byte> raw,
                                                       ByteBuffer& to) {
  if (!applies(mode, raw.size())) return {};
  if (mode.kind == ZstdMode::Kind::kLevel) return frame(mode.level, raw, raw.size() - 1, to);
  if (raw.size() > kZstdTrialBytes) {
    const auto trial = raw.first(kZstdTrialBytes);
    if (frame(kAutoLevel, trial, worthwhile_bytes(trial.size()), to).empty()) return {};
  }
  return frame(kAutoLevel, raw, worthwhile_bytes(raw.size()), to);
}

#endif

Status decompress_section(std::span<const std::byte> sent, std::span<std::byte> raw) {
  std::uint32_t magic = 0;
  if (sent.size() >= sizeof magic) std::memcpy(&magic, sent.data(), sizeof magic);
  if (magic != ZSTD_MAGICNUMBER) return Error{"a compressed section is not a zstd frame"};
  if (ZSTD_getFrameContentSize(sent.data(), sent.size()) != raw.size()) {
    return Error{"a compressed section does not declare the size that its header gives"};
  }
  if (ZSTD_findFrameCompressedSize(sent.data(), sent.size()) != sent.size()) {
    return Error{"a compressed section is not exactly one zstd frame"};
  }
  const std::size_t size =
      ZSTD_decompressDCtx(decompressor(), raw.data(), raw.size(), sent.data(), sent.size());
  if (size != raw.size()) return Error{"a compressed section is damaged"};
  return Unit{};
}

}  // namespace gradwire
