#include "engine/tape/eager_tape.h"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/tape/tape_sweep_impl.h"

namespace gradwire {
namespace {

// Distances from the tape to its arrays in bytes, modulo 4096. engine/tape/placed_array.h says why they
// matter.
constexpr std::uintptr_t kEntries = 512, kGradients = 1792, kValues = 2176;

constexpr std::size_t kAlignment = 64;    // alignment of arrays in the caller's buffer
constexpr std::size_t kFirstRewinds = 8;  // rewinds that fit before history_ grows

constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();

}  // namespace

template <class T>
EagerTape<T>::EagerTape(std::size_t parameters) {
  if (parameters >= kMost - kDeadSlots) throw std::length_error("a tape of 2^32 parameters or more");
  parameters_ = static_cast<std::uint32_t>(parameters);
  first_ = swept_ = kDeadSlots + parameters_;
  rewound_to_ = first_;
  history_.resize(kFirstRewinds);
  history_.resize(0);
  reserve(first_);
  used_.slots = first_;
  std::fill_n(value_.get(), first_, T(0));
  std::fill_n(gradient_.get(), first_, T(0));
}

template <class T>
EagerTape<T>::EagerTape(const TapeSize& size, std::span<std::byte> buffer) {
  const std::size_t needed = bytes(size);
  if (buffer.size() < needed)
    throw std::logic_error("a tape was given " + std::to_string(buffer.size()) + " bytes; it needs " +
                           std::to_string(needed));
  parameters_ = static_cast<std::uint32_t>(size.parameters);
  first_ = swept_ = kDeadSlots + parameters_;
  rewound_to_ = first_;
  capacity_ = static_cast<std::uint32_t>(first_ + size.scalars);
  borrowed_ = true;
  most_rewinds_ = kFirstRewinds;
  std::byte* at = buffer.data();
  const auto take = [&](std::size_t bytes) {
    at += (kAlignment - reinterpret_cast<std::uintptr_t>(at) % kAlignment) % kAlignment;
    return std::exchange(at, at + bytes);
  };
  const auto here = reinterpret_cast<std::uintptr_t>(this);
  entry_ = PlacedArray<Entry>(take(PlacedArray<Entry>::bytes(capacity_)),
                              here + kEntries - first_ * sizeof(Entry));
  gradient_ = PlacedArray<T>(take(PlacedArray<T>::bytes(capacity_)), here + kGradients - first_ * sizeof(T));
  value_ = PlacedArray<T>(take(PlacedArray<T>::bytes(capacity_)), here + kValues);
  const auto borrow = [&](auto& array, std::size_t count) {
    using Element = std::remove_reference_t<decltype(array[0])>;
    array.borrow(reinterpret_cast<Element*>(take(count * sizeof(Element))), count);
  };
  borrow(operation_, size.operations);
  borrow(index_, size.indices);
  borrow(derivative_, size.derivatives);
  borrow(history_, kFirstRewinds);
  index_.resize(0);
  history_.resize(0);
  used_.slots = first_;
  std::fill_n(value_.get(), first_, T(0));
  std::fill_n(gradient_.get(), first_, T(0));
}

template <class T>
std::size_t EagerTape<T>::bytes(const TapeSize& size) {
  const std::size_t largest =
      std::max({size.parameters, size.scalars, size.operations, size.indices, size.derivatives});
  const std::size_t slots = kDeadSlots + size.parameters + size.scalars;
  if (largest >= kMost || slots >= kMost) throw std::length_error("a tape of 2^32 numbers or more");
  constexpr std::size_t kArrays = 7;
  return PlacedArray<Entry>::bytes(slots) + 2 * PlacedArray<T>::bytes(slots) +
         size.operations * sizeof(Operation) + size.indices * sizeof(std::uint32_t) +
         size.derivatives * sizeof(T) + kFirstRewinds * sizeof(Rewind) + kArrays * kAlignment;
}

template <class T>
bool EagerTape<T>::grow(std::size_t slots) noexcept {
  constexpr std::size_t kFirstSlots = 64;
  if (borrowed_ || slots > kMost - used_.slots) return false;
  const std::size_t recorded = used_.slots > first_ ? used_.slots - first_ : 0;  // doubles; parameters do not
  const std::size_t capacity = std::min(kMost, used_.slots + std::max(slots, recorded) + kFirstSlots);
  try {
    // Places the arrays at other addresses modulo 4096 than nearby stack frames, if the tape is a local
    // variable.
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
void EagerTape<T>::zero_parameter_gradients() {
  std::fill_n(gradient_.get() + kDeadSlots, parameters_, T(0));
}

template <class T>
auto EagerTape<T>::leaves(std::span<const T> values) -> Range {
  // Makes no record of an empty range. Every operation must have results, because the slots in use tell which
  // operations are in use.
  if (values.empty()) return {this, TapePlace::at(used_.slots, generation()), 0};
  if (values.size() > capacity_ - used_.slots) {
    if (borrowed_) throw_full();
    const std::vector<T> kept(values.begin(), values.end());  // `values` may view an array that moves
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
auto EagerTape<T>::pack(std::span<const Var> scalars) -> Range {
  return range(scalars.size(), [&](std::size_t i) { return record(scalars[i].value(), scalars[i], T(1)); });
}

template <class T>
auto EagerTape<T>::element(const Range& range, std::uint32_t i) -> Var {
  const std::uint32_t slot = checked(range) + i;
  return {this, value_[slot], TapePlace::at(slot, generation())};
}

// ---- operations of any number of scalars ----

template <class T>
T* EagerTape<T>::derivatives(std::size_t n) {
  if (n > derivative_.size() - used_.derivatives) derivative_.resize(2 * derivative_.size() + n);
  return derivative_.data() + used_.derivatives;
}

// Begins an operation. It counts as recorded only after end_operation().
template <class T>
auto EagerTape<T>::begin_operation(Kind kind, std::size_t slots) -> Operation& {
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
TapePlace EagerTape<T>::end_operation(Operation& op, std::size_t derivatives) {
  if (std::max(index_.size(), used_.derivatives + derivatives) > kMost)
    throw std::length_error("the tape is full: 2^32 operands are recorded; rewind it");
  op.index_end = used_.indices = static_cast<std::uint32_t>(index_.size());
  std::fill_n(gradient_.get() + op.slot, op.slots, T(0));
  used_.derivatives += static_cast<std::uint32_t>(derivatives);
  used_.slots += op.slots;
  ++used_.operations;
  return TapePlace::at(op.slot, generation());
}

template <class T>
void EagerTape<T>::link(std::span<const Var> list) {
  for (const Var& x : list) {
    check(x);
    index_.push_back(x.place().slot());
  }
}
template <class T>
void EagerTape<T>::link(std::span<const Range> list) {
  for (const Range& x : list) {
    index_.push_back(checked(x));
    index_.push_back(x.size_);
  }
}

template <class T>
auto EagerTape<T>::record_linear(const T& value, std::span<const Var> x, const T& alpha, const T& beta)
    -> Var {
  T* d = derivatives(x.size());
  const bool equal = is_zero(beta);
  for (std::size_t i = 0; i < x.size(); ++i) d[i] = equal ? alpha : alpha + beta * x[i].value();
  return record_all(value, x.size(), x);
}

template <class T>
auto EagerTape<T>::record_linear(const T& value, std::span<const Range> x, const T& alpha, const T& beta)
    -> Var {
  Operation& op = begin_operation(is_zero(beta) ? Kind::kEqual : Kind::kLinear, 1);
  link(x);
  op.alpha = alpha;
  op.beta = beta;
  return {this, value, end_operation(op)};
}

template <class T>
auto EagerTape<T>::inner_product(std::span<const Range> a, std::span<const Range> b, const Var& bias) -> Var {
  check(bias);
  const auto [sum, op] = inner_products(a, b);
  op->bias = bias.place().slot();
  return {this, static_cast<T>(sum + wide(bias.value())), end_operation(*op)};
}

template <class T>
auto EagerTape<T>::inner_product(std::span<const Range> a, std::span<const Range> b) -> Var {
  const auto [sum, op] = inner_products(a, b);
  return {this, static_cast<T>(sum), end_operation(*op)};
}

// Records products of runs, each of which lies in one range of a and one range of b. The ranges of a and b
// need not end at the same places.
template <class T>
auto EagerTape<T>::inner_products(std::span<const Range> a, std::span<const Range> b)
    -> std::pair<SumOf<T>, Operation*> {
  for (const Range& x : a) checked(x);
  for (const Range& x : b) checked(x);
  Operation& op = begin_operation(Kind::kInnerProduct, 1);
  SumOf<T> sum(0);
  std::size_t i = 0, k = 0;
  std::uint32_t a_done = 0, b_done = 0;  // numbers of a[i] and b[k] that are already recorded
  while (i < a.size() && k < b.size()) {
    const std::uint32_t size = std::min(a[i].size_ - a_done, b[k].size_ - b_done);
    const std::uint32_t a_slot = a[i].place().slot() + a_done, b_slot = b[k].place().slot() + b_done;
    index_.push_back(a_slot);
    index_.push_back(b_slot);
    index_.push_back(size);
    const T* left = value_.get() + a_slot;
    const T* right = value_.get() + b_slot;
    sum += running_sum<SumOf<T>>(size, [&](std::size_t j) { return wide(left[j]) * wide(right[j]); });
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
  return {sum, &op};
}

template <class T>
void EagerTape<T>::remember_rewind(std::uint32_t slots) {
  if (rewound_to_ < slots) {
    // In the caller's buffer, history_ cannot grow, so the oldest rewind is forgotten. A handle that it made
    // stale may then pass the checks.
    if (history_.size() == most_rewinds_) {
      for (std::size_t k = 1; k < history_.size(); ++k) history_[k - 1] = history_[k];
      history_.resize(history_.size() - 1);
    }
    history_.push_back({rewinds_, rewound_to_});
  }
  while (history_.size() > 0 && history_[history_.size() - 1].slots >= slots)
    history_.resize(history_.size() - 1);
  lower_ = history_.size() == 0 ? 0 : history_[history_.size() - 1].number;
  rewound_to_ = slots;
}

template <class T>
bool EagerTape<T>::survived(std::uint64_t rewinds, std::uint64_t end) const noexcept {
  // history_ ascends, so its first rewind since then is the one that went lowest.
  const auto later =
      std::find_if(history_.begin(), history_.end(), [&](const Rewind& r) { return r.number > rewinds; });
  return end <= used_.slots && end <= (later != history_.end() ? later->slots : rewound_to_);
}

template <class T>
bool EagerTape<T>::is_alive(const Checkpoint& to) const noexcept {
  if (to.tape_ != this || to.used_.slots > used_.slots) return false;
  return to.rewinds_ == rewinds_ || (to.rewinds_ < rewinds_ && survived(to.rewinds_, to.used_.slots));
}

// A handle is valid if no rewind after its recording went below it. The handle stores the number of rewinds
// before its recording, modulo 2^32. So a stale handle may pass after 2^32 rewinds or more, but a valid one
// always passes.
template <class T>
bool EagerTape<T>::is_alive(TapePlace place, std::uint32_t slots) const noexcept {
  const std::uint64_t age = generation() - place.generation();
  return survived(rewinds_ - age, std::uint64_t{place.slot()} + slots);
}

template <class T>
void EagerTape<T>::throw_stale() {
  throw std::logic_error("a Var was used after its tape was rewound past it");
}

template <class T>
void EagerTape<T>::throw_full() {
  throw_tape_full();
}

template <class T>
auto EagerTape<T>::join(const EagerTape& part, const Range& inputs) -> Joined {
  const std::uint32_t first_input = checked(inputs);
  if (&part == this) throw std::logic_error("a tape was joined to itself");
  if (inputs.size_ != part.parameters_)
    throw std::logic_error("join: " + std::to_string(inputs.size_) + " inputs for a tape of " +
                           std::to_string(part.parameters_) + " parameters");
  const std::uint32_t slots = part.used_.slots - part.first_, shift = used_.slots - part.first_;
  const std::uint32_t indices = used_.indices, derivatives = used_.derivatives;
  if (slots > capacity_ - used_.slots) reserve(slots);
  const auto moved = [&](std::uint32_t slot) { return part.moved(slot, first_input, shift); };
  T* const d = this->derivatives(part.used_.derivatives);
  std::copy_n(part.derivative_.data(), part.used_.derivatives, d);
  index_.resize(indices + part.used_.indices);
  if (std::size_t{indices} + part.used_.indices > kMost) throw_full();
  if (used_.operations + part.used_.operations > operation_.size())
    operation_.resize(2 * operation_.size() + part.used_.operations);
  for (std::uint32_t k = 0; k < part.used_.operations; ++k) {
    Operation& op = operation_[used_.operations + k];
    op = part.operation_[k];
    for (std::uint32_t i = op.index; i < op.index_end; ++i)
      index_[indices + i] = part.is_slot(op, i) ? moved(part.index_[i]) : part.index_[i];
    op.slot += shift;
    op.index += indices;
    op.index_end += indices;
    op.derivative += derivatives;
    op.bias = moved(op.bias);
  }
  for (std::uint32_t i = 0; i < slots; ++i) {
    const Entry& from = part.entry_[part.first_ + i];
    Entry& to = entry_[used_.slots + i];
    to = from;
    to.links = std::uint64_t{moved(static_cast<std::uint32_t>(from.links >> 32))} << 32 |
               moved(static_cast<std::uint32_t>(from.links));
    gradient_[used_.slots + i] = T(0);
    value_[used_.slots + i] = part.value_[part.first_ + i];
  }
  used_.slots += slots;
  used_.operations += part.used_.operations;
  used_.indices += part.used_.indices;
  used_.derivatives += part.used_.derivatives;
  return {this, &part, first_input, shift};
}

template <class T>
std::span<const T> EagerTape<T>::gradients(const Range& x) const {
  const std::uint32_t slot = checked(x);
  if (x.size_ > 0 && slot + x.size_ > swept_) throw_no_gradient(slot);
  return {gradient_.get() + slot, x.size_};
}

template <class T>
std::uint32_t EagerTape<T>::checked(const Range& x) const {
  if (x.owner() != this) throw_foreign(x.owner());
  if (x.place().generation() != generation()) check_age(x.place(), x.size_);
  return x.place().slot();
}

template <class T>
void EagerTape<T>::throw_dead_checkpoint() {
  throw std::logic_error("rewind to a checkpoint of another tape, or one that its tape was rewound past");
}

template <class T>
void EagerTape<T>::throw_no_gradient(std::uint32_t slot) {
  if (slot < kDeadSlots) throw std::logic_error("the gradient of a constant is not kept");
  throw std::logic_error("the Var has no gradient yet: call backward() first");
}

template class EagerTape<float>;
template class EagerTape<double>;
template class EagerTape<Lanes<float, 8>>;
template class EagerTape<Lanes<float, 16>>;
template class EagerTape<Lanes<double, 4>>;
template class EagerTape<Lanes<double, 8>>;
template class EagerTape<Float16>;
template class EagerTape<BFloat16>;
#if GRADWIRE_HAS_FLOAT128
template class EagerTape<Float128>;
#endif

}  // namespace gradwire
