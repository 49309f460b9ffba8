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
// Where memory must not be asked for, the tape takes a buffer of the caller:
//
//   const TapeSize size = tape_size<double>(2, record);        // recorded once to see what it takes
//   std::vector<std::byte> buffer(Tape<double>::bytes(size));
//   Tape<double> tape(size, buffer);
// It allocates nothing, and nothing that is within `size` throws; what is not throws std::length_error.
//
// What backward() does to gradients: those of parameters grow until zero_parameter_gradients(); those of
// everything else are set afresh. It may be called again, on the same or another root. A record without
// influence on the root is skipped, so that an infinite derivative does not turn into nan there.
//
// A handle must not outlive its tape, and parameter values must not change between recording and backward(),
// which reads them again. Every other misuse throws std::logic_error: a Var of no tape or of two, a Var or a
// checkpoint that its tape was rewound past (also when its place is taken again), a checkpoint of another
// tape, lengths that differ, the gradient of a constant, or of what no backward() has seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "engine/tape/float128.h"
#include "engine/tape/lanes.h"
#include "engine/tape/placed_array.h"
#include "engine/tape/reductions.h"
#include "engine/tape/scalar_ops.h"
#include "engine/tape/tape_array.h"
#include "engine/tape/var.h"
#include "engine/tape/var_range.h"
#include "engine/tape/wrapped.h"

namespace gradwire {

template <class Tape>
struct TapeReader;  // engine/tape/debug/tape_graph.h

// What a tape has room for.
struct TapeSize {
  std::size_t parameters = 0;
  std::size_t scalars = 0;      // results of operations, variables, leaves
  std::size_t operations = 0;   // leaves(), and operations of any number of scalars
  std::size_t indices = 0;      // numbers that say which operands these have
  std::size_t derivatives = 0;  // by operands of operations that are not linear
};

// T: float, double, Lanes<float, 8 or 16>, Lanes<double, 4 or 8>; Float16, BFloat16 and Float128.
template <class T>
class Tape {
  static_assert(!std::is_integral_v<T>, "a tape of whole numbers has no derivatives: take double");

  struct Used {
    std::uint32_t slots = 0, operations = 0, indices = 0, derivatives = 0;
  };

 public:
  using Value = T;
  using Var = gradwire::Var<Tape>;
  using Range = VarRange<Tape>;

  // Where rewind() goes back to: how much was recorded on which tape, and after how many rewinds.
  class Checkpoint {
   public:
    Checkpoint() = default;  // of no tape; rewind() to it throws std::logic_error

   private:
    friend Tape;
    Checkpoint(const Tape* tape, std::uint64_t rewinds, const Used& used)
        : tape_(tape), rewinds_(rewinds), used_(used) {}

    const Tape* tape_ = nullptr;
    std::uint64_t rewinds_ = 0;
    Used used_;
  };

  explicit Tape(std::size_t parameters = 0);
  // In `buffer`, of bytes(size) at least, which must outlive the tape; any address. Throws std::logic_error
  // for a smaller one.
  Tape(const TapeSize& size, std::span<std::byte> buffer);
  static std::size_t bytes(const TapeSize& size);
  Tape(const Tape&) = delete;  // handles point to it
  Tape& operator=(const Tape&) = delete;

  // The spans are valid until the next recording.
  std::span<T> parameter_values() { return {value_.get() + kDeadSlots, parameters_}; }
  std::span<T> parameter_gradients() { return {gradient_.get() + kDeadSlots, parameters_}; }
  Range parameters() { return {this, TapePlace::at(kDeadSlots, generation()), parameters_}; }
  void zero_parameter_gradients();

  GRADWIRE_INLINE Var variable(const T& value) { return append(value, dead(), T(0), dead() ^ 1, T(0)); }
  GRADWIRE_INLINE Var leaf(const T& value) { return variable(value); }
  // Takes part in operations like a variable, without a record; its gradient is not kept.
  GRADWIRE_INLINE Var constant(const T& value) { return {this, value, TapePlace::at(0, generation())}; }
  // Variables side by side, for operations on ranges. The values may be this tape's own.
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
    const std::uint32_t slot = x.place().slot();
    if (slot - kDeadSlots >= swept_ - kDeadSlots) [[unlikely]]
      throw_no_gradient(slot);
    return gradient_[slot];
  }
  // Adds up the gradients of several outputs, each times its slope: the gradient of a function of them whose
  // slopes are known, and whose value nobody needs.
  void backward_from(std::span<const Var> outputs, std::span<const T> slopes);

  // The same as backward() in scratch of the caller, of scratch_size() numbers at least. The tape stays as it
  // is, so that several threads may do it at once. All gradients are set afresh, those of parameters too.
  void backward(const Var& root, std::span<T> scratch, const T& seed = T(1)) const;
  T gradient(const Var& x, std::span<const T> scratch) const;
  std::span<const T> gradients(const Range& x, std::span<const T> scratch) const;
  std::size_t scratch_size() const { return used_.slots; }

  std::span<const T> values(const Range& x) const { return {value_.get() + checked(x), x.size()}; }
  std::span<const T> gradients(const Range& x) const;

  // What is recorded now, as a size.
  TapeSize used() const {
    return {parameters_, used_.slots - first_, used_.operations, used_.indices, used_.derivatives};
  }

  // Where what another tape recorded lies in this one.
  class Joined {
   public:
    Var operator()(const Var& x) const {
      part_->check(x);
      return {tape_, x.value(),
              TapePlace::at(part_->moved(x.place().slot(), inputs_, shift_), tape_->generation())};
    }

   private:
    friend Tape;
    Joined(Tape* tape, const Tape* part, std::uint32_t inputs, std::uint32_t shift)
        : tape_(tape), part_(part), inputs_(inputs), shift_(shift) {}
    Tape* tape_;
    const Tape* part_;
    std::uint32_t inputs_, shift_;
  };
  // Adds all that `part` recorded, as if it had been recorded here: `inputs`, as many as part has parameters
  // and with their values, take the place of these. So threads record parts, each on a tape of its own, which
  // one thread then joins in an order of its choice; bits do not depend on who was faster.
  Joined join(const Tape& part, const Range& inputs);

  Checkpoint checkpoint() const { return {this, rewinds_, used_}; }
  // Forgets what was recorded since; memory is kept.
  GRADWIRE_INLINE void rewind(const Checkpoint& to) {
    // True when this rewind goes where the latest one went, and no rewind since `to` was made went lower.
    const bool again = to.tape_ == this && to.used_.slots == rewound_to_ && to.rewinds_ >= lower_;
    if (!again) [[unlikely]] {
      if (!is_alive(to)) throw_not_behind();
      remember_rewind(to.used_.slots);
    }
    ++rewinds_;
    used_ = to.used_;
    swept_ = swept_ < used_.slots ? swept_ : used_.slots;
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

  // How operations of any number of scalars record themselves (engine/tape/reductions.h), in one record:
  // derivatives(n) is where to write n derivatives before record_all(), which takes n operands, one list
  // behind the other.
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
  friend TapeReader<Tape>;

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

  // Records put the derivatives of operands that they do not have into these slots, so the sweep needs no
  // branch. They use several slots in turn, since with one, each addition would wait for the one before.
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
    return {this, value, TapePlace::at(slot, generation())};
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
  GRADWIRE_INLINE void check_age(TapePlace place, std::uint32_t slots) const {
    if (!is_alive(place, slots)) throw_stale();
  }
  GRADWIRE_INLINE void reserve(std::size_t slots) {
    if (!grow(slots)) throw_full();
  }
  [[gnu::cold]] bool is_alive(TapePlace place, std::uint32_t slots) const noexcept;
  [[gnu::cold]] bool is_alive(const Checkpoint& to) const noexcept;
  // Did no rewind later than the first `rewinds` ones go below slot `end`?
  bool survived(std::uint64_t rewinds, std::uint64_t end) const noexcept;
  [[gnu::cold]] bool grow(std::size_t slots) noexcept;
  [[noreturn, gnu::cold]] static void throw_stale();
  [[noreturn, gnu::cold]] static void throw_full();
  [[noreturn, gnu::cold]] static void throw_no_gradient(std::uint32_t slot);
  [[noreturn, gnu::cold]] static void throw_not_behind();
  [[gnu::cold]] void remember_rewind(std::uint32_t slots);

  Operation& begin_operation(Kind kind, std::size_t slots);
  // Returns the sum of the products and the operation, which has begun.
  std::pair<SumOf<T>, Operation*> inner_products(std::span<const Range> a, std::span<const Range> b);
  void link(std::span<const Var> list);
  void link(std::span<const Range> list);
  TapePlace end_operation(Operation& operation, std::size_t derivatives = 0);

  GRADWIRE_INLINE void start_sweep();
  void sweep(std::uint32_t root, const T& seed);
  GRADWIRE_INLINE void sweep_from(std::uint32_t root, T* gradient) const;
  void sweep_entries(std::uint32_t begin, std::uint32_t end, T* gradient) const;
  void propagate(const Operation& operation, T* gradient) const;

  void check_scratch(std::size_t size) const;
  // Of the indices of an operation, number i: a slot, or the size of a run?
  bool is_slot(const Operation& op, std::uint32_t i) const {
    const std::uint32_t k = i - op.index;
    if (op.kind == Kind::kScattered) return true;
    return op.kind == Kind::kInnerProduct ? k % 3 != 2 : k % 2 == 0;
  }
  // Where a slot of this tape lies after it was joined to another one.
  std::uint32_t moved(std::uint32_t slot, std::uint32_t inputs, std::uint32_t shift) const {
    if (slot < kDeadSlots) return slot;
    return slot < first_ ? slot - kDeadSlots + inputs : slot + shift;
  }

  // First what every record and rewind touches: few cache lines.
  Used used_;                         // slots in use: dead ones, parameters, what is recorded
  std::uint32_t capacity_ = 0;        // of value_, gradient_ and entry_
  std::uint32_t parameters_, first_;  // first_: the first slot behind the parameters
  std::uint32_t swept_;               // gradients of recorded slots from here on are 0
  std::uint32_t rewound_to_;          // slots of the latest rewind
  bool borrowed_ = false;             // all memory is the caller's
  std::uint64_t rewinds_ = 0;
  std::uint64_t lower_ = 0;   // number of the last of history_
  PlacedArray<Entry> entry_;  // [slot]
  PlacedArray<T> gradient_;   // [slot]
  PlacedArray<T> value_;      // [slot], of parameters and ranges only
  TapeArray<Operation> operation_;
  TapeArray<std::uint32_t> index_;
  TapeArray<T> derivative_;
  TapeArray<Rewind> history_;  // rewinds before the latest that went below it, both numbers ascending
  std::size_t most_rewinds_ = ~std::size_t{0};  // in history_
};

template <class T>
template <class Make>
auto Tape<T>::range(std::size_t n, Make make) -> Range {
  TapePlace first = TapePlace::at(used_.slots, generation());
  for (std::size_t i = 0; i < n; ++i) {
    const Var x = make(i);
    check(x);
    if (x.place().word != first.word + i)
      throw std::logic_error("Tape::range: each scalar must be the result of one operation");
    value_[x.place().slot()] = x.value();
  }
  return {this, first, static_cast<std::uint32_t>(n)};
}

// What record(tape) leaves on a tape with that many parameters, all 0: it is run once on a tape that grows.
template <class T, class Record>
TapeSize tape_size(std::size_t parameters, Record record) {
  Tape<T> tape(parameters);
  record(tape);
  return tape.used();
}

extern template class Tape<float>;
extern template class Tape<double>;
extern template class Tape<Lanes<float, 8>>;
extern template class Tape<Lanes<float, 16>>;
extern template class Tape<Lanes<double, 4>>;
extern template class Tape<Lanes<double, 8>>;
extern template class Tape<Float16>;
extern template class Tape<BFloat16>;
#if GRADWIRE_HAS_FLOAT128
extern template class Tape<Float128>;
#endif

}  // namespace gradwire
