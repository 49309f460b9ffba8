// The Lyapunov function of an algorithm's theorem, as a weighted sum of terms that algorithms share. A run
// can be checked against its bound.
#pragma once

#include <span>

#include "compressors/payload.h"

namespace gradwire {

// Ψ^t = gap (f(x^t) − f*) + distance ‖x^t − x*‖² + estimate ‖g^t − ∇f(x^t)‖²
//       + shifts Σ w_i ‖s_i^t − ∇f_i(y)‖².
// The theorem states E Ψ^t ≤ rate^t Ψ^0 + (1 − rate^t) floor Σ w_i ‖∇f_i(x*)‖².
struct Lyapunov {
  double gap = 0, distance = 0, estimate = 0, shifts = 0;
  enum class Shifted { kToPoint, kToOptimum } y = Shifted::kToPoint;  // x^t or x*
  // True if g^t and s_i^t are the values after the round from x^t to x^{t+1}; false if they are those before
  // it.
  bool of_round = false;
  double rate = 1, floor = 0;
  bool is_mean = true;  // the theorem bounds the mean over the algorithm's random draws, not each run

  bool needs_f_star() const { return gap > 0 && rate < 1; }
  bool needs_optimum() const { return distance > 0 || floor > 0 || (shifts > 0 && y == Shifted::kToOptimum); }
};

// The terms that a server algorithm provides: g, shape (d), and s_i, shape (n). An empty row means 0.
template <class Real>
struct LyapunovState {
  View<Real> g = {};
  std::span<const Vec<Real>> shifts = {};
};

}  // namespace gradwire
