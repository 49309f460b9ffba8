// Whether this is built with a sanitizer: everything is several times as slow there, and needs more memory.
#pragma once

namespace gradwire {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace gradwire
