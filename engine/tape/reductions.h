// Operations of any number of scalars, each with its derivatives beside its value, for every tape of
// engine/tape/var.h; on Tape, one record each. x... is
//   a, b, c                  Var one by one
//   list                     std::vector, std::array or std::span of Var: wherever they lie
//   range                    VarRange: used where it lies, nothing is copied (Tape only)
//   range, range or list     several VarRange, read one behind the other (Tape only)
// To add one, write one function here and one line in tests/engine/tape/tape_operations.h: the derivatives
// are either alpha + beta x_i (linear), or written to derivatives() (result).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include "engine/tape/operands.h"
#include "engine/tape/scalar_ops.h"
#include "engine/tape/var.h"

namespace gradwire {

template <class... X>
GRADWIRE_INLINE auto reduce_sum(const X&... x) {
  const auto all = operands(x...);
  return all.linear(all.sum(), 1, 0);
}

// The first minus the others.
template <class... X>
GRADWIRE_INLINE auto reduce_sub(const X&... x) {
  const auto all = operands(x...);
  auto* d = all.derivatives();
  auto difference = all.count();
  all.for_each([&](std::size_t i, const auto& value) {
    difference = i == 0 ? value : difference - value;
    d[i] = i == 0 ? 1 : -1;
  });
  return all.result(difference);
}

template <class... X>
GRADWIRE_INLINE auto reduce_mul(const X&... x) {
  const auto all = operands(x...);
  auto* d = all.derivatives();
  auto before = all.count(), behind = all.count();
  before = behind = 1;
  all.for_each([&](std::size_t i, const auto& value) {
    d[i] = before;
    before *= value;
  });
  all.for_each_backward([&](std::size_t i, const auto& value) {
    d[i] *= behind;
    behind *= value;
  });
  return all.result(before);
}

template <class... X>
GRADWIRE_INLINE auto reduce_mean(const X&... x) {
  const auto all = operands(x...);
  return all.linear(all.sum() / all.count(), 1 / all.count(), 0);
}

template <class... X>
GRADWIRE_INLINE auto reduce_negative_mean(const X&... x) {
  const auto all = operands(x...);
  return all.linear(-all.sum() / all.count(), -1 / all.count(), 0);
}

template <class... X>
GRADWIRE_INLINE auto reduce_sum_of_squares(const X&... x) {
  const auto all = operands(x...);
  return all.linear(all.sum([](const auto& v) { return v * v; }), 0, 2);
}

template <class... X>
GRADWIRE_INLINE auto reduce_mean_squares(const X&... x) {
  const auto all = operands(x...);
  return all.linear(all.sum([](const auto& v) { return v * v; }) / all.count(), 0, 2 / all.count());
}

template <class Tape>
struct MeanAndMeanSquares {
  Var<Tape> mean, mean_squares;
};

template <class... X>
GRADWIRE_INLINE auto reduce_mean_and_mean_squares(const X&... x) {
  const auto all = operands(x...);
  using Tape = typename decltype(all)::Tape;
  return MeanAndMeanSquares<Tape>{reduce_mean(x...), reduce_mean_squares(x...)};
}

// sum (x_i - mean)^2 / divisor
template <class All>
GRADWIRE_INLINE auto sum_of_deviations(const All& all, const typename All::Value& divisor) {
  const typename All::Value mean = all.sum() / all.count(), slope = 2 / divisor;
  const auto square = [&](const auto& v) { return (v - mean) * (v - mean); };
  return all.linear(all.sum(square) / divisor, -slope * mean, slope);
}
// Divided by n.
template <class... X>
GRADWIRE_INLINE auto variance_biased(const X&... x) {
  const auto all = operands(x...);
  return sum_of_deviations(all, all.count());
}
// Divided by n - 1.
template <class... X>
GRADWIRE_INLINE auto variance(const X&... x) {
  const auto all = operands(x...);
  if (all.size() < 2) throw std::logic_error("variance of one number; variance_biased has one");
  return sum_of_deviations(all, all.count() - 1);
}

// log sum_i e^(x_i); no overflow.
template <class... X>
GRADWIRE_INLINE auto log_sum_exp(const X&... x) {
  using std::exp, std::log;
  const auto all = operands(x...);
  using Value = typename decltype(all)::Value;
  auto* d = all.derivatives();
  Value top(0), sum(0);
  all.for_each([&](std::size_t i, const Value& v) { top = i == 0 ? v : select(v > top, v, top); });
  top = select(top - top == Value(0), top, Value(0));  // all -inf, or inf
  all.for_each([&](std::size_t i, const Value& v) { sum += d[i] = exp(v - top); });
  const Value share = 1 / sum;
  for (std::size_t i = 0; i < all.size(); ++i) d[i] *= share;
  return all.result(top + log(sum));
}

// e^x / sum_i e^(x_i), given their log_sum_exp.
template <class Tape>
GRADWIRE_INLINE Var<Tape> softmax_of(const Var<Tape>& x, const Var<Tape>& log_sum) {
  using std::exp;
  const ValueOf<Tape> share = exp(x.value() - log_sum.value());
  return result(share, x, share, log_sum, -share);
}
// As many shares as arguments.
template <class Tape, std::size_t n>
GRADWIRE_INLINE std::array<Var<Tape>, n> softmax(const std::array<Var<Tape>, n>& x) {
  const Var<Tape> log_sum = log_sum_exp(x);
  std::array<Var<Tape>, n> shares;
  for (std::size_t i = 0; i < n; ++i) shares[i] = softmax_of(x[i], log_sum);
  return shares;
}
template <class Tape, class... Rest>
GRADWIRE_INLINE auto softmax(const Var<Tape>& first, const Var<Tape>& second, const Rest&... rest) {
  return softmax(std::array<Var<Tape>, 2 + sizeof...(Rest)>{first, second, rest...});
}
template <class Tape>
void softmax(std::span<const Var<Tape>> x, std::span<Var<Tape>> shares) {
  if (x.size() != shares.size()) throw std::logic_error("softmax: as many shares as arguments");
  const Var<Tape> log_sum = log_sum_exp(x);
  for (std::size_t i = 0; i < x.size(); ++i) shares[i] = softmax_of(x[i], log_sum);
}
template <class Tape>
VarRange<Tape> softmax(const VarRange<Tape>& x) {
  const Var<Tape> log_sum = log_sum_exp(x);
  return x.tape().range(x.size(), [&](std::size_t i) { return softmax_of(x[i], log_sum); });
}

// sum_i a_i b_i, plus the bias if there is one. Each of a and b is one list or range.
template <class A, class B, class... Bias>
GRADWIRE_INLINE auto inner_product_with_bias(const A& a, const B& b, const Bias&... bias) {
  const auto left = operands(a);
  const auto right = operands(b);
  if (left.size() != right.size()) [[unlikely]] {
    throw std::logic_error("inner product of " + std::to_string(left.size()) + " and " +
                           std::to_string(right.size()) + " numbers");
  }
  using Left = decltype(left);
  static_assert(Left::kRanges == decltype(right)::kRanges,
                "two ranges or two lists; Tape::pack makes a range");
  if constexpr (Left::kRanges) {
    return left.tape().inner_product(left.list(), right.list(), bias...);
  } else {
    const std::size_t n = left.size();
    const std::size_t count = 2 * n + sizeof...(Bias);
    auto* d = left.tape().derivatives(count);
    typename Left::Value sum(0);
    left.for_each([&](std::size_t i, const auto& value) { d[n + i] = value; });
    right.for_each([&](std::size_t i, const auto& value) {
      d[i] = value;
      sum += value * d[n + i];
    });
    ((sum += bias.value(), d[2 * n] = 1), ...);
    return left.tape().record_all(sum, count, left.list(), right.list(), std::span<const Bias>(&bias, 1)...);
  }
}
template <class A, class B>
GRADWIRE_INLINE auto inner_product(const A& a, const B& b) {
  return inner_product_with_bias(a, b);
}

}  // namespace gradwire
