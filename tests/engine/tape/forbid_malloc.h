// A guard that makes malloc end the program while it lives in the calling thread. Include this file in one
// source file of a test program. It does nothing with sanitizers, which have their own malloc.
#pragma once

#include <cstddef>
#include <cstdlib>

#include "tests/support/sanitized.h"

namespace gradwire {

inline thread_local bool malloc_forbidden = false;

struct NoMalloc {
  NoMalloc() { malloc_forbidden = true; }
  ~NoMalloc() { malloc_forbidden = false; }
  NoMalloc(const NoMalloc&) = delete;
  NoMalloc& operator=(const NoMalloc&) = delete;
};

}  // namespace gradwire

#if !GRADWIRE_SANITIZED && defined(__GLIBC__)
extern "C" void* __libc_malloc(std::size_t);
extern "C" void* __libc_memalign(std::size_t, std::size_t);
extern "C" void* __libc_calloc(std::size_t, std::size_t);
extern "C" void* __libc_realloc(void*, std::size_t);

inline void end_if_forbidden() {
  if (gradwire::malloc_forbidden) std::abort();
}
extern "C" void* malloc(std::size_t size) noexcept {
  end_if_forbidden();
  return __libc_malloc(size);
}
extern "C" void* calloc(std::size_t count, std::size_t size) noexcept {
  end_if_forbidden();
  return __libc_calloc(count, size);
}
extern "C" void* realloc(void* p, std::size_t size) noexcept {
  end_if_forbidden();
  return __libc_realloc(p, size);
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  end_if_forbidden();
  return __libc_memalign(alignment, size);
}
#endif
