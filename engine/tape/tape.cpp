#include "engine/tape/tape.h"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace gradwire {
namespace {

// Bytes from the tape to its arrays, modulo 4096.
constexpr std::uintptr_t kEntries = 512, kGradients = 1792, kValues = 2176;

constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();

// A zero gradient passes nothing on, not even through an infinite derivative.
template <class T>
GRADWIRE_INLINE T product(const T& derivative, const T& gradient) {
  if constexpr (std::is_arithmetic_v<T>) {
    return derivative * gradient;  // the callers look at the gradient
  } else {
    return select(gradient == T(0), T(0), derivative * gradient);
  }
}

template <class T>
bool is_zero(const T& x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return x == 0;
  } else {
    bool zero = true;
    for (std::size_t i = 0; i < T::size(); ++i) zero = zero && x[i] == 0;
    return zero;
  }
}

}  // namespace

template <class T>
Tape<T>::Tape(std::size_t parameters) {
  if (parameters >= kMost - kDeadSlots) throw std::length_error("a tape of 2^32 parameters or more");
  parameters_ = static_cast<std::uint32_t>(parameters);
  first_ = swept_ = kDeadSlots + parameters_;
  rewound_to_ = first_;
  history_.reserve(8);
  reserve(first_);
  used_.slots = first_;
  std::fill_n(value_.get(), first_, T(0));
  std::fill_n(gradient_.get(), first_, T(0));
}

template <class T>
bool Tape<T>::grow(std::size_t slots) noexcept {
  constexpr std::size_t kFirstSlots = 64;
  if (slots > kMost - used_.slots) return false;
  const std::size_t recorded =
      used_.slots > first_ ? used_.slots - first_ : 0;  // doubled; parameters are not
  const std::size_t capacity = std::min(kMost, used_.slots + std::max(slots, recorded) + kFirstSlots);
  try {
    // Keeps the arrays clear of the stack frames below and around a tape that is a local variable.
    const auto here = reinterpret_cast<std::uintptr_t>(this);
    PlacedArray<Entry> entry(capacity, here + kEntries - first_ * sizeof(Entry));
    PlacedArray<T> gradient(capacity, here + kGradients - first_ * sizeof(T)),
        value(capacity, here + kValues);
    std::copy_n(value_.get(), used_.slots, value.get());
    std::copy_n(gradient_.get(), used_.slots, gradient.get());
    if (recorded > 0) std::copy_n(entry_.get() + first_, recorded, entry.get() + first_);
    value_ = std::move(value);
    gradient_ = std::move(gradient);
    entry_ = std::move(entry);
  } catch (const std::bad_alloc&) {
    return false;
  }
  capacity_ = static_cast<std::uint32_t>(capacity);
  return true;
}

template <class T>
void Tape<T>::zero_parameter_gradients() {
  std::fill_n(gradient_.get() + kDeadSlots, parameters_, T(0));
}

template <class T>
auto Tape<T>::leaves(std::span<const T> values) -> Range {
  // No record: every operation must have results, because the slots in use tell which operations are in use.
  if (values.empty()) return {this, Place::at(used_.slots, generation()), 0};
  if (values.size() > capacity_ - used_.slots) {
    const std::vector<T> kept(values.begin(), values.end());  // `values` may be in an array that moves
    reserve(values.size());
    return leaves(kept);
  }
  const auto size = static_cast<std::uint32_t>(values.size());
  Operation& op = begin_operation(Kind::kLeaves, values.size());
  op.slots = size;
  std::copy(values.begin(), values.end(), value_.get() + op.slot);
  return {this, end_operation(op), size};
}

template <class T>
auto Tape<T>::pack(std::span<const Var> scalars) -> Range {
  return range(scalars.size(), [&](std::size_t i) { return record(scalars[i].value(), scalars[i], T(1)); });
}

template <class T>
auto Tape<T>::element(const Range& range, std::uint32_t i) -> Var {
  const std::uint32_t slot = checked(range) + i;
  return {this, value_[slot], Place::at(slot, generation())};
}

// Operations of any number of scalars.

template <class T>
T* Tape<T>::derivatives(std::size_t n) {
  if (n > derivative_.size() - used_.derivatives) derivative_.resize(2 * derivative_.size() + n);
  return derivative_.data() + used_.derivatives;
}

// Nothing counts as recorded before end_operation().
template <class T>
auto Tape<T>::begin_operation(Kind kind, std::size_t slots) -> Operation& {
  if (slots > capacity_ - used_.slots) reserve(slots);
  if (used_.operations == operation_.size()) operation_.resize(2 * operation_.size() + 16);
  index_.resize(used_.indices);
  Operation& op = operation_[used_.operations];
  op = Operation();
  op.kind = kind;
  op.slot = used_.slots;
  op.index = used_.indices;
  op.derivative = used_.derivatives;
  return op;
}

template <class T>
Place Tape<T>::end_operation(Operation& op, std::size_t derivatives) {
  if (std::max(index_.size(), used_.derivatives + derivatives) > kMost)
    throw std::length_error("the tape is full: 2^32 operands are recorded; rewind it");
  op.index_end = used_.indices = static_cast<std::uint32_t>(index_.size());
  std::fill_n(gradient_.get() + op.slot, op.slots, T(0));
  used_.derivatives += static_cast<std::uint32_t>(derivatives);
  used_.slots += op.slots;
  ++used_.operations;
  return Place::at(op.slot, generation());
}

template <class T>
void Tape<T>::link(std::span<const Var> list) {
  for (const Var& x : list) {
    check(x);
    index_.push_back(x.place().slot());
  }
}
template <class T>
void Tape<T>::link(std::span<const Range> list) {
  for (const Range& x : list) {
    index_.push_back(checked(x));
    index_.push_back(x.size_);
  }
}

template <class T>
auto Tape<T>::record_linear(const T& value, std::span<const Var> x, const T& alpha, const T& beta) -> Var {
  T* d = derivatives(x.size());
  const bool equal = is_zero(beta);
  for (std::size_t i = 0; i < x.size(); ++i) d[i] = equal ? alpha : alpha + beta * x[i].value();
  return record_all(value, x.size(), x);
}

template <class T>
auto Tape<T>::record_linear(const T& value, std::span<const Range> x, const T& alpha, const T& beta) -> Var {
  Operation& op = begin_operation(is_zero(beta) ? Kind::kEqual : Kind::kLinear, 1);
  link(x);
  op.alpha = alpha;
  op.beta = beta;
  return {this, value, end_operation(op)};
}

template <class T>
auto Tape<T>::inner_product(std::span<const Range> a, std::span<const Range> b, const Var& bias) -> Var {
  check(bias);
  const Var sum = inner_product(a, b);
  operation_[used_.operations - 1].bias = bias.place().slot();
  return {this, sum.value() + bias.value(), sum.place()};
}

// The runs of a and b need not end at the same places.
template <class T>
auto Tape<T>::inner_product(std::span<const Range> a, std::span<const Range> b) -> Var {
  for (const Range& x : a) checked(x);
  for (const Range& x : b) checked(x);
  Operation& op = begin_operation(Kind::kInnerProduct, 1);
  T sum(0);
  std::size_t i = 0, k = 0;
  std::uint32_t a_done = 0, b_done = 0;  // of a[i] and b[k]
  while (i < a.size() && k < b.size()) {
    const std::uint32_t size = std::min(a[i].size_ - a_done, b[k].size_ - b_done);
    const std::uint32_t a_slot = a[i].place().slot() + a_done, b_slot = b[k].place().slot() + b_done;
    index_.push_back(a_slot);
    index_.push_back(b_slot);
    index_.push_back(size);
    const T* left = value_.get() + a_slot;
    const T* right = value_.get() + b_slot;
    sum += running_sum<T>(size, [&](std::size_t j) { return left[j] * right[j]; });
    a_done += size;
    b_done += size;
    if (a_done == a[i].size_) {
      ++i;
      a_done = 0;
    }
    if (b_done == b[k].size_) {
      ++k;
      b_done = 0;
    }
  }
  return {this, sum, end_operation(op)};
}

template <class T>
void Tape<T>::propagate(const Operation& op) {
  T* g = gradient_.get();
  const T* v = value_.get();
  const T d = g[op.slot];
  if (op.kind == Kind::kLeaves || is_zero(d)) return;
  const std::uint32_t* index = index_.data();
  const T* derivative = derivative_.data() + op.derivative;
  if (op.kind == Kind::kInnerProduct) {
    for (std::uint32_t k = op.index; k < op.index_end; k += 3) {
      const std::uint32_t a = index[k], b = index[k + 1], size = index[k + 2];
      for (std::uint32_t j = 0; j < size; ++j) g[a + j] += product(v[b + j], d);
      for (std::uint32_t j = 0; j < size; ++j) g[b + j] += product(v[a + j], d);
    }
    g[op.bias] += d;
    return;
  }
  if (op.kind == Kind::kScattered) {
    for (std::uint32_t k = op.index; k < op.index_end; ++k) g[index[k]] += product(*derivative++, d);
    return;
  }
  const T equal = product(op.alpha, d);
  for (std::uint32_t k = op.index; k < op.index_end; k += 2) {
    const std::uint32_t first = index[k], size = index[k + 1];
    if (op.kind == Kind::kEqual) {
      for (std::uint32_t j = 0; j < size; ++j) g[first + j] += equal;
    } else if (op.kind == Kind::kLinear) {
      for (std::uint32_t j = 0; j < size; ++j) g[first + j] += product(op.alpha + op.beta * v[first + j], d);
    } else {
      for (std::uint32_t j = 0; j < size; ++j) g[first + j] += product(*derivative++, d);
    }
  }
}

template <class T>
void Tape<T>::sweep(std::uint32_t root, const T& seed) {
  std::fill(gradient_.get() + first_, gradient_.get() + swept_, T(0));
  swept_ = used_.slots;
  gradient_[root] += seed;
  std::uint32_t end = root + 1;  // what was recorded after the root does not matter to it
  for (std::uint32_t k = used_.operations; k-- > 0;) {
    const Operation& op = operation_[k];
    if (op.slot > root) continue;
    sweep_entries(op.slot + op.slots, end);
    propagate(op);
    end = op.slot;
  }
  sweep_entries(first_, end);
}

// Most records have an operand in the record just before. Its share is carried in a register: through memory,
// the next step would have to wait for the store.
template <class T>
void Tape<T>::sweep_entries(std::uint32_t begin, std::uint32_t end) {
  if (end <= begin) return;
  const Entry* entry = entry_.get();
  T* g = gradient_.get();
  T carry(0);
  for (std::uint32_t i = end; i-- > begin;) {
    const T d = g[i] + carry;
    g[i] = d;
    carry = T(0);
    if constexpr (std::is_arithmetic_v<T>) {
      if (d == 0) continue;
    }
    const T da = product(entry[i].da, d), db = product(entry[i].db, d);
    const auto a = static_cast<std::uint32_t>(entry[i].links);
    const auto b = static_cast<std::uint32_t>(entry[i].links >> 32);
    if (a == i - 1) {
      carry += da;
    } else {
      g[a] += da;
    }
    if (b == i - 1) {
      carry += db;
    } else {
      g[b] += db;
    }
  }
  g[begin - 1] += carry;
}

template <class T>
void Tape<T>::remember_rewind(std::uint32_t slots) {
  if (rewound_to_ < slots) history_.push_back({rewinds_, rewound_to_});
  while (!history_.empty() && history_.back().slots >= slots) history_.pop_back();
  lower_ = history_.empty() ? 0 : history_.back().number;
  rewound_to_ = slots;
}

template <class T>
bool Tape<T>::survived(std::uint64_t rewinds, std::uint64_t end) const noexcept {
  // The first rewind since then is the one that went lowest.
  const auto later =
      std::find_if(history_.begin(), history_.end(), [&](const Rewind& r) { return r.number > rewinds; });
  return end <= used_.slots && end <= (later != history_.end() ? later->slots : rewound_to_);
}

template <class T>
bool Tape<T>::is_alive(const Checkpoint& to) const noexcept {
  if (to.tape_ != this || to.used_.slots > used_.slots) return false;
  return to.rewinds_ == rewinds_ || (to.rewinds_ < rewinds_ && survived(to.rewinds_, to.used_.slots));
}

// A handle is good if no rewind since it was made went below it. It stores the number of rewinds before it
// modulo 2^32: a handle that is more than 2^32 rewinds old looks younger than it is, so a stale one may pass,
// but a good one always passes.
template <class T>
bool Tape<T>::is_alive(Place place, std::uint32_t slots) const noexcept {
  const std::uint64_t age = generation() - place.generation();
  return survived(rewinds_ - age, std::uint64_t{place.slot()} + slots);
}

template <class T>
void Tape<T>::throw_stale() {
  throw std::logic_error("a Var was used after its tape was rewound past it");
}

template <class T>
void Tape<T>::throw_full() {
  throw std::length_error("the tape is full: no memory for more, or 2^32 numbers are recorded; rewind it");
}

template <class T>
std::span<const T> Tape<T>::gradients(const Range& x) const {
  const std::uint32_t slot = checked(x);
  if (x.size_ > 0 && slot + x.size_ > swept_) throw_no_gradient(slot);
  return {gradient_.get() + slot, x.size_};
}

template <class T>
std::uint32_t Tape<T>::checked(const Range& x) const {
  if (x.owner() != this) throw_foreign(x.owner());
  if (x.place().generation() != generation()) check_age(x.place(), x.size_);
  return x.place().slot();
}

template <class T>
void Tape<T>::throw_not_behind() {
  throw std::logic_error("rewind to a checkpoint of another tape, or one that its tape was rewound past");
}

template <class T>
void Tape<T>::throw_no_gradient(std::uint32_t slot) {
  if (slot < kDeadSlots) throw std::logic_error("the gradient of a constant is not kept");
  throw std::logic_error("the gradient of a Var that no backward() has seen: call backward() first");
}

template class Tape<float>;
template class Tape<double>;
template class Tape<Lanes<float, 8>>;
template class Tape<Lanes<float, 16>>;
template class Tape<Lanes<double, 4>>;
template class Tape<Lanes<double, 8>>;

}  // namespace gradwire
