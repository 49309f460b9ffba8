// Derivatives of scalar expressions. Operations are computed and recorded when they are called; backward() is
// one pass from the last record to the first.
//
//   gradwire::Tape tape;
//   auto a = tape.variable(-4), b = tape.variable(2);
//   backward(sqr(a + 2 * b) / 2);
//   a.grad();
//
// A gradient over samples needs the memory of one sample:
//
//   gradwire::Tape tape(2);                     // set through parameter_values()
//   const auto start = tape.checkpoint();
//   for (const auto& [x, y] : samples) {
//     const auto p = tape.parameters();
//     backward(sqr(p[0] + p[1] * x - y), 1.0 / count);
//     tape.rewind(start);
//   }
//   tape.parameter_gradients();                 // the sum over the samples
//
// backward() overwrites all gradients except those of parameters, to which it adds. It may be called again,
// on the same or another root. It skips records without influence on the root, so an infinite derivative does
// not become nan there.
//
// A handle must not outlive its tape. Parameter values must not change between recording and backward(). All
// other misuse throws std::logic_error: a Var of no tape, or Vars of two tapes; a Var or a checkpoint past
// which the tape was rewound; a checkpoint of another tape; lengths that differ; the gradient of a constant;
// a gradient that no backward() has computed. A tape holds fewer than 2^32 records; one more throws
// std::length_error. Each thread needs a tape of its own.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "gradwire/version.h"

namespace gradwire {

struct TapeCore;  // private

class GRADWIRE_API Tape {
 public:
  class Var;
  class Vars;

  // The target of rewind().
  class Checkpoint {
   public:
    Checkpoint() = default;  // belongs to no tape; rewind() to it throws std::logic_error

   private:
    friend Tape;
    std::array<std::uint64_t, 4> state_{};
  };

  // Parameters are adjacent in memory. They start at 0.
  explicit Tape(std::size_t parameters = 0);
  // Handles stay valid if their tape moves.
  Tape(Tape&& other) noexcept;
  Tape& operator=(Tape&& other) noexcept;
  ~Tape();

  // Shape (number of parameters). The spans are valid until the next recording.
  std::span<double> parameter_values();
  std::span<const double> parameter_gradients() const;
  void zero_parameter_gradients();
  // Return handles with the values that the parameters have now.
  std::vector<Var> parameters();
  Var parameter(std::size_t j);

  Var variable(double value);
  std::vector<Var> variables(std::span<const double> values);
  // Makes a scalar that works like a variable in operations, but takes no record. Its gradient is not kept.
  Var constant(double value);

  // Adds seed * d root / d p to the gradient of every parameter p. Overwrites all other gradients.
  void backward(const Var& root, double seed = 1);

  Checkpoint checkpoint() const;
  // Forgets what was recorded since `to`. Keeps the memory, so a second pass of the same size allocates none.
  void rewind(const Checkpoint& to);

 private:
  TapeCore& core() const;

  std::unique_ptr<TapeCore> core_;
};

// A scalar on a tape.
class GRADWIRE_API Tape::Var {
 public:
  Var() = default;  // belongs to no tape; any operation on it throws std::logic_error

  // Copies member by member, in the way in which operations write them: reading two members together would
  // stall.
  Var(const Var& other) : place_(other.place_), value_(other.value_), core_(other.core_) {}
  Var& operator=(const Var& other) {
    place_ = other.place_;
    value_ = other.value_;
    core_ = other.core_;
    return *this;
  }

  double value() const { return value_; }
  // Returns the gradient of the last backward(); for parameters, the sum since they were zeroed.
  double grad() const;

 private:
  friend TapeCore;
  Var(TapeCore* core, double value, std::uint64_t place) : place_(place), value_(value), core_(core) {}

  std::uint64_t place_ = 0;
  double value_ = 0;
  TapeCore* core_ = nullptr;
};

// The operands of an operation on any number of scalars: a std::vector, std::array or std::span of Var, a
// list in braces, or one Var. A view, for arguments of calls.
class Tape::Vars {
 public:
  Vars(const Var& one) : list_(&one, 1) {}
  Vars(std::initializer_list<Var> list) : list_(list) {}
  template <class List>
  requires std::convertible_to<const List&, std::span<const Var>> Vars(const List& list) : list_(list) {}

  std::span<const Var> list() const { return list_; }

 private:
  std::span<const Var> list_;
};

// Does root's tape.backward(root, seed).
GRADWIRE_API void backward(const Tape::Var& root, double seed = 1);

// ---- operations of one and two scalars ----
// Derivatives are those of the formula, and infinite where the formula is. Functions with a kink say which
// derivative they use there. A nan argument gives nan.
GRADWIRE_API Tape::Var operator+(const Tape::Var& a, const Tape::Var& b);
GRADWIRE_API Tape::Var operator+(const Tape::Var& a, double k);  // these two and a - k take no record
GRADWIRE_API Tape::Var operator+(double k, const Tape::Var& a);
GRADWIRE_API Tape::Var operator-(const Tape::Var& a, const Tape::Var& b);
GRADWIRE_API Tape::Var operator-(const Tape::Var& a, double k);
GRADWIRE_API Tape::Var operator-(double k, const Tape::Var& a);
GRADWIRE_API Tape::Var operator*(const Tape::Var& a, const Tape::Var& b);
GRADWIRE_API Tape::Var operator*(const Tape::Var& a, double k);
GRADWIRE_API Tape::Var operator*(double k, const Tape::Var& a);
GRADWIRE_API Tape::Var operator/(const Tape::Var& a, const Tape::Var& b);
GRADWIRE_API Tape::Var operator/(const Tape::Var& a, double k);
GRADWIRE_API Tape::Var operator/(double k, const Tape::Var& a);
GRADWIRE_API Tape::Var operator-(const Tape::Var& a);
inline Tape::Var operator+(const Tape::Var& a) { return a; }
inline Tape::Var& operator+=(Tape::Var& a, const Tape::Var& b) { return a = a + b; }
inline Tape::Var& operator+=(Tape::Var& a, double k) { return a = a + k; }
inline Tape::Var& operator-=(Tape::Var& a, const Tape::Var& b) { return a = a - b; }
inline Tape::Var& operator-=(Tape::Var& a, double k) { return a = a - k; }
inline Tape::Var& operator*=(Tape::Var& a, const Tape::Var& b) { return a = a * b; }
inline Tape::Var& operator*=(Tape::Var& a, double k) { return a = a * k; }
inline Tape::Var& operator/=(Tape::Var& a, const Tape::Var& b) { return a = a / b; }
inline Tape::Var& operator/=(Tape::Var& a, double k) { return a = a / k; }
inline Tape::Var mul_by_constant(const Tape::Var& a, double k) { return a * k; }

GRADWIRE_API Tape::Var relu(const Tape::Var& a);  // max(a, 0); its derivative is 0 at 0
GRADWIRE_API Tape::Var abs(const Tape::Var& a);   // its derivative is 0 at 0
GRADWIRE_API Tape::Var tanh(const Tape::Var& a);
GRADWIRE_API Tape::Var sigmoid(const Tape::Var& a);  // 1 / (1 + e^-a), without overflow for any a
GRADWIRE_API Tape::Var exp(const Tape::Var& a);
GRADWIRE_API Tape::Var log(const Tape::Var& a);
GRADWIRE_API Tape::Var negative_log(const Tape::Var& a);
GRADWIRE_API Tape::Var sin(const Tape::Var& a);
GRADWIRE_API Tape::Var cos(const Tape::Var& a);
GRADWIRE_API Tape::Var inv(const Tape::Var& a);   // 1 / a
GRADWIRE_API Tape::Var sqr(const Tape::Var& a);   // a^2
GRADWIRE_API Tape::Var pow3(const Tape::Var& a);  // a^3
GRADWIRE_API Tape::Var sqrt(const Tape::Var& a);
GRADWIRE_API Tape::Var inv_sqrt(const Tape::Var& a);  // 1 / sqrt(a)
// Compute a^b. a^0 is the constant 1. The derivative by b is nan for a < 0.
GRADWIRE_API Tape::Var pow(const Tape::Var& a, const Tape::Var& b);
GRADWIRE_API Tape::Var pow(const Tape::Var& a, double k);
GRADWIRE_API Tape::Var pow(double k, const Tape::Var& b);
// max and min give the whole gradient to the first argument if both are equal. A number counts as an
// argument.
GRADWIRE_API Tape::Var max(const Tape::Var& a, const Tape::Var& b);
GRADWIRE_API Tape::Var max(const Tape::Var& a, double k);
GRADWIRE_API Tape::Var max(double k, const Tape::Var& a);
GRADWIRE_API Tape::Var min(const Tape::Var& a, const Tape::Var& b);
GRADWIRE_API Tape::Var min(const Tape::Var& a, double k);
GRADWIRE_API Tape::Var min(double k, const Tape::Var& a);
GRADWIRE_API Tape::Var mean(const Tape::Var& a, const Tape::Var& b);           // (a + b) / 2
GRADWIRE_API Tape::Var negative_mean(const Tape::Var& a, const Tape::Var& b);  // -(a + b) / 2
GRADWIRE_API Tape::Var add_squares(const Tape::Var& a, const Tape::Var& b);    // a^2 + b^2
GRADWIRE_API Tape::Var mean_squares(const Tape::Var& a, const Tape::Var& b);   // (a^2 + b^2) / 2

// ---- operations of any number of scalars; each takes one record ----
// The softmax cross-entropy of x with the label y is log_sum_exp(x) - x[y].
GRADWIRE_API Tape::Var reduce_sum(Tape::Vars x);
GRADWIRE_API Tape::Var reduce_sub(Tape::Vars x);  // the first number minus the others
GRADWIRE_API Tape::Var reduce_mul(Tape::Vars x);
GRADWIRE_API Tape::Var reduce_mean(Tape::Vars x);
GRADWIRE_API Tape::Var reduce_negative_mean(Tape::Vars x);
GRADWIRE_API Tape::Var reduce_sum_of_squares(Tape::Vars x);
GRADWIRE_API Tape::Var reduce_mean_squares(Tape::Vars x);
struct TapeMeans {
  Tape::Var mean, mean_squares;
};
GRADWIRE_API TapeMeans reduce_mean_and_mean_squares(Tape::Vars x);
GRADWIRE_API Tape::Var variance_biased(Tape::Vars x);  // with divisor n
GRADWIRE_API Tape::Var variance(Tape::Vars x);         // with divisor n - 1
// Computes log sum_i e^(x_i). Nothing overflows.
GRADWIRE_API Tape::Var log_sum_exp(Tape::Vars x);
// Return the shares e^(x_i) / sum_j e^(x_j), one record for each and one for the sum.
GRADWIRE_API std::vector<Tape::Var> softmax(Tape::Vars x);
GRADWIRE_API void softmax(Tape::Vars x, std::span<Tape::Var> shares);
// Compute sum_i a_i b_i, plus the bias.
GRADWIRE_API Tape::Var inner_product(Tape::Vars a, Tape::Vars b);
GRADWIRE_API Tape::Var inner_product_with_bias(Tape::Vars a, Tape::Vars b, const Tape::Var& bias);

}  // namespace gradwire
