// Sizes of tests for slow builds: with a sanitizer, or for an emulated processor.
#pragma once

#include <algorithm>

// GCC defines macros, clang has features.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GRADWIRE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GRADWIRE_SANITIZED 1
#endif
#endif
#ifndef GRADWIRE_SANITIZED
#define GRADWIRE_SANITIZED 0
#endif

namespace gradwire {

// True with a sanitizer, which changes memory and paging, so tests of them are skipped.
inline constexpr bool kSanitized = GRADWIRE_SANITIZED != 0;

// Additional memory that a process may use, because a sanitizer keeps freed memory for a while.
inline constexpr double kSanitizerMb = kSanitized ? 1000 : 0;

#if GRADWIRE_SANITIZED || defined(GRADWIRE_EMULATED)
inline constexpr int kSlowdown = 8;
#else
inline constexpr int kSlowdown = 1;
#endif

// Returns the number of seeds, draws or rounds of a test. `size` is the number in a fast build.
template <class Number>
constexpr Number scaled(Number size) {
  return std::max<Number>(size / kSlowdown, 1);
}

}  // namespace gradwire
