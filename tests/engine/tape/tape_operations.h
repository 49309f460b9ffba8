// Every operation of the scalar tapes, one line each: on a tape, in plain doubles, and the points to test.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "engine/tape/reductions.h"
#include "engine/tape/scalar_ops.h"

namespace gradwire::tape_tests {

// The points to test. They avoid kinks, where central differences are not derivatives.
enum class Where { kAll, kPositive };

// Plain pointers, because seven tapes times seventy std::functions would take a compiler a minute.
template <class V>
struct Operation {
  const char* name;
  V (*on_tape)(const std::array<V, 3>&);
  double (*plain)(double, double, double);
  Where where = Where::kAll;
};

template <class V>
std::vector<V> list(const std::array<V, 3>& x) {
  return {x.begin(), x.end()};
}

template <class V>
std::vector<Operation<V>> operations() {
  using A = const std::array<V, 3>&;
  using D = double;
  // clang-format off
  return {
    {"a+b", [](A x) { return x[0] + x[1]; }, [](D a, D b, D) { return a + b; }},
    {"a-b", [](A x) { return x[0] - x[1]; }, [](D a, D b, D) { return a - b; }},
    {"a*b", [](A x) { return x[0] * x[1]; }, [](D a, D b, D) { return a * b; }},
    {"a/b", [](A x) { return x[0] / x[1]; }, [](D a, D b, D) { return a / b; }},
    {"a*a", [](A x) { return x[0] * x[0]; }, [](D a, D, D) { return a * a; }},
    {"a/a+a", [](A x) { return x[0] / x[0] + x[0]; }, [](D a, D, D) { return 1 + a; }},
    {"a-a*b-a", [](A x) { return x[0] - x[0] * x[1] - x[0]; }, [](D a, D b, D) { return -a * b; }},
    {"a+3", [](A x) { return x[0] + 3; }, [](D a, D, D) { return a + 3; }},
    {"3+a", [](A x) { return 3 + x[0]; }, [](D a, D, D) { return a + 3; }},
    {"a-3", [](A x) { return x[0] - 3; }, [](D a, D, D) { return a - 3; }},
    {"3-a", [](A x) { return 3 - x[0]; }, [](D a, D, D) { return 3 - a; }},
    {"a*3", [](A x) { return x[0] * 3; }, [](D a, D, D) { return a * 3; }},
    {"2.5*a", [](A x) { return 2.5 * x[0]; }, [](D a, D, D) { return a * 2.5; }},
    {"a/3", [](A x) { return x[0] / 3; }, [](D a, D, D) { return a / 3; }},
    {"3/a", [](A x) { return 3 / x[0]; }, [](D a, D, D) { return 3 / a; }},
    {"-a", [](A x) { return -x[0]; }, [](D a, D, D) { return -a; }},
    {"+a", [](A x) { return +x[0]; }, [](D a, D, D) { return a; }},
    {"+=b", [](A x) { V a = x[0]; return a += x[1]; }, [](D a, D b, D) { return a + b; }},
    {"-=b", [](A x) { V a = x[0]; return a -= x[1]; }, [](D a, D b, D) { return a - b; }},
    {"*=b", [](A x) { V a = x[0]; return a *= x[1]; }, [](D a, D b, D) { return a * b; }},
    {"/=b", [](A x) { V a = x[0]; return a /= x[1]; }, [](D a, D b, D) { return a / b; }},
    {"+=3", [](A x) { V a = x[0]; return a += 3; }, [](D a, D, D) { return a + 3; }},
    {"-=3", [](A x) { V a = x[0]; return a -= 3; }, [](D a, D, D) { return a - 3; }},
    {"*=3", [](A x) { V a = x[0]; return a *= 3; }, [](D a, D, D) { return a * 3; }},
    {"/=3", [](A x) { V a = x[0]; return a /= 3; }, [](D a, D, D) { return a / 3; }},
    {"mul_by_constant", [](A x) { return mul_by_constant(x[0], 7); }, [](D a, D, D) { return a * 7; }},
    {"relu", [](A x) { return relu(x[0]) * x[1]; }, [](D a, D b, D) { return std::max(a, 0.0) * b; }},
    {"abs", [](A x) { return abs(x[0]) * x[1]; }, [](D a, D b, D) { return std::abs(a) * b; }},
    {"tanh", [](A x) { return tanh(x[0]); }, [](D a, D, D) { return std::tanh(a); }},
    {"sigmoid", [](A x) { return sigmoid(x[0]); }, [](D a, D, D) { return 1 / (1 + std::exp(-a)); }},
    {"exp", [](A x) { return exp(x[0]); }, [](D a, D, D) { return std::exp(a); }},
    {"log", [](A x) { return log(x[0]); }, [](D a, D, D) { return std::log(a); }, Where::kPositive},
    {"negative_log", [](A x) { return negative_log(x[0]); }, [](D a, D, D) { return -std::log(a); }, Where::kPositive},
    {"sin", [](A x) { return sin(x[0]); }, [](D a, D, D) { return std::sin(a); }},
    {"cos", [](A x) { return cos(x[0]); }, [](D a, D, D) { return std::cos(a); }},
    {"inv", [](A x) { return inv(x[0]); }, [](D a, D, D) { return 1 / a; }},
    {"sqr", [](A x) { return sqr(x[0]); }, [](D a, D, D) { return a * a; }},
    {"pow3", [](A x) { return pow3(x[0]); }, [](D a, D, D) { return a * a * a; }},
    {"sqrt", [](A x) { return sqrt(x[0]); }, [](D a, D, D) { return std::sqrt(a); }, Where::kPositive},
    {"inv_sqrt", [](A x) { return inv_sqrt(x[0]); }, [](D a, D, D) { return 1 / std::sqrt(a); }, Where::kPositive},
    {"a^2", [](A x) { return pow(x[0], 2); }, [](D a, D, D) { return a * a; }},
    {"a^-3", [](A x) { return pow(x[0], -3); }, [](D a, D, D) { return 1 / (a * a * a); }},
    {"a^1.5", [](A x) { return pow(x[0], 1.5); }, [](D a, D, D) { return std::pow(a, 1.5); }, Where::kPositive},
    {"2^a", [](A x) { return pow(2, x[0]); }, [](D a, D, D) { return std::exp2(a); }},
    {"a^b", [](A x) { return pow(x[0], x[1]); }, [](D a, D b, D) { return std::pow(a, b); }, Where::kPositive},
    {"max", [](A x) { return max(x[0], x[1]); }, [](D a, D b, D) { return std::max(a, b); }},
    {"min", [](A x) { return min(x[0], x[1]); }, [](D a, D b, D) { return std::min(a, b); }},
    {"max(a,1)", [](A x) { return max(x[0], 1) * x[1]; }, [](D a, D b, D) { return std::max(a, 1.0) * b; }},
    {"max(1,a)", [](A x) { return max(1, x[0]) * x[1]; }, [](D a, D b, D) { return std::max(a, 1.0) * b; }},
    {"min(a,1)", [](A x) { return min(x[0], 1) * x[1]; }, [](D a, D b, D) { return std::min(a, 1.0) * b; }},
    {"min(1,a)", [](A x) { return min(1, x[0]) * x[1]; }, [](D a, D b, D) { return std::min(a, 1.0) * b; }},
    {"mean", [](A x) { return mean(x[0], x[1]); }, [](D a, D b, D) { return (a + b) / 2; }},
    {"negative_mean", [](A x) { return negative_mean(x[0], x[1]); }, [](D a, D b, D) { return -(a + b) / 2; }},
    {"add_squares", [](A x) { return add_squares(x[0], x[1]); }, [](D a, D b, D) { return a * a + b * b; }},
    {"mean_squares", [](A x) { return mean_squares(x[0], x[1]); }, [](D a, D b, D) { return (a * a + b * b) / 2; }},
    {"reduce_sum", [](A x) { return reduce_sum(x); }, [](D a, D b, D c) { return a + b + c; }},
    {"reduce_sum of one", [](A x) { return reduce_sum(x[1]); }, [](D, D b, D) { return b; }},
    {"reduce_sub", [](A x) { return reduce_sub(x); }, [](D a, D b, D c) { return a - b - c; }},
    {"reduce_mul", [](A x) { return reduce_mul(x); }, [](D a, D b, D c) { return a * b * c; }},
    {"reduce_mul of equals", [](A x) { return reduce_mul(std::array{x[0], x[1], x[0]}); }, [](D a, D b, D) { return a * b * a; }},
    {"reduce_mean", [](A x) { return reduce_mean(x); }, [](D a, D b, D c) { return (a + b + c) / 3; }},
    {"reduce_negative_mean", [](A x) { return reduce_negative_mean(x); }, [](D a, D b, D c) { return -(a + b + c) / 3; }},
    {"reduce_sum_of_squares", [](A x) { return reduce_sum_of_squares(x); }, [](D a, D b, D c) { return a * a + b * b + c * c; }},
    {"reduce_mean_squares", [](A x) { return reduce_mean_squares(x); }, [](D a, D b, D c) { return (a * a + b * b + c * c) / 3; }},
    {"reduce_mean_and_mean_squares",
     [](A x) { const auto both = reduce_mean_and_mean_squares(x); return both.mean * both.mean_squares; },
     [](D a, D b, D c) { return (a + b + c) / 3 * (a * a + b * b + c * c) / 3; }},
    {"variance_biased", [](A x) { return variance_biased(x); },
     [](D a, D b, D c) { return (a * a + b * b + c * c) / 3 - (a + b + c) * (a + b + c) / 9; }},
    {"variance", [](A x) { return variance(list(x)); },
     [](D a, D b, D c) { return (a * a + b * b + c * c) / 2 - (a + b + c) * (a + b + c) / 6; }},
    {"inner_product", [](A x) { return inner_product(list(x), std::array{x[1], x[2], x[0]}); },
     [](D a, D b, D c) { return a * b + b * c + c * a; }},
    {"inner_product_with_bias", [](A x) { return inner_product_with_bias(std::array{x[0]}, std::array{x[1]}, x[2]); },
     [](D a, D b, D c) { return a * b + c; }},
    {"log_sum_exp", [](A x) { return log_sum_exp(x); },
     [](D a, D b, D c) { return std::log(std::exp(a) + std::exp(b) + std::exp(c)); }},
    {"softmax", [](A x) { const auto s = softmax(x); return s[0] + 2 * s[1] - 3 * s[2]; },
     [](D a, D b, D c) {
       const D p = std::exp(a), q = std::exp(b), r = std::exp(c);
       return (p + 2 * q - 3 * r) / (p + q + r);
     }},
    {"softmax of two", [](A x) { return softmax(std::array{x[0], x[1]})[1]; },
     [](D a, D b, D) { return 1 / (1 + std::exp(a - b)); }},
  };
  // clang-format on
}

}  // namespace gradwire::tape_tests
