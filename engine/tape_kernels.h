// The arithmetic of the tape's vector operations over plain arrays, forward directly above backward. Loops
// run over contiguous outputs, so that they vectorise and no sum depends on the width of the vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "engine/elementary.h"

namespace gradwire::kernels {

// y += x * row
template <class Real>
inline void add_scaled(std::size_t n, Real x, const Real* __restrict row, Real* __restrict y) {
  for (std::size_t j = 0; j < n; ++j) y[j] += x * row[j];
}

// sum_j a_j b_j in kLanes running sums and a tail.
template <class Real>
inline Real dot(std::size_t n, const Real* __restrict a, const Real* __restrict b) {
  constexpr std::size_t kLanes = 16;
  std::size_t j = 0;
  Real sum = 0;
  if (n >= kLanes) {
    Real sums[kLanes] = {};
    for (; j + kLanes <= n; j += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[j + lane] * b[j + lane];
    }
    for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
      for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    }
    sum = sums[0];
  }
  for (; j < n; ++j) sum += a[j] * b[j];
  return sum;
}

// y = bias + sum_k x_k weights[k], k over `in`; weights (in, out). Four rows per pass over y, in the order of
// k.
template <class Real>
inline void affine(std::size_t in, std::size_t out, const Real* __restrict weights,
                   const Real* __restrict bias, const Real* __restrict x, Real* __restrict y) {
  std::copy(bias, bias + out, y);
  std::size_t k = 0;
  for (; k + 4 <= in; k += 4) {
    const Real* __restrict row = weights + k * out;
    for (std::size_t j = 0; j < out; ++j) {
      y[j] = (((y[j] + x[k] * row[j]) + x[k + 1] * row[out + j]) + x[k + 2] * row[2 * out + j]) +
             x[k + 3] * row[3 * out + j];
    }
  }
  for (; k < in; ++k) add_scaled(out, x[k], weights + k * out, y);
}

// dweights[k] += x_k dy, dbias += dy, dx_k += weights[k] . dy: one pass over the weights. The operands may
// overlap.
template <class Real>
inline void affine_backward(std::size_t in, std::size_t out, const Real* weights, const Real* x,
                            const Real* dy, Real* dweights, Real* dbias, Real* dx) {
  add_scaled(out, Real(1), dy, dbias);
  for (std::size_t k = 0; k < in; ++k) {
    add_scaled(out, x[k], dy, dweights + k * out);
    dx[k] += dot(out, weights + k * out, dy);
  }
}

// The same with x given by its nonzeros x[index[k]] = value[k]; it takes no gradient.
template <class Real>
inline void sparse_affine(std::size_t nonzeros, std::size_t out, const Real* __restrict weights,
                          const Real* __restrict bias, const std::uint32_t* __restrict index,
                          const Real* __restrict value, Real* __restrict y) {
  std::copy(bias, bias + out, y);
  const auto row = [&](std::size_t k) { return weights + std::size_t{index[k]} * out; };
  std::size_t k = 0;
  for (; k + 4 <= nonzeros; k += 4) {
    const Real* __restrict r0 = row(k);
    const Real* __restrict r1 = row(k + 1);
    const Real* __restrict r2 = row(k + 2);
    const Real* __restrict r3 = row(k + 3);
    const Real x0 = value[k], x1 = value[k + 1], x2 = value[k + 2], x3 = value[k + 3];
    for (std::size_t j = 0; j < out; ++j) {
      y[j] = (((y[j] + x0 * r0[j]) + x1 * r1[j]) + x2 * r2[j]) + x3 * r3[j];
    }
  }
  for (; k < nonzeros; ++k) add_scaled(out, value[k], row(k), y);
}

template <class Real>
inline void sparse_affine_backward(std::size_t nonzeros, std::size_t out,
                                   const std::uint32_t* __restrict index, const Real* __restrict value,
                                   const Real* __restrict dy, Real* __restrict dweights,
                                   Real* __restrict dbias) {
  add_scaled(out, Real(1), dy, dbias);
  for (std::size_t k = 0; k < nonzeros; ++k)
    add_scaled(out, value[k], dy, dweights + std::size_t{index[k]} * out);
}

template <class Real>
inline void tanh(std::size_t n, const Real* __restrict x, Real* __restrict y) {
  for (std::size_t j = 0; j < n; ++j) y[j] = fast_tanh(x[j]);
}

template <class Real>
inline void tanh_backward(std::size_t n, const Real* __restrict y, const Real* __restrict dy,
                          Real* __restrict dx) {
  for (std::size_t j = 0; j < n; ++j) dx[j] += (1 - y[j] * y[j]) * dy[j];
}

template <class Real>
inline void relu(std::size_t n, const Real* __restrict x, Real* __restrict y) {
  for (std::size_t j = 0; j < n; ++j) y[j] = x[j] > 0 ? x[j] : Real(0);
}

template <class Real>
inline void relu_backward(std::size_t n, const Real* __restrict y, const Real* __restrict dy,
                          Real* __restrict dx) {
  for (std::size_t j = 0; j < n; ++j) dx[j] += y[j] > 0 ? dy[j] : Real(0);
}

// Returns -log softmax(z)[label] and writes softmax(z). nan in, nan out.
template <class Real>
inline Real softmax_cross_entropy(std::size_t n, const Real* __restrict z, std::size_t label,
                                  Real* __restrict probability) {
  Real top = z[0];
  for (std::size_t j = 1; j < n; ++j) top = z[j] > top ? z[j] : top;
  for (std::size_t j = 0; j < n; ++j) probability[j] = fast_exp(z[j] - top);
  Real sum = 0;
  for (std::size_t j = 0; j < n; ++j) sum += probability[j];
  const Real inverse = 1 / sum;
  for (std::size_t j = 0; j < n; ++j) probability[j] *= inverse;
  return std::log(sum) - (z[label] - top);
}

template <class Real>
inline void softmax_cross_entropy_backward(std::size_t n, const Real* __restrict probability,
                                           std::size_t label, Real dloss, Real* __restrict dz) {
  add_scaled(n, dloss, probability, dz);
  dz[label] -= dloss;
}

}  // namespace gradwire::kernels
