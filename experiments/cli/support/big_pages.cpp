// The operator new of the program requests large pages for large arrays. A simulation of a million clients
// fills hundreds of megabytes once. With pages of 4 KB, that takes longer than computing the contents,
// especially in a virtual machine. Sanitizers have their own operator new.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GRADWIRE_OWN_NEW 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define GRADWIRE_OWN_NEW 0
#endif
#endif
#ifndef GRADWIRE_OWN_NEW
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <sys/mman.h>

namespace {

constexpr std::size_t kBigPage = std::size_t{2} << 20;
constexpr std::size_t kMinBytes = 4 * kBigPage;

void ask_for_big_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t size) {
#ifdef MADV_HUGEPAGE
  // Requests only whole large pages, so that the process takes no additional memory. An error is ignored: the
  // system may have no large pages.
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + kBigPage - 1) / kBigPage * kBigPage;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + size) / kBigPage * kBigPage;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace

void* operator new(std::size_t size) {
  for (;;) {
    if (void* const memory = std::malloc(size > 0 ? size : 1)) {
      if (size >= kMinBytes) ask_for_big_pages(memory, size);
      return memory;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

// Not inlined: GCC 12 warns of free() where it inlines only one of new and delete.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

#endif  // GRADWIRE_OWN_NEW
