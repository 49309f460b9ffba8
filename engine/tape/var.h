// The handle of a scalar on a tape, and how an operation records itself. Three tapes share the handle and the
// operations of engine/tape/scalar_ops.h and engine/tape/reductions.h. EagerTape<double> is in
// engine/tape/eager_tape.h. EagerTape<Lanes<double, 8>> runs one graph for eight points at once
// (engine/tape/lanes.h). FixedTape<double, N> becomes straight-line code (engine/tape/fixed_tape.h).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <type_traits>

// Forces operations inline. Then a handle stays in registers, and the compiler drops checks that an earlier
// operation has made.
#define GRADWIRE_INLINE [[gnu::always_inline]] inline

namespace gradwire {

// True if T is a single number, so that comparisons give a bool. False if T is Lanes.
template <class T>
inline constexpr bool kIsScalar = std::is_arithmetic_v<T> || requires {
  typename T::Compute;
};

[[noreturn, gnu::noinline, gnu::cold]] inline void throw_no_tape() {
  throw std::logic_error("a Var that belongs to no tape: make it with Tape::variable first");
}
// Throws for a Var of another tape, or of none.
[[noreturn, gnu::noinline, gnu::cold]] inline void throw_foreign(const void* owner) {
  if (owner == nullptr) throw_no_tape();
  throw std::logic_error("an operation has Vars of two tapes");
}

// The place where a tape keeps the gradient of a scalar, and the generation of the tape in which the scalar
// was recorded. Both share one word. A handle that is passed to a function goes through memory, and the
// processor stalls if it reads two parts together that were written separately.
struct TapePlace {
  std::uint64_t word = 0;

  // Joins the two parts by a sum. The compiler can undo a sum, so it knows the results of checks on a handle
  // that was just recorded.
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
  // Is written out, so that the compiler copies a handle word by word and passes it by address (see
  // TapePlace).
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
  Value value_ = Value(0);  // kept in the handle, so adding a number to a Var records nothing on the tape
  Tape* tape_ = nullptr;
};

template <class Tape>
using ValueOf = typename Tape::Value;

// Records an operation of one or two arguments. Each argument is followed by the derivative of `value` by it.
template <class Tape>
GRADWIRE_INLINE Var<Tape> result(const ValueOf<Tape>& value, const Var<Tape>& a, const ValueOf<Tape>& da) {
  return a.tape().record(value, a, da);
}
template <class Tape>
GRADWIRE_INLINE Var<Tape> result(const ValueOf<Tape>& value, const Var<Tape>& a, const ValueOf<Tape>& da,
                                 const Var<Tape>& b, const ValueOf<Tape>& db) {
  return a.tape().record(value, a, da, b, db);
}

// Computes the derivatives of seed * root by all scalars that it depends on. See backward() of the tape.
template <class Tape>
GRADWIRE_INLINE void backward(const Var<Tape>& root, const ValueOf<Tape>& seed = ValueOf<Tape>(1)) {
  root.tape().backward(root, seed);
}

}  // namespace gradwire
