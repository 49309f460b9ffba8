// An eager reverse-mode tape over contiguous arrays. Operations are computed and recorded as they are called;
// backward() is one linear sweep from the last record to the first. No graph objects, no sort, no recursion,
// no globals.
//
// Numbers live in slots: parameters first (one range, so that steps, norms and sending are linear passes),
// then whatever is recorded. Two kinds of record share the order of execution: scalar statements, which store
// their two partial derivatives (engine/var.h), and vector operations, which refer to ranges of slots in
// place.
//
//   Tape<float> tape(model.size());                       // parameters; set through parameter_values()
//   const auto start = tape.checkpoint();
//   for (sample : samples) {
//     auto h = tanh(affine(weights, bias, sample));        // handles of ranges
//     tape.backward(softmax_cross_entropy(affine(weights2, bias2, h), label), 1 / count);
//     tape.rewind(start);                                  // memory of one sample, none allocated after the
//     first
//   }
//   tape.parameter_gradients();                            // added up over the samples
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/var.h"

namespace gradwire {

template <class R>
class Tape;

template <class Real>
using Var = BasicVar<Tape<Real>>;

// Consecutive slots of a tape.
template <class Real>
class VarRange {
 public:
  VarRange() = default;  // belongs to no tape; any operation on it throws std::logic_error
  VarRange(Tape<Real>* tape, std::uint32_t first, std::uint32_t size)
      : tape_(tape), first_(first), size_(size) {}

  std::uint32_t first() const { return first_; }
  std::uint32_t size() const { return size_; }
  const Tape<Real>* owner() const { return tape_; }
  Tape<Real>& tape() const {
    if (tape_ == nullptr)
      throw std::logic_error("a VarRange that belongs to no tape: make it with the tape first");
    return *tape_;
  }

  Var<Real> operator[](std::size_t i) const {
    if (i >= size_)
      throw std::logic_error("VarRange: index " + std::to_string(i) + " of " + std::to_string(size_));
    return tape().at(first_ + static_cast<std::uint32_t>(i));
  }
  VarRange subrange(std::size_t first, std::size_t size) const {
    if (first > size_ || size > size_ - first) throw std::logic_error("VarRange: subrange leaves the range");
    return {&tape(), first_ + static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(size)};
  }

 private:
  Tape<Real>* tape_ = nullptr;
  std::uint32_t first_ = 0, size_ = 0;
};

// A vector of data, zeros left out; no gradient flows into it. Refers to the caller's arrays, which must
// outlive backward().
template <class Real>
struct SparseInput {
  std::span<const std::uint32_t> index;  // ascending
  std::span<const Real> value;
};

template <class R>
class Tape {
 public:
  using Real = R;
  using Var = BasicVar<Tape>;
  using Range = VarRange<Real>;

  // How much is recorded: where rewind() goes back to.
  struct Checkpoint {
    std::uint32_t slots = 0, statements = 0, operations = 0, links = 0;
  };

  explicit Tape(std::size_t parameters = 0);
  Tape(const Tape&) = delete;  // handles point to it
  Tape& operator=(const Tape&) = delete;

  // The spans are valid until the next recording.
  std::span<Real> parameter_values() { return {value_.data(), parameters_}; }
  std::span<Real> parameter_gradients() { return {gradient_.data(), parameters_}; }
  Range parameters() { return {this, 0, parameters_}; }

  Var leaf(Real value) { return statement(value, dead_slot(), Real(0), dead_slot(), Real(0)); }
  Range leaves(std::span<const Real> values);
  // Takes part in operations like a leaf, without a record; its gradient is not kept.
  Var constant(Real value) { return {this, value, dead_slot()}; }
  // Scalars side by side, for vector operations.
  Range pack(std::span<const Var> scalars);

  // One record each; see the free functions below.
  Range affine(const Range& weights, const Range& bias, const Range& x);
  Range affine(const Range& weights, const Range& bias, const SparseInput<Real>& x);
  Range tanh(const Range& x);
  Range relu(const Range& x);
  Var inner_product(const Range& a, const Range& b);
  Var softmax_cross_entropy(const Range& logits, std::size_t label);

  // Adds seed * d root / d p to the gradient of every parameter p; gradients of everything else are set
  // afresh.
  void backward(const Var& root, Real seed = Real(1));
  void zero_parameter_gradients();

  // Of the last backward(); for parameters, the sum since they were zeroed.
  Real gradient(const Var& x) const {
    check(x);
    if (x.slot() >= parameters_ && x.slot() < first_)
      throw std::logic_error("the gradient of a constant is not kept");
    return gradient_[x.slot()];
  }
  std::span<const Real> values(const Range& x) const { return {value_.data() + checked(x), x.size()}; }
  std::span<const Real> gradients(const Range& x) const { return {gradient_.data() + checked(x), x.size()}; }
  Var at(std::uint32_t slot) {
    if (slot >= slots_) throw_stale();
    return {this, value_[slot], slot};
  }

  // Forgets what was recorded since; handles of it must not be used again (noticed as long as their slot is
  // not taken again). Memory is kept.
  Checkpoint checkpoint() const;
  void rewind(const Checkpoint& to);

  // How the operations of engine/var.h record themselves.
  Var unary(Real value, const Var& a, Real da) {
    check(a);
    return statement(value, a.slot(), da, dead_slot(), Real(0));
  }
  Var binary(Real value, const Var& a, Real da, const Var& b, Real db) {
    check(a);
    check(b);
    return statement(value, a.slot(), da, b.slot(), db);
  }

 private:
  // A scalar statement: its slot is implicit, the next one after the record before it.
  struct Statement {
    Real da, db;
    std::uint32_t a, b;
  };

  enum class Kind : std::uint8_t {
    kLeaves,
    kPack,
    kAffine,
    kSparseAffine,
    kTanh,
    kRelu,
    kInnerProduct,
    kCrossEntropy
  };

  struct Operation {
    Kind kind = Kind::kLeaves;
    std::uint32_t out = 0;         // first slot of the result
    std::uint32_t slots = 0;       // length of the result and of what backward wants to find again behind it
    std::uint32_t statements = 0;  // scalar statements recorded before
    std::uint32_t a = 0, b = 0, c = 0;  // first slots of the operands (pack: a is the first link)
    std::uint32_t size = 0;             // length of the (last) operand
    SparseInput<Real> input = {};
    std::size_t label = 0;
  };

  // Statements with fewer than two operands point to slots that nobody reads: no branch in the sweep.
  // Several, taken in turn, since one would make each addition wait for the one before.
  static constexpr std::uint32_t kDeadSlots = 8;
  std::uint32_t dead_slot() const { return parameters_ + statements_ % kDeadSlots; }

  Var statement(Real value, std::uint32_t a, Real da, std::uint32_t b, Real db) {
    if (slots_ == value_.size()) [[unlikely]]
      grow_slots(1);
    if (statements_ == statement_.size()) [[unlikely]]
      grow_statements();
    statement_[statements_++] = {da, db, a, b};
    value_[slots_] = value;
    gradient_[slots_] = Real(0);
    return {this, value, slots_++};
  }

  void check(const Var& x) const {
    if (x.owner() != this) [[unlikely]]
      throw_foreign(x.owner() == nullptr);
    if (x.slot() >= slots_) [[unlikely]]
      throw_stale();
  }
  std::uint32_t checked(const Range& x) const;  // its first slot
  [[noreturn]] static void throw_foreign(bool none);
  [[noreturn]] static void throw_stale();

  Operation& record(Kind kind, std::uint32_t result_slots);
  void grow_slots(std::size_t more);
  void grow_statements();
  void sweep_statements(std::uint32_t begin, std::uint32_t end, std::uint32_t first_slot, std::uint32_t root);
  void backward(const Operation& operation);

  std::uint32_t parameters_;  // slots [0, parameters_); dead slots up to first_; then what is recorded
  std::uint32_t first_;
  std::uint32_t slots_ = 0;       // in use of value_ and gradient_
  std::uint32_t statements_ = 0;  // in use of statement_
  std::uint32_t swept_;           // gradients of recorded slots from here on are still 0
  std::vector<Real> value_;
  std::vector<Real> gradient_;
  std::vector<Statement> statement_;
  std::vector<Operation> operation_;
  std::vector<std::uint32_t> link_;  // operands of pack
};

// out_j = bias_j + sum_k x_k weights[k][j], weights (in, out) row by row: loops over j vectorise without
// reordering a sum.
template <class Real>
VarRange<Real> affine(const VarRange<Real>& weights, const VarRange<Real>& bias, const VarRange<Real>& x) {
  return weights.tape().affine(weights, bias, x);
}
template <class Real>
VarRange<Real> affine(const VarRange<Real>& weights, const VarRange<Real>& bias, const SparseInput<Real>& x) {
  return weights.tape().affine(weights, bias, x);
}
template <class Real>
VarRange<Real> tanh(const VarRange<Real>& x) {
  return x.tape().tanh(x);
}
template <class Real>
VarRange<Real> relu(const VarRange<Real>& x) {
  return x.tape().relu(x);
}
template <class Real>
Var<Real> inner_product(const VarRange<Real>& a, const VarRange<Real>& b) {
  return a.tape().inner_product(a, b);
}
// sum_i a_i b_i over scalars wherever they lie.
template <class Real>
Var<Real> inner_product(std::span<const Var<Real>> a, std::span<const Var<Real>> b) {
  if (a.empty()) throw std::logic_error("inner_product of empty vectors");
  Tape<Real>& tape = a[0].tape();
  return tape.inner_product(tape.pack(a), tape.pack(b));
}
// -log softmax(logits)[label]
template <class Real>
Var<Real> softmax_cross_entropy(const VarRange<Real>& logits, std::size_t label) {
  return logits.tape().softmax_cross_entropy(logits, label);
}

extern template class Tape<float>;
extern template class Tape<double>;

}  // namespace gradwire
