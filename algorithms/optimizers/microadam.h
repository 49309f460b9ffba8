// MicroAdam — Modoranu, Safaryan, Malinovsky, Kurtic, Robert, Richtárik, Alistarh, arXiv:2405.15593,
// Algorithms 1 and 2: Adam on a window of sparse gradients, with an error feedback of 4 bits.
//
//   a ← g + Q⁻¹(e; δ, Δ)                                   e starts at 0; t = 1, 2, ...
//   I ← places of the k largest |a|,  V ← a[I],  a[I] ← 0
//   δ ← min a,  Δ ← max a,  e ← Q(a; δ, Δ)                 of each block of `block` coordinates
//   G[(t−1) mod w] ← (I, V)                                w = window
//   m̂ ← stats(β1, G),  v̂ ← stats(β2, G²)
//   y ← y − γ m̂ / (ε + √v̂)
//
//   Q(x; δ, Δ) = ⌊(x − δ)/u + ½⌋,  Q⁻¹(q; δ, Δ) = q u + δ,  u = (Δ − δ)/(2⁴ − 1);  Q = 0 if Δ = δ
//   stats(β, G) = (1 − β)/(1 − β^t) Σ_i β^{r_i} G[i],  r_i is the age of G[i] in steps, i < min(t, w)
//
// State: half a byte for each coordinate, two numbers for each block, and w k places and values.
#pragma once

#include <cstdint>
#include <string_view>

#include "algorithms/optimizers/rules.h"
#include "compressors/count.h"

namespace gradwire {

struct MicroAdam {
  static constexpr std::string_view name = "microadam";
  static constexpr std::string_view summary =
      "MicroAdam (arXiv:2405.15593): Adam on the k largest entries of each of the last `window` gradients; "
      "the rest is added to the next gradient, rounded to 4 bits";
  static constexpr std::uint32_t kMaxWindow = 256;
  Count k{0, 0.01};
  std::uint32_t window = 10, block = 64;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool operator==(const MicroAdam&) const = default;

  static void fields(auto& self, auto&& visit) {
    visit("k", self.k, "coordinates kept of each gradient");
    visit("window", self.window, "gradients kept", {.low = 1, .high = kMaxWindow});
    visit("block", self.block, "coordinates whose errors share one scale", {.low = 1, .high = 1e9});
    visit("beta1", self.beta1, "decay of m", {.high = 1, .high_open = true});
    visit("beta2", self.beta2, "decay of v", {.high = 1, .high_open = true});
    visit("eps", self.eps, "added to the square root of v", {.low_open = true});
  }

  // Takes local step t. Overwrites g. REQUIRES: k is a count and at most the length of g.
  template <class Real>
  void step(std::uint32_t t, Real gamma, Vec<Real>& g, Vec<Real>& y, Scratch<Real>& scratch) const;
};

}  // namespace gradwire
