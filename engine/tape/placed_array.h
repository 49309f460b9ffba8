// An uninitialized array at a chosen address modulo 4096.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gradwire {

// Processors compare the lowest twelve bits of addresses when they match loads with earlier stores. If these
// bits are equal by chance, the load waits. A small tape was measured 1.3 times slower when its arrays
// overlapped with the stack in this way. That happened at a fifth of all program starts, since stacks begin
// at random addresses.
template <class T>
class PlacedArray {
 public:
  PlacedArray() = default;
  PlacedArray(std::size_t size, std::uintptr_t place)
      : memory_(std::make_unique_for_overwrite<T[]>(size + kPage / sizeof(T))) {
    const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(memory_.get());
    data_ = memory_.get() + (place - start) % kPage / sizeof(T);
  }

  // Uses the caller's memory: bytes(size) bytes, aligned as T.
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
