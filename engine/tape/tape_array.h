// An array that grows, or one in the caller's memory, which does not grow. Unlike std::vector it leaves new
// elements uninitialized.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>

#include "engine/tape/var.h"

namespace gradwire {

[[noreturn, gnu::noinline, gnu::cold]] inline void throw_tape_full() {
  throw std::length_error("the tape is full: no memory for more, or 2^32 numbers are recorded; rewind it");
}

template <class T>
class TapeArray {
 public:
  // Uses the caller's memory. The array then has `size` elements.
  void borrow(T* memory, std::size_t size) {
    data_ = memory;
    size_ = capacity_ = size;
    borrowed_ = true;
  }

  T* data() const { return data_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  T& operator[](std::size_t i) const { return data_[i]; }

  GRADWIRE_INLINE void resize(std::size_t size) {
    if (size > capacity_) [[unlikely]]
      grow(size);
    size_ = size;
  }
  GRADWIRE_INLINE void push_back(const T& x) {
    if (size_ == capacity_) [[unlikely]] {
      const T copy = x;  // x may be an element of this array, which moves
      grow(size_ + 1);
      data_[size_++] = copy;
      return;
    }
    data_[size_++] = x;
  }

 private:
  [[gnu::noinline, gnu::cold]] void grow(std::size_t size) {
    if (borrowed_) throw_tape_full();
    const std::size_t capacity = std::max(size, 2 * capacity_);
    auto memory = std::make_unique_for_overwrite<T[]>(capacity);
    std::copy_n(data_, size_, memory.get());
    memory_ = std::move(memory);
    data_ = memory_.get();
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
  bool borrowed_ = false;
  std::unique_ptr<T[]> memory_;
};

}  // namespace gradwire
