// Operations of any number of scalars. Each computes its derivatives next to its value, for every tape of
// engine/tape/var.h. On EagerTape, each takes one record. x... is
//   a, b, c                  single Var
//   list                     std::vector, std::array or std::span of Var, at any places
//   range                    VarRange: used in place, without a copy (EagerTape only)
//   range, range or list     several VarRange, read one after another (EagerTape only)
// To add one, write one function here and one line in tests/engine/tape/tape_operations.h. If its derivatives
// are alpha + beta x_i, it calls linear(). Otherwise it writes them to derivatives() and calls result().
// Values and derivatives are computed in the wider types of engine/tape/wider.h and rounded once.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/tape/operands.h"
#include "engine/tape/scalar_ops.h"
#include "engine/tape/var.h"
#include "engine/tape/wider.h"

namespace gradwire {

template <Operand... X>
GRADWIRE_INLINE auto reduce_sum(const X&... x) {
  const auto all = operands(x...);
  return all.linear(all.sum(), 1, 0);
}

// Computes the first number minus the others.
template <Operand... X>
GRADWIRE_INLINE auto reduce_sub(const X&... x) {
  const auto all = operands(x...);
  auto* d = all.derivatives();
  typename decltype(all)::Sum difference(0);
  all.for_each([&](std::size_t i, const auto& value) {
    difference = i == 0 ? wide(value) : difference - wide(value);
    d[i] = i == 0 ? 1 : -1;
  });
  return all.result(difference);
}

template <Operand... X>
GRADWIRE_INLINE auto reduce_mul(const X&... x) {
  const auto all = operands(x...);
  using Value = typename decltype(all)::Value;
  using Sum = typename decltype(all)::Sum;
  auto* d = all.derivatives();
  Sum before(1), after(1);
  if constexpr (std::is_same_v<Sum, Value>) {
    all.for_each([&](std::size_t i, const auto& value) {
      d[i] = before;
      before *= value;
    });
    all.for_each_backward([&](std::size_t i, const auto& value) {
      d[i] *= after;
      after *= value;
    });
  } else {  // a product of a few of the numbers may exceed the range of Value
    constexpr std::size_t kFew = 16;
    std::array<Sum, kFew> few;
    std::vector<Sum> many(all.size() > kFew ? all.size() : 0);
    Sum* const products = many.empty() ? few.data() : many.data();
    all.for_each([&](std::size_t i, const auto& value) {
      products[i] = before;
      before *= wide(value);
    });
    all.for_each_backward([&](std::size_t i, const auto& value) {
      d[i] = static_cast<Value>(products[i] * after);
      after *= wide(value);
    });
  }
  return all.result(before);
}

template <Operand... X>
GRADWIRE_INLINE auto reduce_mean(const X&... x) {
  const auto all = operands(x...);
  return all.linear(all.sum() / all.count(), 1 / all.count(), 0);
}

template <Operand... X>
GRADWIRE_INLINE auto reduce_negative_mean(const X&... x) {
  const auto all = operands(x...);
  return all.linear(-all.sum() / all.count(), -1 / all.count(), 0);
}

template <Operand... X>
GRADWIRE_INLINE auto reduce_sum_of_squares(const X&... x) {
  const auto all = operands(x...);
  return all.linear(all.sum([](const auto& v) { return wide(v) * wide(v); }), 0, 2);
}

template <Operand... X>
GRADWIRE_INLINE auto reduce_mean_squares(const X&... x) {
  const auto all = operands(x...);
  return all.linear(all.sum([](const auto& v) { return wide(v) * wide(v); }) / all.count(), 0,
                    2 / all.count());
}

template <class Tape>
struct MeanAndMeanSquares {
  Var<Tape> mean, mean_squares;
};

template <Operand... X>
GRADWIRE_INLINE auto reduce_mean_and_mean_squares(const X&... x) {
  const auto all = operands(x...);
  using Tape = typename decltype(all)::Tape;
  return MeanAndMeanSquares<Tape>{reduce_mean(x...), reduce_mean_squares(x...)};
}

// Computes sum (x_i - mean)^2 / divisor. It sums differences from the first number to find the mean, and uses
// differences from the mean in the derivatives. So large numbers that are close to each other lose no digits.
template <class All>
GRADWIRE_INLINE auto sum_of_deviations(const All& all, const typename All::Sum& divisor) {
  using Sum = typename All::Sum;
  const Sum first = wide(all.first());
  const Sum mean = first + all.sum([&](const auto& v) { return wide(v) - first; }) / all.count();
  const Sum slope = 2 / divisor;
  auto* d = all.derivatives();
  all.for_each([&](std::size_t i, const auto& v) {
    d[i] = static_cast<typename All::Value>(slope * (wide(v) - mean));
  });
  const auto square = [&](const auto& v) { return (wide(v) - mean) * (wide(v) - mean); };
  return all.result(all.sum(square) / divisor);
}
// Computes the variance with divisor n.
template <Operand... X>
GRADWIRE_INLINE auto variance_biased(const X&... x) {
  const auto all = operands(x...);
  return sum_of_deviations(all, all.count());
}
// Computes the variance with divisor n - 1.
template <Operand... X>
GRADWIRE_INLINE auto variance(const X&... x) {
  const auto all = operands(x...);
  if (all.size() < 2) throw std::logic_error("variance needs two numbers; use variance_biased for one");
  return sum_of_deviations(all, all.count() - 1);
}

// log sum_i e^(x_i), and what share() needs to compute e^(x_i) / sum. Nothing overflows.
template <class Tape>
struct LogSumExp {
  using Value = ValueOf<Tape>;
  using Calc = typename WiderOf<Value>::Calc;
  Var<Tape> log_sum;
  Calc top;              // the largest x_i, or 0 if it is infinite
  SumOf<Value> inverse;  // 1 / sum_i e^(x_i - top)

  GRADWIRE_INLINE static Calc power(const Value& x, const Calc& top) {
    using std::exp;
    return exp(static_cast<Calc>(x) - top);
  }
  GRADWIRE_INLINE Var<Tape> share(const Var<Tape>& x) const {
    const Value part = static_cast<Value>(wide(power(x.value(), top)) * inverse);
    return result(part, x, part, log_sum, -part);
  }
};

template <Operand... X>
GRADWIRE_INLINE auto log_sum_exp_of(const X&... x) {
  using std::log;
  const auto all = operands(x...);
  using Value = typename decltype(all)::Value;
  using Sum = typename decltype(all)::Sum;
  using Output = LogSumExp<typename decltype(all)::Tape>;
  using Calc = typename Output::Calc;
  auto* d = all.derivatives();
  Value largest(0);
  all.for_each(
      [&](std::size_t i, const Value& v) { largest = i == 0 ? v : select(v > largest, v, largest); });
  largest = select(largest - largest == Value(0), largest, Value(0));  // 0 if all are -inf or some are inf
  const Calc top = static_cast<Calc>(largest);
  Sum sum(0);
  all.for_each([&](std::size_t i, const Value& v) {
    const Calc power = Output::power(v, top);
    d[i] = static_cast<Value>(power);
    sum += wide(power);
  });
  // The derivatives are 0 if all numbers are -inf.
  const Sum inverse = 1 / sum, factor = select(sum == Sum(0), Sum(0), inverse);
  if constexpr (std::is_same_v<Calc, Value>) {
    for (std::size_t i = 0; i < all.size(); ++i) d[i] = static_cast<Value>(wide(d[i]) * factor);
  } else {
    all.for_each([&](std::size_t i, const Value& v) {
      d[i] = static_cast<Value>(wide(Output::power(v, top)) * factor);
    });
  }
  return Output{all.result(wide(top) + log(sum)), top, inverse};
}
template <Operand... X>
GRADWIRE_INLINE auto log_sum_exp(const X&... x) {
  return log_sum_exp_of(x...).log_sum;
}

// Returns the shares e^(x_i) / sum_j e^(x_j), one per argument.
template <class Tape, std::size_t n>
GRADWIRE_INLINE std::array<Var<Tape>, n> softmax(const std::array<Var<Tape>, n>& x) {
  const LogSumExp<Tape> all = log_sum_exp_of(x);
  std::array<Var<Tape>, n> shares;
  for (std::size_t i = 0; i < n; ++i) shares[i] = all.share(x[i]);
  return shares;
}
template <class Tape, class... Rest>
GRADWIRE_INLINE auto softmax(const Var<Tape>& first, const Var<Tape>& second, const Rest&... rest) {
  return softmax(std::array<Var<Tape>, 2 + sizeof...(Rest)>{first, second, rest...});
}
template <class Tape>
void softmax(std::span<const Var<Tape>> x, std::span<Var<Tape>> shares) {
  if (x.size() != shares.size())
    throw std::logic_error("softmax: the numbers of shares and arguments differ");
  const LogSumExp<Tape> all = log_sum_exp_of(x);
  for (std::size_t i = 0; i < x.size(); ++i) shares[i] = all.share(x[i]);
}
template <class Tape>
VarRange<Tape> softmax(const VarRange<Tape>& x) {
  const LogSumExp<Tape> all = log_sum_exp_of(x);
  return x.tape().range(x.size(), [&](std::size_t i) { return all.share(x[i]); });
}

// Computes sum_i a_i b_i, plus the bias if there is one. Each of a and b is one list or range.
template <Operand A, Operand B, class... Bias>
GRADWIRE_INLINE auto inner_product_with_bias(const A& a, const B& b, const Bias&... bias) {
  const auto left = operands(a);
  const auto right = operands(b);
  if (left.size() != right.size()) [[unlikely]] {
    throw std::logic_error("inner product of " + std::to_string(left.size()) + " and " +
                           std::to_string(right.size()) + " numbers");
  }
  using Left = decltype(left);
  static_assert(Left::kRanges == decltype(right)::kRanges,
                "two ranges or two lists; EagerTape::pack makes a range");
  if constexpr (Left::kRanges) {
    return left.tape().inner_product(left.list(), right.list(), bias...);
  } else {
    const std::size_t n = left.size();
    const std::size_t count = 2 * n + sizeof...(Bias);
    auto* d = left.tape().derivatives(count);
    typename Left::Sum sum(0);
    left.for_each([&](std::size_t i, const auto& value) { d[n + i] = value; });
    right.for_each([&](std::size_t i, const auto& value) {
      d[i] = value;
      sum += wide(value) * wide(d[n + i]);
    });
    ((sum += wide(bias.value()), d[2 * n] = 1), ...);
    return left.tape().record_all(static_cast<typename Left::Value>(sum), count, left.list(), right.list(),
                                  std::span<const Bias>(&bias, 1)...);
  }
}
template <Operand A, Operand B>
GRADWIRE_INLINE auto inner_product(const A& a, const B& b) {
  return inner_product_with_bias(a, b);
}

}  // namespace gradwire
