// Replaces the allocation functions of a test program by functions that count. Include it in one source file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <malloc.h>
#include <new>

#include "tests/support/allocations.h"

[[gnu::noinline]] void* operator new(std::size_t size) {
  ++gradwire::allocations::count;
  gradwire::allocations::largest = std::max(gradwire::allocations::largest, size);
  void* p = std::malloc(size != 0 ? size : 1);
  if (p == nullptr) throw std::bad_alloc();
  gradwire::allocations::live += malloc_usable_size(p);
  gradwire::allocations::peak = std::max(gradwire::allocations::peak, gradwire::allocations::live);
  return p;
}
// std::stable_sort gets its buffer from this function.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  gradwire::allocations::live -= malloc_usable_size(p);
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { operator delete(p); }

// std::vector with an aligned allocator, as in base/aligned.h, uses these functions.
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  ++gradwire::allocations::count;
  gradwire::allocations::largest = std::max(gradwire::allocations::largest, size);
  const std::size_t unit = static_cast<std::size_t>(alignment);
  void* const p = std::aligned_alloc(unit, (size / unit + 1) * unit);
  if (p == nullptr) throw std::bad_alloc();
  gradwire::allocations::live += malloc_usable_size(p);
  gradwire::allocations::peak = std::max(gradwire::allocations::peak, gradwire::allocations::live);
  return p;
}
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { operator delete(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  operator delete(p);
}
