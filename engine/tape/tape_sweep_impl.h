// Implementation of backward(), for engine/tape/tape.cpp alone.
#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "engine/tape/eager_tape.h"

namespace gradwire {

// Returns derivative * gradient, but 0 if the gradient is 0, even if the derivative is infinite.
template <class T>
GRADWIRE_INLINE T product(const T& derivative, const T& gradient) {
  if constexpr (kIsScalar<T>) {
    return derivative * gradient;  // the callers check the gradient
  } else {
    return select(gradient == T(0), T(0), derivative * gradient);
  }
}

template <class T>
bool is_zero(const T& x) {
  if constexpr (kIsScalar<T>) {
    return x == T(0);
  } else {
    bool zero = true;
    for (std::size_t i = 0; i < T::size(); ++i) zero = zero && x[i] == 0;
    return zero;
  }
}

template <class T>
void EagerTape<T>::propagate(const Operation& op, T* g) const {
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
GRADWIRE_INLINE void EagerTape<T>::sweep_from(std::uint32_t root, T* gradient) const {
  std::uint32_t end = root + 1;  // the root does not depend on what was recorded after it
  for (std::uint32_t k = used_.operations; k-- > 0;) {
    const Operation& op = operation_[k];
    if (op.slot > root) continue;
    sweep_entries(op.slot + op.slots, end, gradient);
    propagate(op, gradient);
    end = op.slot;
  }
  sweep_entries(first_, end, gradient);
}

// Clears the gradients of the previous pass, except those of parameters, which accumulate.
template <class T>
GRADWIRE_INLINE void EagerTape<T>::start_sweep() {
  std::fill(gradient_.get() + first_, gradient_.get() + swept_, T(0));
  swept_ = used_.slots;
}

template <class T>
void EagerTape<T>::sweep(std::uint32_t root, const T& seed) {
  start_sweep();
  gradient_[root] += seed;
  sweep_from(root, gradient_.get());
}

template <class T>
void EagerTape<T>::backward_from(std::span<const Var> outputs, std::span<const T> slopes) {
  if (outputs.size() != slopes.size())
    throw std::logic_error("backward_from: the numbers of slopes and outputs differ");
  for (const Var& x : outputs) check(x);
  start_sweep();
  std::uint32_t last = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::uint32_t slot = outputs[i].place().slot();
    gradient_[slot] += slopes[i];
    last = std::max(last, slot);
  }
  sweep_from(last, gradient_.get());
}

template <class T>
void EagerTape<T>::backward(const Var& root, std::span<T> scratch, const T& seed) const {
  check(root);
  check_scratch(scratch.size());
  std::fill_n(scratch.begin(), used_.slots, T(0));
  scratch[root.place().slot()] = seed;
  sweep_from(root.place().slot(), scratch.data());
}

template <class T>
T EagerTape<T>::gradient(const Var& x, std::span<const T> scratch) const {
  check(x);
  check_scratch(scratch.size());
  if (x.place().slot() < kDeadSlots) throw_no_gradient(x.place().slot());
  return scratch[x.place().slot()];
}

template <class T>
std::span<const T> EagerTape<T>::gradients(const Range& x, std::span<const T> scratch) const {
  const std::uint32_t slot = checked(x);
  check_scratch(scratch.size());
  return scratch.subspan(slot, x.size_);
}

template <class T>
void EagerTape<T>::check_scratch(std::size_t size) const {
  if (size < used_.slots)
    throw std::logic_error("scratch of " + std::to_string(size) + " numbers; this tape needs " +
                           std::to_string(used_.slots));
}

// Goes backward over records of one or two operands. Most records have an operand in the record just before.
// The gradient of that operand is carried in a register. If it went through memory, the next step would wait
// for the store.
template <class T>
void EagerTape<T>::sweep_entries(std::uint32_t begin, std::uint32_t end, T* g) const {
  if (end <= begin) return;
  const Entry* entry = entry_.get();
  T carry(0);
  for (std::uint32_t i = end; i-- > begin;) {
    const T d = g[i] + carry;
    g[i] = d;
    carry = T(0);
    if constexpr (kIsScalar<T>) {
      if (d == T(0)) continue;
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

}  // namespace gradwire
