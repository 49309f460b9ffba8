// An array that is not initialised, at an address of our choice modulo 4096.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gradwire {

// Processors look at the lowest twelve bits of addresses when they match loads with earlier stores; where
// they match by chance, the load waits. A small tape whose arrays so overlapped with the stack was
// measured 1.3 times slower (a fifth of all program starts, since stacks begin at random addresses).
template <class T>
class PlacedArray {
 public:
  PlacedArray() = default;
  PlacedArray(std::size_t size, std::uintptr_t place)
      : memory_(std::make_unique_for_overwrite<T[]>(size + kPage / sizeof(T))) {
    const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(memory_.get());
    data_ = memory_.get() + (place - start) % kPage / sizeof(T);
  }

  // In memory of somebody else, of bytes(size), aligned as T.
  PlacedArray(std::byte* memory, std::uintptr_t place) {
    const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(memory);
    data_ = reinterpret_cast<T*>(memory) + (place - start) % kPage / sizeof(T);
  }
  static constexpr std::size_t bytes(std::size_t size) { return (size + kPage / sizeof(T)) * sizeof(T); }

  T* get() const { return data_; }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  static constexpr std::uintptr_t kPage = 4096;

  std::unique_ptr<T[]> memory_;
  T* data_ = nullptr;
};

}  // namespace gradwire
