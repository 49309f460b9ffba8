// A tape of at most N records that lives in a local variable. All functions are inlined, so the compiler sees
// every link and size. Recording and backward become straight-line code in registers. That is as fast as
// derivatives written by hand, for graphs of up to a few dozen operations.
//
//   const auto f = [](auto a, auto b) { return sqr(a * b + 3); };
//   const auto [value, gradient] = value_and_gradient<16>(f, -41, 2);
// or step by step:
//   FixedTape<double, 16> tape;
//   auto a = tape.variable(-41), b = tape.variable(2);
//   tape.backward(sqr(a * b + 3));
//   a.grad();
//
// A variable takes one record, and so does an operation of one or two scalars. Adding a number takes none. An
// operation of n scalars takes n. Misuse throws std::logic_error: too many records, a default Var, a Var of
// another tape, the gradient of a constant, or a gradient that no backward() has computed. These checks are
// free, because the compiler resolves them. The caller must make sure that the tape still lives. An infinite
// derivative times a zero gradient is nan here; EagerTape skips it.
//
// The step-by-step form is as fast only if the compiler inlines the user's function. value_and_gradient()
// forces it to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "engine/tape/reductions.h"
#include "engine/tape/scalar_ops.h"
#include "engine/tape/var.h"

namespace gradwire {

template <class T, std::size_t N>
class FixedTape {
  static_assert(!std::is_integral_v<T>, "a tape of integers has no derivatives: use double");

 public:
  using Value = T;
  using Var = gradwire::Var<FixedTape>;

  FixedTape() = default;
  FixedTape(const FixedTape&) = delete;  // handles point to it
  FixedTape& operator=(const FixedTape&) = delete;

  GRADWIRE_INLINE Var variable(const T& value) { return append(value, kNone, T(0), kNone, T(0)); }
  // Makes a scalar that works like a variable in operations, but takes no record.
  GRADWIRE_INLINE Var constant(const T& value) { return {this, value, TapePlace::at(kNone, 0)}; }

  // Computes the gradient of everything recorded. Overwrites earlier gradients.
  GRADWIRE_INLINE void backward(const Var& root, const T& seed = T(1)) {
    check(root);
    std::array<bool, N> reached{};
    accumulate(reached, root.place().slot(), seed);
    propagate_all(reached, std::make_index_sequence<N>());
    swept_ = size_;
  }

  GRADWIRE_INLINE T gradient(const Var& x) const {
    check(x);
    if (x.place().slot() >= swept_) [[unlikely]]
      throw_no_gradient(x.place().slot());
    return gradient_[x.place().slot()];
  }

  // Records an operation of one or two scalars.
  GRADWIRE_INLINE Var record(const T& value, const Var& a, const T& da) {
    check(a);
    return append(value, a.place().slot(), da, kNone, T(0));
  }
  GRADWIRE_INLINE Var record(const T& value, const Var& a, const T& da, const Var& b, const T& db) {
    check(a);
    check(b);
    return append(value, a.place().slot(), da, b.place().slot(), db);
  }

  // derivatives(n) returns the place for n derivatives of an operation of any number of scalars. After they
  // are written, record_all() records the operation; it takes n operands, one list after another. Each
  // operand has its own record, which adds it to the sum of the operands before it.
  GRADWIRE_INLINE T* derivatives(std::size_t n) {
    if (n > N) [[unlikely]]
      throw_too_small();
    return written_.data();
  }
  template <class... Lists>
  GRADWIRE_INLINE Var record_all(const T& value, std::size_t, const Lists&... lists) {
    std::size_t i = 0;
    std::uint32_t sum = kNone;
    const auto add = [&](const auto& list) {
      for (const Var& x : list) {
        check(x);
        sum = append(value, x.place().slot(), written_[i++], sum, T(1)).place().slot();
      }
    };
    (add(lists), ...);
    return {this, value, TapePlace::at(sum, 0)};
  }
  // Records an operation whose derivative by x_i is alpha + beta x_i.
  GRADWIRE_INLINE Var record_linear(const T& value, std::span<const Var> x, const T& alpha, const T& beta) {
    T* d = derivatives(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      d[i] = select(beta == T(0), alpha, alpha + beta * x[i].value());
    }
    return record_all(value, x.size(), x);
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  [[noreturn, gnu::noinline, gnu::cold]] static void throw_too_small() {
    throw std::logic_error("a FixedTape of " + std::to_string(N) + " records is too small for its graph");
  }
  [[noreturn, gnu::noinline, gnu::cold]] static void throw_no_gradient(std::uint32_t slot) {
    if (slot == kNone) throw std::logic_error("the gradient of a constant is not kept");
    throw std::logic_error("the Var has no gradient yet: call backward() first");
  }

  GRADWIRE_INLINE void check(const Var& x) const {
    if (x.owner() != this) [[unlikely]]
      throw_foreign(x.owner());
  }

  GRADWIRE_INLINE Var append(const T& value, std::uint32_t a, const T& da, std::uint32_t b, const T& db) {
    if (size_ >= N) [[unlikely]]
      throw_too_small();
    a_[size_] = a;
    b_[size_] = b;
    da_[size_] = da;
    db_[size_] = db;
    return {this, value, TapePlace::at(size_++, 0)};
  }

  GRADWIRE_INLINE void accumulate(std::array<bool, N>& reached, std::uint32_t slot, const T& amount) {
    if (slot == kNone) return;
    gradient_[slot] = reached[slot] ? gradient_[slot] + amount : amount;
    reached[slot] = true;
  }

  // Unrolls the loop over records itself, because the optimizer must see constant links before it looks at
  // the arrays.
  template <std::size_t... I>
  GRADWIRE_INLINE void propagate_all(std::array<bool, N>& reached, std::index_sequence<I...>) {
    (propagate(reached, N - 1 - I), ...);
  }
  GRADWIRE_INLINE void propagate(std::array<bool, N>& reached, std::size_t i) {
    if (i >= size_) return;
    if (!reached[i]) {
      gradient_[i] = T(0);
      return;
    }
    accumulate(reached, a_[i], da_[i] * gradient_[i]);
    accumulate(reached, b_[i], db_[i] * gradient_[i]);
  }

  std::uint32_t size_ = 0, swept_ = 0;  // swept_: records that the last backward() saw
  std::array<std::uint32_t, N> a_, b_;
  std::array<T, N> da_, db_, gradient_;
  std::array<T, N> written_;  // derivatives of the operation in progress
};

template <class T, std::size_t n>
struct ValueAndGradient {
  T value;
  std::array<T, n> gradient;
};

// The type in which f is computed: the widest type of its arguments, or double for integers.
template <class... X>
using ValueOfAll = std::common_type_t<std::conditional_t<std::is_integral_v<X>, double, X>...>;

// Returns the value and gradient of f at x..., computed on a FixedTape of N records. `flatten` inlines f even
// if it is long.
template <std::size_t N, class F, class... X>
[[gnu::flatten]] ValueAndGradient<ValueOfAll<X...>, sizeof...(X)> value_and_gradient(F&& f, const X&... x) {
  using T = ValueOfAll<X...>;
  FixedTape<T, N> tape;
  const std::array<Var<FixedTape<T, N>>, sizeof...(X)> variables{tape.variable(static_cast<T>(x))...};
  const Var<FixedTape<T, N>> root = std::apply(f, variables);
  tape.backward(root);
  ValueAndGradient<T, sizeof...(X)> result;
  result.value = root.value();
  for (std::size_t i = 0; i < variables.size(); ++i) result.gradient[i] = tape.gradient(variables[i]);
  return result;
}

}  // namespace gradwire
