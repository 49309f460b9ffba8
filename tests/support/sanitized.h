// Whether everything is several times as slow as users have it: tests then take smaller cases.
#pragma once

// GRADWIRE_SANITIZED: built with a sanitizer; it needs more memory, too. GCC defines macros, clang has
// features.
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

inline constexpr bool kSanitized = GRADWIRE_SANITIZED != 0;

// Or built for another processor, which is emulated.
#ifdef GRADWIRE_EMULATED
inline constexpr bool kSlowed = true;
#else
inline constexpr bool kSlowed = kSanitized;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kHasAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kHasAddressSanitizer = true;
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif

}  // namespace gradwire
