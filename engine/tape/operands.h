// The operands of an operation on any number of scalars, as engine/tape/reductions.h sees them: a list of Var
// at any places, or a list of VarRange, read one after another.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "engine/tape/var.h"
#include "engine/tape/var_range.h"
#include "engine/tape/wider.h"

namespace gradwire {

template <class T>
inline constexpr bool kIsVar = false;
template <class Tape>
inline constexpr bool kIsVar<Var<Tape>> = true;
template <class T>
inline constexpr bool kIsVarRange = false;
template <class Tape>
inline constexpr bool kIsVarRange<VarRange<Tape>> = true;

// An argument of an operation on any number of scalars: a Var, a VarRange, or a list of them.
template <class T>
inline constexpr bool kIsOperand = kIsVar<T> || kIsVarRange<T>;
template <class X>
concept Operand = kIsOperand<X> || requires(const X& list) {
  list.size();
  requires kIsOperand<std::remove_cvref_t<decltype(*list.data())>>;
};

// Returns the sum over i < n of f(i), in several running sums that vectorize.
template <class Sum, class F>
Sum running_sum(std::size_t n, F f) {
  Sum total(0);
  std::size_t i = 0;
  if constexpr (std::is_arithmetic_v<Sum>) {
    constexpr std::size_t kSums = 16;
    if (n >= kSums) {
      Sum sums[kSums] = {};
      for (; i + kSums <= n; i += kSums) {
        for (std::size_t k = 0; k < kSums; ++k) sums[k] += f(i + k);
      }
      for (std::size_t half = kSums / 2; half > 0; half /= 2) {
        for (std::size_t k = 0; k < half; ++k) sums[k] += sums[k + half];
      }
      total = sums[0];
    }
  }
  for (; i < n; ++i) total += f(i);
  return total;
}

// List is a std::array or std::span of Var or of VarRange.
template <class List>
class Operands {
 public:
  using Element = std::remove_cv_t<typename List::value_type>;
  using Tape = std::remove_reference_t<decltype(std::declval<Element>().tape())>;
  using Value = typename Tape::Value;
  using Sum = SumOf<Value>;
  static constexpr bool kRanges = kIsVarRange<Element>;

  GRADWIRE_INLINE explicit Operands(const List& list) : list_(list), size_(list.size()) {
    if constexpr (kRanges) {
      size_ = 0;
      for (const Element& range : list_) size_ += range.size();
    }
    if (size_ == 0) [[unlikely]]
      throw_empty();
  }

  GRADWIRE_INLINE std::size_t size() const { return size_; }
  GRADWIRE_INLINE Sum count() const { return Sum(static_cast<double>(size_)); }
  GRADWIRE_INLINE Value first() const {
    std::size_t k = 0;
    if constexpr (kRanges) {
      while (list_[k].size() == 0) ++k;
      return tape().values(list_[k])[0];
    } else {
      return list_[k].value();
    }
  }
  GRADWIRE_INLINE Tape& tape() const { return list_[0].tape(); }
  GRADWIRE_INLINE std::span<const Element> list() const { return list_; }

  // Calls f(i, value) in ascending order of i.
  template <class F>
  GRADWIRE_INLINE void for_each(F f) const {
    std::size_t i = 0;
    for (const Element& element : list_) {
      if constexpr (kRanges) {
        for (const Value& value : tape().values(element)) f(i++, value);
      } else {
        f(i++, element.value());
      }
    }
  }
  // Calls f(i, value) in descending order of i.
  template <class F>
  GRADWIRE_INLINE void for_each_backward(F f) const {
    std::size_t i = size_;
    for (std::size_t k = list_.size(); k-- > 0;) {
      if constexpr (kRanges) {
        const auto values = tape().values(list_[k]);
        for (std::size_t j = values.size(); j-- > 0;) f(--i, values[j]);
      } else {
        f(--i, list_[k].value());
      }
    }
  }

  // Returns the sum of f(value). Each term has type Sum.
  template <class F>
  GRADWIRE_INLINE Sum sum(F f) const {
    Sum total(0);
    for (const Element& element : list_) {
      if constexpr (kRanges) {
        const std::span<const Value> values = tape().values(element);
        total += running_sum<Sum>(values.size(), [&](std::size_t i) { return f(values[i]); });
      } else {
        total += f(element.value());
      }
    }
    return total;
  }
  GRADWIRE_INLINE Sum sum() const {
    return sum([](const Value& x) { return wide(x); });
  }

  // Records an operation whose derivatives are alpha + beta x_i. Each number is rounded to a Value once.
  template <class V, class A, class B>
  GRADWIRE_INLINE Var<Tape> linear(const V& value, const A& alpha, const B& beta) const {
    return tape().record_linear(static_cast<Value>(value), list(), static_cast<Value>(alpha),
                                static_cast<Value>(beta));
  }
  // derivatives() returns the place for size() derivatives. result() records the operation after they are
  // written.
  GRADWIRE_INLINE Value* derivatives() const { return tape().derivatives(size_); }
  template <class V>
  GRADWIRE_INLINE Var<Tape> result(const V& value) const {
    return tape().record_all(static_cast<Value>(value), size_, list());
  }

 private:
  [[noreturn, gnu::noinline, gnu::cold]] static void throw_empty() {
    throw std::logic_error("an operation needs at least one number");
  }

  List list_;
  std::size_t size_;
};

// Makes operands from single handles, an array, or anything else that converts to a span of handles.
template <class First, class... Rest>
GRADWIRE_INLINE auto operands(const First& first, const Rest&... rest) {
  if constexpr (kIsVar<First> || kIsVarRange<First>) {
    static_assert((std::is_same_v<First, Rest> && ...), "all Var of one tape, or all VarRange");
    return Operands(std::array<First, 1 + sizeof...(Rest)>{first, rest...});
  } else {
    static_assert(sizeof...(Rest) == 0, "pass one list, or single handles");
    using Element = std::remove_cv_t<std::remove_pointer_t<decltype(first.data())>>;
    if constexpr (requires { std::tuple_size<First>::value; }) {
      return Operands(first);
    } else {
      return Operands(std::span<const std::remove_const_t<Element>>(first.data(), first.size()));
    }
  }
}

}  // namespace gradwire
