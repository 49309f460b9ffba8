// Adjacent scalars on an EagerTape: parameters, data, results of pack() or range(). Reductions
// (engine/tape/reductions.h) take one range or several, and do not copy them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "engine/tape/var.h"

namespace gradwire {

template <class Tape>
class VarRange {
 public:
  VarRange() = default;  // belongs to no tape; any operation on it throws std::logic_error

  std::size_t size() const { return size_; }
  Var<Tape> operator[](std::size_t i) const {
    if (i >= size_)
      throw std::logic_error("VarRange: index " + std::to_string(i) + " of " + std::to_string(size_));
    return tape().element(*this, static_cast<std::uint32_t>(i));
  }
  VarRange subrange(std::size_t first, std::size_t size) const {
    if (first > size_ || size > size_ - first) throw std::logic_error("VarRange: subrange leaves the range");
    return {&tape(), {place_.word + first}, static_cast<std::uint32_t>(size)};
  }

  TapePlace place() const { return place_; }  // place of the first scalar
  Tape* owner() const { return tape_; }
  Tape& tape() const {
    if (tape_ == nullptr) throw_no_tape();
    return *tape_;
  }

 private:
  friend Tape;
  VarRange(Tape* tape, TapePlace place, std::uint32_t size) : tape_(tape), place_(place), size_(size) {}

  Tape* tape_ = nullptr;
  TapePlace place_;
  std::uint32_t size_ = 0;
};

}  // namespace gradwire
