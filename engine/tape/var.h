// The handle of a scalar on a tape, and how an operation records itself. Three tapes share the handle and the
// operations of engine/tape/scalar_ops.h and engine/tape/reductions.h. Tape<double> is in engine/tape/tape.h.
// Tape<Lanes<double, 8>> runs one graph for eight points at once (engine/tape/lanes.h). FixedTape<double, N>
// becomes straight-line code (engine/tape/fixed_tape.h).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <type_traits>

// Marks operations. When they are inlined, a handle stays in registers, and the checks of one operation serve
// the next.
#define GRADWIRE_INLINE [[gnu::always_inline]] inline

namespace gradwire {

// True for one number, false for lanes. Comparisons of one number are true or false.
template <class T>
inline constexpr bool kIsScalar = std::is_arithmetic_v<T> || requires {
  typename T::Compute;
};

[[noreturn, gnu::noinline, gnu::cold]] inline void throw_no_tape() {
  throw std::logic_error("a Var that belongs to no tape: make it with Tape::variable first");
}
// Throws for a Var that does not belong to this tape.
[[noreturn, gnu::noinline, gnu::cold]] inline void throw_foreign(const void* owner) {
  if (owner == nullptr) throw_no_tape();
  throw std::logic_error("an operation has Vars of two tapes");
}

// The place where a tape keeps the gradient of a scalar, and the generation of the tape in which the scalar
// was recorded. Both are in one word. A handle that is passed to a function goes through memory, and the
// processor stalls on two parts that are written separately but read together.
struct TapePlace {
  std::uint64_t word = 0;

  // Adds the two parts. The compiler can undo a sum, so it knows the results of checks on what it has just
  // recorded.
  GRADWIRE_INLINE static TapePlace at(std::uint32_t slot, std::uint32_t generation) {
    return {(std::uint64_t{generation} << 32) + slot};
  }
  GRADWIRE_INLINE std::uint32_t slot() const { return static_cast<std::uint32_t>(word); }
  GRADWIRE_INLINE std::uint32_t generation() const { return static_cast<std::uint32_t>(word >> 32); }
  GRADWIRE_INLINE bool is_of(std::uint32_t generation) const {
    return (word - (std::uint64_t{generation} << 32)) >> 32 == 0;
  }
};

template <class Tape>
class Var {
 public:
  using Value = typename Tape::Value;

  Var() = default;  // belongs to no tape; any operation on it throws std::logic_error
  GRADWIRE_INLINE Var(Tape* tape, const Value& value, TapePlace place)
      : place_(place), value_(value), tape_(tape) {}
  // Written out, so that a handle is copied word by word and passed by address (see TapePlace).
  GRADWIRE_INLINE Var(const Var& other) : place_(other.place_), value_(other.value_), tape_(other.tape_) {}
  GRADWIRE_INLINE Var& operator=(const Var& other) {
    place_ = other.place_;
    value_ = other.value_;
    tape_ = other.tape_;
    return *this;
  }

  GRADWIRE_INLINE const Value& value() const { return value_; }
  // Returns the gradient of the last backward(); for parameters, the sum since they were zeroed.
  GRADWIRE_INLINE Value grad() const { return tape().gradient(*this); }

  GRADWIRE_INLINE TapePlace place() const { return place_; }
  GRADWIRE_INLINE Tape* owner() const { return tape_; }
  GRADWIRE_INLINE Tape& tape() const {
    if (tape_ == nullptr) [[unlikely]]
      throw_no_tape();
    return *tape_;
  }

 private:
  TapePlace place_;
  Value value_ = Value(0);  // travels in the handle, so that adding a number needs no record
  Tape* tape_ = nullptr;
};

template <class Tape>
using ValueOf = typename Tape::Value;

// Records an operation of one or two arguments: its value, and after each argument the derivative by it.
template <class Tape>
GRADWIRE_INLINE Var<Tape> result(const ValueOf<Tape>& value, const Var<Tape>& a, const ValueOf<Tape>& da) {
  return a.tape().record(value, a, da);
}
template <class Tape>
GRADWIRE_INLINE Var<Tape> result(const ValueOf<Tape>& value, const Var<Tape>& a, const ValueOf<Tape>& da,
                                 const Var<Tape>& b, const ValueOf<Tape>& db) {
  return a.tape().record(value, a, da, b, db);
}

// Computes the gradient of seed * root by everything on which it depends; see the tape's backward().
template <class Tape>
GRADWIRE_INLINE void backward(const Var<Tape>& root, const ValueOf<Tape>& seed = ValueOf<Tape>(1)) {
  root.tape().backward(root, seed);
}

}  // namespace gradwire
