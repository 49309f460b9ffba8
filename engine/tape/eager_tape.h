// The eager tape: operations are computed and recorded when they are called. backward() is one linear pass
// from the last record to the first. It has no graph objects, sorting, recursion or globals. It allocates no
// memory once the tape has reached its size.
//
//   EagerTape<double> tape;
//   Var a = tape.variable(-4.0), b = tape.variable(2.0);
//   Var c = a + 2 * b;
//   backward(sqr(c) / 2);
//   a.grad();
//
// Parameters are adjacent in memory, so steps, norms and sending are linear passes. A gradient over samples
// needs the memory of one sample:
//
//   EagerTape<double> tape(3);                                     // set through parameter_values()
//   const auto start = tape.checkpoint();
//   for (const auto& [x, y] : samples) {
//     const auto p = tape.parameters();
//     backward(sqr(inner_product_with_bias(p.subrange(0, 2), tape.leaves(x), p[2]) - y), 1.0 / count);
//     tape.rewind(start);
//   }
//   tape.parameter_gradients();                               // the sum over the samples
//
// The tape takes a buffer of the caller if it must not allocate:
//
//   const TapeSize size = tape_size<double>(2, record);        // records once to learn the size
//   std::vector<std::byte> buffer(EagerTape<double>::bytes(size));
//   EagerTape<double> tape(size, buffer);
// Such a tape allocates nothing, and throws std::length_error only if more than `size` is recorded.
//
// backward() overwrites all gradients except those of parameters, to which it adds;
// zero_parameter_gradients() clears them. backward() may be called again, on the same or another root. It
// skips records without influence on the root, so an infinite derivative does not become nan there.
//
// A handle must not outlive its tape. Parameter values must not change between recording and backward(),
// which reads them again. All other misuse throws std::logic_error: a Var of no tape, or Vars of two tapes; a
// Var or a checkpoint past which the tape was rewound, even if its place is in use again; a checkpoint of
// another tape; lengths that differ; the gradient of a constant; a gradient that no backward() has computed.
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

// The capacity of a tape.
struct TapeSize {
  std::size_t parameters = 0;
  std::size_t scalars = 0;      // results of operations, variables, leaves
  std::size_t operations = 0;   // leaves(), and operations of any number of scalars
  std::size_t indices = 0;      // numbers that store the operands of these operations
  std::size_t derivatives = 0;  // one per operand of operations that are not linear
};

// T is float, double, Lanes<float, 8 or 16>, Lanes<double, 4 or 8>, Float16, BFloat16 or Float128.
template <class T>
class EagerTape {
  static_assert(!std::is_integral_v<T>, "a tape of integers has no derivatives: use double");

  struct Used {
    std::uint32_t slots = 0, operations = 0, indices = 0, derivatives = 0;
  };

 public:
  using Value = T;
  using Var = gradwire::Var<EagerTape>;
  using Range = VarRange<EagerTape>;

  // The target of rewind(): the tape, how much was recorded on it, and after how many rewinds.
  class Checkpoint {
   public:
    Checkpoint() = default;  // belongs to no tape; rewind() to it throws std::logic_error

   private:
    friend EagerTape;
    Checkpoint(const EagerTape* tape, std::uint64_t rewinds, const Used& used)
        : tape_(tape), rewinds_(rewinds), used_(used) {}

    const EagerTape* tape_ = nullptr;
    std::uint64_t rewinds_ = 0;
    Used used_;
  };

  explicit EagerTape(std::size_t parameters = 0);
  // Uses `buffer`, which must outlive the tape and have at least bytes(size) bytes, at any address. Throws
  // std::logic_error if `buffer` is too small.
  EagerTape(const TapeSize& size, std::span<std::byte> buffer);
  static std::size_t bytes(const TapeSize& size);
  EagerTape(const EagerTape&) = delete;  // handles point to it
  EagerTape& operator=(const EagerTape&) = delete;

  // The spans are valid until the next recording.
  std::span<T> parameter_values() { return {value_.get() + kDeadSlots, parameters_}; }
  std::span<T> parameter_gradients() { return {gradient_.get() + kDeadSlots, parameters_}; }
  Range parameters() { return {this, TapePlace::at(kDeadSlots, generation()), parameters_}; }
  void zero_parameter_gradients();

  GRADWIRE_INLINE Var variable(const T& value) { return append(value, dead(), T(0), dead() ^ 1, T(0)); }
  GRADWIRE_INLINE Var leaf(const T& value) { return variable(value); }
  // Makes a scalar that works like a variable in operations, but takes no record. Its gradient is not kept.
  GRADWIRE_INLINE Var constant(const T& value) { return {this, value, TapePlace::at(0, generation())}; }
  // Makes adjacent variables, for operations on ranges. `values` may view the memory of this tape.
  Range leaves(std::span<const T> values);
  // Copies scalars to adjacent places.
  Range pack(std::span<const Var> scalars);

  // Adds seed * d root / d p to the gradient of every parameter p. Overwrites all other gradients.
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
  // Computes the gradient of sum_i slopes[i] outputs[i]. If the slopes are the derivatives of a function by
  // the outputs, this is the gradient of that function.
  void backward_from(std::span<const Var> outputs, std::span<const T> slopes);

  // Does the same as backward(), in the caller's scratch of at least scratch_size() numbers. It does not
  // change the tape, so several threads may call it at once. It overwrites all gradients, including those of
  // parameters.
  void backward(const Var& root, std::span<T> scratch, const T& seed = T(1)) const;
  T gradient(const Var& x, std::span<const T> scratch) const;
  std::span<const T> gradients(const Range& x, std::span<const T> scratch) const;
  std::size_t scratch_size() const { return used_.slots; }

  std::span<const T> values(const Range& x) const { return {value_.get() + checked(x), x.size()}; }
  std::span<const T> gradients(const Range& x) const;

  // Returns the size of what is recorded now.
  TapeSize used() const {
    return {parameters_, used_.slots - first_, used_.operations, used_.indices, used_.derivatives};
  }

  // A map from handles of a joined tape to handles of this tape.
  class Joined {
   public:
    Var operator()(const Var& x) const {
      part_->check(x);
      return {tape_, x.value(),
              TapePlace::at(part_->moved(x.place().slot(), inputs_, shift_), tape_->generation())};
    }

   private:
    friend EagerTape;
    Joined(EagerTape* tape, const EagerTape* part, std::uint32_t inputs, std::uint32_t shift)
        : tape_(tape), part_(part), inputs_(inputs), shift_(shift) {}
    EagerTape* tape_;
    const EagerTape* part_;
    std::uint32_t inputs_, shift_;
  };
  // Appends all that `part` recorded, as if it had been recorded here. `inputs` replace the parameters of
  // `part`; they must have the same number and values. So threads can record parts, each on its own tape, and
  // one thread joins them in a fixed order. The bits do not depend on which thread was faster.
  Joined join(const EagerTape& part, const Range& inputs);

  Checkpoint checkpoint() const { return {this, rewinds_, used_}; }
  // Forgets what was recorded since `to`. Keeps the memory.
  GRADWIRE_INLINE void rewind(const Checkpoint& to) {
    // True if this rewind goes to the same place as the latest one, and no rewind since `to` was made went
    // lower.
    const bool again = to.tape_ == this && to.used_.slots == rewound_to_ && to.rewinds_ >= lower_;
    if (!again) [[unlikely]] {
      if (!is_alive(to)) throw_dead_checkpoint();
      remember_rewind(to.used_.slots);
    }
    ++rewinds_;
    used_ = to.used_;
    swept_ = swept_ < used_.slots ? swept_ : used_.slots;
  }

  // Makes n adjacent scalars. make(i) must record exactly one operation, of one or two scalars, and return
  // its result.
  template <class Make>
  Range range(std::size_t n, Make make);

  // Records an operation of one or two scalars.
  GRADWIRE_INLINE Var record(const T& value, const Var& a, const T& da) {
    check(a);
    return append(value, a.place().slot(), da, dead(), T(0));
  }
  GRADWIRE_INLINE Var record(const T& value, const Var& a, const T& da, const Var& b, const T& db) {
    check(a);
    check(b);
    return append(value, a.place().slot(), da, b.place().slot(), db);
  }

  // derivatives(n) returns the place for n derivatives of an operation of any number of scalars
  // (engine/tape/reductions.h). After they are written, record_all() makes one record. Its n operands are
  // given as one list after another.
  T* derivatives(std::size_t n);
  template <class... Lists>
  Var record_all(const T& value, std::size_t n, const Lists&... lists) {
    constexpr bool kRanges = (std::is_same_v<Lists, std::span<const Range>> || ...);
    Operation& op = begin_operation(kRanges ? Kind::kRanges : Kind::kScattered, 1);
    (link(lists), ...);
    return {this, value, end_operation(op, n)};
  }
  // Records an operation whose derivative by x_i is alpha + beta x_i.
  Var record_linear(const T& value, std::span<const Var> x, const T& alpha, const T& beta);
  Var record_linear(const T& value, std::span<const Range> x, const T& alpha, const T& beta);
  // Records sum a_i b_i, plus the bias. a and b must have the same length.
  Var inner_product(std::span<const Range> a, std::span<const Range> b);
  Var inner_product(std::span<const Range> a, std::span<const Range> b, const Var& bias);

  Var element(const Range& range, std::uint32_t i);  // for VarRange

 private:
  friend TapeReader<EagerTape>;

  // The part of a record of one or two operands that backward() reads. entry_ is indexed by slot.
  struct Entry {
    T da, db;
    std::uint64_t links;  // slot of a in the low half, slot of b in the high half: one word to write
  };

  enum class Kind : std::uint8_t { kLeaves, kScattered, kRanges, kEqual, kLinear, kInnerProduct };

  // A record of an operation of any number of operands, or of leaves().
  struct Operation {
    T alpha, beta;                      // kEqual and kLinear: derivatives alpha + beta x_i
    std::uint32_t slot = 0, slots = 1;  // slots of the results
    // Range in index_. It holds slots (kScattered), runs { slot, size } (ranges) or { slot in a, slot in b,
    // size } (kInnerProduct).
    std::uint32_t index = 0, index_end = 0;
    std::uint32_t derivative = 0;  // index in derivative_ for the first operand
    std::uint32_t bias = 0;        // kInnerProduct: slot of the bias
    Kind kind = Kind::kLeaves;
  };

  // Rewind number `number` of this tape, after which `slots` slots were left. Earlier handles to higher slots
  // are stale.
  struct Rewind {
    std::uint64_t number;
    std::uint32_t slots;
  };

  // A record links each operand that it lacks to one of these slots, so backward() needs no branch. Records
  // use the slots in turn, because with one slot each addition would wait for the one before.
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
  std::uint32_t checked(const Range& x) const;  // returns its first slot
  // A function that is called from here either always throws or never throws. Across a call that might do
  // either, the compiler keeps no number in a register.
  GRADWIRE_INLINE void check_age(TapePlace place, std::uint32_t slots) const {
    if (!is_alive(place, slots)) throw_stale();
  }
  GRADWIRE_INLINE void reserve(std::size_t slots) {
    if (!grow(slots)) throw_full();
  }
  [[gnu::cold]] bool is_alive(TapePlace place, std::uint32_t slots) const noexcept;
  [[gnu::cold]] bool is_alive(const Checkpoint& to) const noexcept;
  // Returns whether no rewind after the first `rewinds` ones went below slot `end`.
  bool survived(std::uint64_t rewinds, std::uint64_t end) const noexcept;
  [[gnu::cold]] bool grow(std::size_t slots) noexcept;
  [[noreturn, gnu::cold]] static void throw_stale();
  [[noreturn, gnu::cold]] static void throw_full();
  [[noreturn, gnu::cold]] static void throw_no_gradient(std::uint32_t slot);
  [[noreturn, gnu::cold]] static void throw_dead_checkpoint();
  [[gnu::cold]] void remember_rewind(std::uint32_t slots);

  Operation& begin_operation(Kind kind, std::size_t slots);
  // Begins an operation and links its operands. Returns the sum of the products and the operation.
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
  // Returns whether index i of an operation is a slot; else it is the size of a run.
  bool is_slot(const Operation& op, std::uint32_t i) const {
    const std::uint32_t k = i - op.index;
    if (op.kind == Kind::kScattered) return true;
    return op.kind == Kind::kInnerProduct ? k % 3 != 2 : k % 2 == 0;
  }
  // Returns the slot of the other tape that holds `slot` of this tape after a join.
  std::uint32_t moved(std::uint32_t slot, std::uint32_t inputs, std::uint32_t shift) const {
    if (slot < kDeadSlots) return slot;
    return slot < first_ ? slot - kDeadSlots + inputs : slot + shift;
  }

  // Every record and rewind touches the first members, so they share few cache lines.
  Used used_;                         // its slots: dead ones, parameters, what is recorded
  std::uint32_t capacity_ = 0;        // size of value_, gradient_ and entry_
  std::uint32_t parameters_, first_;  // first_: the first slot after the parameters
  std::uint32_t swept_;               // gradients of recorded slots from here on are 0
  std::uint32_t rewound_to_;          // slots that the latest rewind left
  bool borrowed_ = false;             // the caller gave all memory
  std::uint64_t rewinds_ = 0;
  std::uint64_t lower_ = 0;   // number of the last rewind in history_, or 0
  PlacedArray<Entry> entry_;  // [slot]
  PlacedArray<T> gradient_;   // [slot]
  PlacedArray<T> value_;      // [slot], of parameters and ranges only
  TapeArray<Operation> operation_;
  TapeArray<std::uint32_t> index_;
  TapeArray<T> derivative_;
  TapeArray<Rewind> history_;  // earlier rewinds that went lower than all later ones; ascending
  std::size_t most_rewinds_ = ~std::size_t{0};  // capacity of history_
};

template <class T>
template <class Make>
auto EagerTape<T>::range(std::size_t n, Make make) -> Range {
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

// Returns the size that record(tape) needs on a tape with that many parameters. Runs it once, on a tape that
// grows and whose parameters are all 0.
template <class T, class Record>
TapeSize tape_size(std::size_t parameters, Record record) {
  EagerTape<T> tape(parameters);
  record(tape);
  return tape.used();
}

extern template class EagerTape<float>;
extern template class EagerTape<double>;
extern template class EagerTape<Lanes<float, 8>>;
extern template class EagerTape<Lanes<float, 16>>;
extern template class EagerTape<Lanes<double, 4>>;
extern template class EagerTape<Lanes<double, 8>>;
extern template class EagerTape<Float16>;
extern template class EagerTape<BFloat16>;
#if GRADWIRE_HAS_FLOAT128
extern template class EagerTape<Float128>;
#endif

}  // namespace gradwire
