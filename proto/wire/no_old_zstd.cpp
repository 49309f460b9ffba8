// The zstd library calls its decoders of versions 0.5 to 0.7 by these names. decompress_section() refuses
// their frames before. A static client of a board defines the names itself, and so does without 80 KB of
// decoders.
#ifdef GRADWIRE_SMALL
#include <cstddef>
#include <zstd.h>
#include <zstd_errors.h>

namespace {

constexpr std::size_t kRefused = std::size_t{0} - ZSTD_error_version_unsupported;

}  // namespace

#define GRADWIRE_NO_ZSTD(version)                                                                          \
  void* ZSTD##version##_createDCtx() { return nullptr; }                                                   \
  std::size_t ZSTD##version##_freeDCtx(void*) { return 0; }                                                \
  std::size_t ZSTD##version##_getFrameParams(void*, const void*, std::size_t) { return kRefused; }         \
  std::size_t ZSTD##version##_decompress_usingDict(void*, void*, std::size_t, const void*, std::size_t,    \
                                                   const void*, std::size_t) {                             \
    return kRefused;                                                                                       \
  }                                                                                                        \
  void ZSTD##version##_findFrameSizeInfoLegacy(const void*, std::size_t, std::size_t* size,                \
                                               unsigned long long* bound) {                                \
    *size = kRefused;                                                                                      \
    *bound = ZSTD_CONTENTSIZE_ERROR;                                                                       \
  }                                                                                                        \
  void* ZBUFF##version##_createDCtx() { return nullptr; }                                                  \
  std::size_t ZBUFF##version##_freeDCtx(void*) { return 0; }                                               \
  std::size_t ZBUFF##version##_decompressInitDictionary(void*, const void*, std::size_t) {                 \
    return kRefused;                                                                                       \
  }                                                                                                        \
  std::size_t ZBUFF##version##_decompressContinue(void*, void*, std::size_t*, const void*, std::size_t*) { \
    return kRefused;                                                                                       \
  }

extern "C" {
GRADWIRE_NO_ZSTD(v05)
GRADWIRE_NO_ZSTD(v06)
GRADWIRE_NO_ZSTD(v07)
}

#undef GRADWIRE_NO_ZSTD
#endif
