// Symmetric d x d matrices as their upper triangle, row by row: row a holds the columns a .. d-1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "gradwire/oracle.h"

namespace gradwire {

// Returns the offset of row a: entry (a, b), a <= b, has the number upper_row(a, d) + b.
constexpr std::size_t upper_row(std::size_t a, std::size_t d) { return a * (2 * d - a - 1) / 2; }

// Adds scale v v^T to `upper`. v is the sparse vector with the numbers `value` at the indices `column`, which
// ascend. Touches only the pairs of nonzeros of v.
template <class Real>
void add_outer_product(std::span<const std::uint32_t> column, std::span<const Real> value, Real scale,
                       std::size_t d, Real* __restrict upper) {
  const std::size_t count = column.size();
  if (count == 0) return;
  // Without gaps, plain loops suffice.
  const bool dense = column[count - 1] - column[0] + std::size_t{1} == count;
  const Real* __restrict v = value.data();
  for (std::size_t k = 0; k < count; ++k) {
    const Real factor = scale * v[k];
    Real* __restrict row = upper + upper_row(column[k], d);
    if (dense) {
      row += column[0];
      for (std::size_t l = k; l < count; ++l) row[l] += factor * v[l];
    } else {
#pragma GCC unroll 4
      for (std::size_t l = k; l < count; ++l) row[column[l]] += factor * v[l];
    }
  }
}

// Throws std::logic_error unless `upper` has the shape (d (d + 1) / 2).
template <class Real>
void check_upper(std::span<Real> upper, std::size_t d) {
  if (upper.size() == upper_size(d)) return;
  throw std::logic_error("the Hessian of an oracle of dimension " + std::to_string(d) + " has " +
                         std::to_string(upper_size(d)) + " entries in its upper triangle, not " +
                         std::to_string(upper.size()));
}

}  // namespace gradwire
