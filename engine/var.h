// Scalars of a reverse-mode tape, and their operations, written once for every kind of tape: a user function
//   template <class V> V f(V a, V b) { V c = a + b; return sqr(c - a * b) * 0.5; }
// runs on whichever tape made its arguments. A tape has a type Real and the members
//   BasicVar unary(Real value, const BasicVar& a, Real da)                  value = phi(a),    da = d phi /
//   da BasicVar binary(Real value, const BasicVar& a, Real da, const BasicVar& b, Real db)
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace gradwire {

template <class Tape>
class BasicVar {
 public:
  using Real = typename Tape::Real;

  BasicVar() = default;  // belongs to no tape; any operation on it throws std::logic_error
  // For tapes: the handle of a slot. The value travels in the handle, so that adding a number needs no
  // statement.
  BasicVar(Tape* tape, Real value, std::uint32_t slot) : tape_(tape), value_(value), slot_(slot) {}

  Real value() const { return value_; }
  std::uint32_t slot() const { return slot_; }  // where its tape keeps the gradient
  const Tape* owner() const { return tape_; }

  Tape& tape() const {
    if (tape_ == nullptr)
      throw std::logic_error("a Var that belongs to no tape: make it with Tape::leaf first");
    return *tape_;
  }

  friend BasicVar operator+(const BasicVar& a, const BasicVar& b) {
    return a.tape().binary(a.value_ + b.value_, a, Real(1), b, Real(1));
  }
  friend BasicVar operator-(const BasicVar& a, const BasicVar& b) {
    return a.tape().binary(a.value_ - b.value_, a, Real(1), b, Real(-1));
  }
  friend BasicVar operator*(const BasicVar& a, const BasicVar& b) {
    return a.tape().binary(a.value_ * b.value_, a, b.value_, b, a.value_);
  }
  friend BasicVar operator/(const BasicVar& a, const BasicVar& b) {
    const Real quotient = a.value_ / b.value_;
    return a.tape().binary(quotient, a, Real(1) / b.value_, b, -quotient / b.value_);
  }

  // A sum with a number has the gradient of the Var: both are one slot.
  friend BasicVar operator+(const BasicVar& a, Real k) { return {&a.tape(), a.value_ + k, a.slot_}; }
  friend BasicVar operator+(Real k, const BasicVar& a) { return {&a.tape(), k + a.value_, a.slot_}; }
  friend BasicVar operator-(const BasicVar& a, Real k) { return {&a.tape(), a.value_ - k, a.slot_}; }
  friend BasicVar operator-(Real k, const BasicVar& a) { return a.tape().unary(k - a.value_, a, Real(-1)); }
  friend BasicVar operator*(const BasicVar& a, Real k) { return a.tape().unary(a.value_ * k, a, k); }
  friend BasicVar operator*(Real k, const BasicVar& a) { return a.tape().unary(k * a.value_, a, k); }
  friend BasicVar operator/(const BasicVar& a, Real k) {
    return a.tape().unary(a.value_ / k, a, Real(1) / k);
  }
  friend BasicVar operator/(Real k, const BasicVar& a) {
    const Real quotient = k / a.value_;
    return a.tape().unary(quotient, a, -quotient / a.value_);
  }
  friend BasicVar operator-(const BasicVar& a) { return a.tape().unary(-a.value_, a, Real(-1)); }
  friend BasicVar operator+(const BasicVar& a) { return a; }

  BasicVar& operator+=(const BasicVar& b) { return *this = *this + b; }
  BasicVar& operator-=(const BasicVar& b) { return *this = *this - b; }
  BasicVar& operator*=(const BasicVar& b) { return *this = *this * b; }
  BasicVar& operator/=(const BasicVar& b) { return *this = *this / b; }
  BasicVar& operator+=(Real k) { return *this = *this + k; }
  BasicVar& operator-=(Real k) { return *this = *this - k; }
  BasicVar& operator*=(Real k) { return *this = *this * k; }
  BasicVar& operator/=(Real k) { return *this = *this / k; }

  // max(a, 0); the slope at 0 is 0.
  friend BasicVar relu(const BasicVar& a) {
    const bool positive = a.value_ > 0;
    return a.tape().unary(positive ? a.value_ : Real(0), a, positive ? Real(1) : Real(0));
  }
  friend BasicVar tanh(const BasicVar& a) {
    const Real t = std::tanh(a.value_);
    return a.tape().unary(t, a, 1 - t * t);
  }
  friend BasicVar exp(const BasicVar& a) {
    const Real e = std::exp(a.value_);
    return a.tape().unary(e, a, e);
  }
  friend BasicVar log(const BasicVar& a) { return a.tape().unary(std::log(a.value_), a, Real(1) / a.value_); }
  friend BasicVar sqr(const BasicVar& a) { return a.tape().unary(a.value_ * a.value_, a, 2 * a.value_); }
  friend BasicVar pow3(const BasicVar& a) {
    const Real square = a.value_ * a.value_;
    return a.tape().unary(square * a.value_, a, 3 * square);
  }
  friend BasicVar sqrt(const BasicVar& a) {
    const Real root = std::sqrt(a.value_);
    return a.tape().unary(root, a, Real(0.5) / root);
  }
  friend BasicVar inv(const BasicVar& a) {
    const Real inverse = Real(1) / a.value_;
    return a.tape().unary(inverse, a, -inverse * inverse);
  }
  // 1 / (1 + e^-a), without overflow for any a.
  friend BasicVar sigmoid(const BasicVar& a) {
    const Real e = std::exp(-std::abs(a.value_));
    const Real small = e / (1 + e);  // sigmoid(-|a|)
    return a.tape().unary(a.value_ < 0 ? small : Real(1) / (1 + e), a, small / (1 + e));
  }

 private:
  Tape* tape_ = nullptr;
  Real value_ = Real(0);
  std::uint32_t slot_ = 0;
};

}  // namespace gradwire
