// The eager tape: operations are computed and recorded as they are called, and backward() is one linear sweep
// from the last record to the first. No graph objects, no sort, no recursion, no globals, and no allocation
// once the tape has reached its size.
//
//   Tape<double> tape;
//   Var a = tape.variable(-4.0), b = tape.variable(2.0);
//   Var c = a + 2 * b;
//   backward(sqr(c) / 2);
//   a.grad();
//
// With parameters, which lie side by side (so that steps, norms and sending are linear passes), sample by
// sample:
//
//   Tape<double> tape(3);                                     // set through parameter_values()
//   const auto start = tape.checkpoint();
//   for (const auto& [x, y] : samples) {                      // memory of one sample
//     const auto p = tape.parameters();
//     backward(sqr(inner_product_with_bias(p.subrange(0, 2), tape.leaves(x), p[2]) - y), 1.0 / count);
//     tape.rewind(start);
//   }
//   tape.parameter_gradients();                               // the sum over the samples
//
// What backward() does to gradients: those of parameters grow until zero_parameter_gradients(); those of
// everything else are set afresh. It may be called again, on the same or another root. A record without
// influence on the root is skipped, so that an infinite derivative does not turn into nan there.
//
// A handle must not outlive its tape. Every other misuse throws std::logic_error: a Var of no tape or of two,
// a Var that its tape was rewound past (also when its place is taken again), lengths that differ, the
// gradient of a constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "engine/lanes.h"
#include "engine/placed_array.h"
#include "engine/reductions.h"
#include "engine/scalar_ops.h"
#include "engine/var.h"
#include "engine/var_range.h"

namespace gradwire {

// T: float, double, Lanes<float, 8 or 16>, Lanes<double, 4 or 8>.
template <class T>
class Tape {
 public:
  using Value = T;
  using Var = gradwire::Var<Tape>;
  using Range = VarRange<Tape>;

  // How much is recorded: where rewind() goes back to.
  struct Checkpoint {
    std::uint32_t slots = 0, operations = 0, indices = 0, derivatives = 0;
  };

  explicit Tape(std::size_t parameters = 0);
  Tape(const Tape&) = delete;  // handles point to it
  Tape& operator=(const Tape&) = delete;

  // The spans are valid until the next recording.
  std::span<T> parameter_values() { return {value_.get() + kDeadSlots, parameters_}; }
  std::span<T> parameter_gradients() { return {gradient_.get() + kDeadSlots, parameters_}; }
  Range parameters() { return {this, Place::at(kDeadSlots, generation()), parameters_}; }
  void zero_parameter_gradients();

  GRADWIRE_INLINE Var variable(const T& value) { return append(value, dead(), T(0), dead() ^ 1, T(0)); }
  GRADWIRE_INLINE Var leaf(const T& value) { return variable(value); }
  // Takes part in operations like a variable, without a record; its gradient is not kept.
  GRADWIRE_INLINE Var constant(const T& value) { return {this, value, Place::at(0, generation())}; }
  // Variables side by side, for operations on ranges.
  Range leaves(std::span<const T> values);
  // Copies of scalars, side by side.
  Range pack(std::span<const Var> scalars);

  // Adds seed * d root / d p to the gradient of every parameter p.
  GRADWIRE_INLINE void backward(const Var& root, const T& seed = T(1)) {
    check(root);
    sweep(root.place().slot(), seed);
  }
  GRADWIRE_INLINE T gradient(const Var& x) const {
    check(x);
    if (x.place().slot() < kDeadSlots) [[unlikely]]
      throw_constant();
    return gradient_[x.place().slot()];
  }
  std::span<const T> values(const Range& x) const { return {value_.get() + checked(x), x.size()}; }
  std::span<const T> gradients(const Range& x) const { return {gradient_.get() + checked(x), x.size()}; }

  Checkpoint checkpoint() const { return used_; }
  // Forgets what was recorded since; memory is kept.
  GRADWIRE_INLINE void rewind(const Checkpoint& to) {
    if (to.slots < first_ || to.slots > used_.slots || to.operations > used_.operations ||
        to.indices > used_.indices || to.derivatives > used_.derivatives) [[unlikely]]
      throw_not_behind();
    if (to.slots != rewound_to_) [[unlikely]]
      remember_rewind(to.slots);
    ++rewinds_;
    used_ = to;
    swept_ = swept_ < to.slots ? swept_ : to.slots;
  }

  // n scalars side by side: make(i) gives the i-th, as the result of one operation of one or two scalars.
  template <class Make>
  Range range(std::size_t n, Make make);

  // How operations of one and two scalars record themselves.
  GRADWIRE_INLINE Var record(const T& value, const Var& a, const T& da) {
    check(a);
    return append(value, a.place().slot(), da, dead(), T(0));
  }
  GRADWIRE_INLINE Var record(const T& value, const Var& a, const T& da, const Var& b, const T& db) {
    check(a);
    check(b);
    return append(value, a.place().slot(), da, b.place().slot(), db);
  }

  // How those of any number do (engine/reductions.h), in one record: where to write n derivatives before
  // record_all(), which takes n operands, one list behind the other.
  T* derivatives(std::size_t n);
  template <class... Lists>
  Var record_all(const T& value, std::size_t n, const Lists&... lists) {
    constexpr bool kRanges = (std::is_same_v<Lists, std::span<const Range>> || ...);
    Operation& op = begin_operation(kRanges ? Kind::kRanges : Kind::kScattered, 1);
    (link(lists), ...);
    return {this, value, end_operation(op, n)};
  }
  // The derivative by x_i is alpha + beta x_i.
  Var record_linear(const T& value, std::span<const Var> x, const T& alpha, const T& beta);
  Var record_linear(const T& value, std::span<const Range> x, const T& alpha, const T& beta);
  // sum a_i b_i, plus the bias; as many a as b.
  Var inner_product(std::span<const Range> a, std::span<const Range> b);
  Var inner_product(std::span<const Range> a, std::span<const Range> b, const Var& bias);

  Var element(const Range& range, std::uint32_t i);  // for VarRange

 private:
  // What a record of one or two operands leaves for backward(). Its slot is its index.
  struct Entry {
    T da, db;
    std::uint64_t links;  // slot of a, and above it that of b: one word to write
  };

  enum class Kind : std::uint8_t { kLeaves, kScattered, kRanges, kEqual, kLinear, kInnerProduct };

  // A record of any number of operands, or of results without operands.
  struct Operation {
    T alpha, beta;                           // kEqual and kLinear: derivatives alpha + beta x_i
    std::uint32_t slot = 0, slots = 1;       // of the results
    std::uint32_t index = 0, index_end = 0;  // in index_: slots (kScattered), runs { slot, size } (ranges) or
                                             // { slot in a, slot in b, size } (kInnerProduct)
    std::uint32_t derivative = 0;            // in derivative_: the first of its operands'
    std::uint32_t bias = 0;                  // kInnerProduct: slot
    Kind kind = Kind::kLeaves;
  };

  // A rewind, the `number`-th of this tape, that some handles did not survive.
  struct Rewind {
    std::uint64_t number;
    std::uint32_t slots;
  };

  // Where records put the derivatives of operands they do not have: no branch in the sweep. Several in turn,
  // since with one, each addition would wait for the one before.
  static constexpr std::uint32_t kDeadSlots = 8;
  GRADWIRE_INLINE std::uint32_t dead() const { return used_.slots % kDeadSlots; }

  GRADWIRE_INLINE std::uint32_t generation() const { return static_cast<std::uint32_t>(rewinds_); }

  GRADWIRE_INLINE Var append(const T& value, std::uint32_t a, const T& da, std::uint32_t b, const T& db) {
    if (used_.slots == capacity_) [[unlikely]]
      reserve(1);
    const std::uint32_t slot = used_.slots;
    Entry& entry = entry_[slot];
    entry.da = da;
    entry.db = db;
    entry.links = std::uint64_t{b} << 32 | a;
    gradient_[slot] = T(0);
    used_.slots = slot + 1;
    return {this, value, Place::at(slot, generation())};
  }

  GRADWIRE_INLINE void check(const Var& x) const {
    if (x.owner() != this) [[unlikely]]
      throw_foreign(x.owner());
    if (!x.place().is_of(generation())) [[unlikely]]
      check_age(x.place(), 1);
  }
  std::uint32_t checked(const Range& x) const;  // its first slot
  // What can throw must not return, and what returns must not throw: across a call that does both, the
  // compiler keeps no number in a register.
  GRADWIRE_INLINE void check_age(Place place, std::uint32_t slots) const {
    if (!is_alive(place, slots)) throw_stale();
  }
  GRADWIRE_INLINE void reserve(std::size_t slots) {
    if (!grow(slots)) throw_full();
  }
  [[gnu::cold]] bool is_alive(Place place, std::uint32_t slots) const noexcept;
  [[gnu::cold]] bool grow(std::size_t slots) noexcept;
  [[noreturn, gnu::cold]] static void throw_stale();
  [[noreturn, gnu::cold]] static void throw_full();
  [[noreturn, gnu::cold]] static void throw_constant();
  [[noreturn, gnu::cold]] static void throw_not_behind();
  [[gnu::cold]] void remember_rewind(std::uint32_t slots);

  Operation& begin_operation(Kind kind, std::size_t slots);
  void link(std::span<const Var> list);
  void link(std::span<const Range> list);
  Place end_operation(Operation& operation, std::size_t derivatives = 0);

  void sweep(std::uint32_t root, const T& seed);
  void sweep_entries(std::uint32_t begin, std::uint32_t end);
  void propagate(const Operation& operation);

  Checkpoint used_;             // slots in use: dead ones, parameters, what is recorded
  std::uint32_t capacity_ = 0;  // of value_, gradient_ and entry_
  std::uint64_t rewinds_ = 0;
  PlacedArray<Entry> entry_;          // [slot]
  PlacedArray<T> gradient_;           // [slot]
  PlacedArray<T> value_;              // [slot], of parameters and ranges only
  std::uint32_t parameters_, first_;  // first_: the first slot behind the parameters
  std::uint32_t swept_;               // gradients of recorded slots from here on are 0
  std::vector<Operation> operation_;
  std::vector<std::uint32_t> index_;
  std::vector<T> derivative_;
  std::uint32_t rewound_to_;     // slots of the latest rewind
  std::vector<Rewind> history_;  // those before it that went below it, both numbers ascending
};

template <class T>
template <class Make>
auto Tape<T>::range(std::size_t n, Make make) -> Range {
  Place first = Place::at(used_.slots, generation());
  for (std::size_t i = 0; i < n; ++i) {
    const Var x = make(i);
    check(x);
    if (x.place().word != first.word + i)
      throw std::logic_error("Tape::range: each scalar must be the result of one operation");
    value_[x.place().slot()] = x.value();
  }
  return {this, first, static_cast<std::uint32_t>(n)};
}

extern template class Tape<float>;
extern template class Tape<double>;
extern template class Tape<Lanes<float, 8>>;
extern template class Tape<Lanes<float, 16>>;
extern template class Tape<Lanes<double, 4>>;
extern template class Tape<Lanes<double, 8>>;

}  // namespace gradwire
