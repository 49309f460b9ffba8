// All memory of the C library. The library hides these functions, so that they do not replace those of the
// program. They come with its own copy of the C++ library, whose memory they also are.
#include <cstddef>
#include <new>

#include "c_api/caller_memory.h"

namespace {

void* take(std::size_t bytes, std::size_t alignment) {
  void* const memory = gradwire::allocate_here(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The linker calls these functions in place of those that begin and end the construction of a static variable
// of a function (Itanium C++ ABI, 3.3.3). Such a variable outlives the client, so it takes no
// memory of a caller.
extern "C" {
int __real___cxa_guard_acquire(void* guard);
void __real___cxa_guard_release(void* guard);
void __real___cxa_guard_abort(void* guard);
int __wrap___cxa_guard_acquire(void* guard) {
  const int constructs = __real___cxa_guard_acquire(guard);
  if (constructs != 0) gradwire::begin_shared_memory();
  return constructs;
}
void __wrap___cxa_guard_release(void* guard) {
  gradwire::end_shared_memory();
  __real___cxa_guard_release(guard);
}
void __wrap___cxa_guard_abort(void* guard) {
  gradwire::end_shared_memory();
  __real___cxa_guard_abort(guard);
}
}

void* operator new(std::size_t bytes) { return take(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new[](std::size_t bytes) { return take(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return gradwire::allocate_here(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return gradwire::allocate_here(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void operator delete(void* memory) noexcept { gradwire::release_where_allocated(memory); }
void operator delete[](void* memory) noexcept { gradwire::release_where_allocated(memory); }
void operator delete(void* memory, std::size_t) noexcept { gradwire::release_where_allocated(memory); }
void operator delete[](void* memory, std::size_t) noexcept { gradwire::release_where_allocated(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { gradwire::release_where_allocated(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { gradwire::release_where_allocated(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  gradwire::release_where_allocated(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  gradwire::release_where_allocated(memory);
}
