// Vectors that begin at a cache line. The kernels take any address, but they run up to 1.5 times slower if an
// array begins inside a line: every other access then touches two lines.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace gradwire {

template <class T>
struct CacheLineAllocator {
  static constexpr std::align_val_t kLine{64};
  using value_type = T;

  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}

  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, kLine); }
  template <class U>
  bool operator==(const CacheLineAllocator<U>&) const {
    return true;
  }
};

template <class T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace gradwire
