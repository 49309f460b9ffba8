#include "engine/smoothness/gram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/smoothness/eigen.h"

namespace gradwire {
namespace {

// The largest size at which the code forms the Gram matrix or A A^T. This takes seconds and tens of
// megabytes.
constexpr std::size_t kDenseLimit = 1500;

// Adds sum_r r_i r_j over the rows r of `block` (each of length n) to the rows [i, i + kTile) of `matrix`,
// for j <= i + kTile - 1. This covers the lower triangle, and a little more.
template <std::size_t kTile>
void add_outer_tile(std::span<const double> block, std::size_t n, std::size_t i, double* __restrict matrix) {
  constexpr std::size_t kDepth = 4;  // rows of the block per pass over the tile
  for (std::size_t start = 0; start < block.size(); start += kDepth * n) {
    const double* __restrict r = &block[start];
    double left[kTile][kDepth];
    for (std::size_t t = 0; t < kTile; ++t) {
      for (std::size_t depth = 0; depth < kDepth; ++depth) left[t][depth] = r[depth * n + i + t];
    }
    for (std::size_t j = 0; j < i + kTile; ++j) {
      const double r0 = r[j], r1 = r[n + j], r2 = r[2 * n + j], r3 = r[3 * n + j];
#pragma GCC unroll 4
      for (std::size_t t = 0; t < kTile; ++t) {
        matrix[(i + t) * n + j] += (left[t][0] * r0 + left[t][1] * r1) + (left[t][2] * r2 + left[t][3] * r3);
      }
    }
  }
}

void add_outer_products(std::span<const double> block, std::size_t n, std::span<double> matrix) {
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) add_outer_tile<4>(block, n, i, matrix.data());
  for (; i < n; ++i) add_outer_tile<1>(block, n, i, matrix.data());
}

void add_outer_product(std::span<const std::uint32_t> column, std::span<const double> value, double scale,
                       std::size_t n, std::span<double> matrix) {
  for (std::size_t k = 0; k < column.size(); ++k) {
    double* row = &matrix[column[k] * n];
    const double factor = scale * value[k];
    for (std::size_t l = 0; l <= k; ++l) row[column[l]] += factor * value[l];
  }
}

// Returns the matrix (columns x columns), both triangles.
std::vector<double> dense_gram(const Gram& gram, const OrderedScan& scan) {
  constexpr std::size_t kBlockRows = 16;  // a multiple of four
  constexpr std::size_t kDenseFraction =
      8;  // rows with more than a share 1/8 of nonzeros are gathered in blocks
  const std::size_t n = gram.columns;
  // The state includes the partial block, so that the next process continues it.
  std::vector<double> state(n * n + kBlockRows * n + 1);
  const auto matrix = std::span(state).first(n * n), block = std::span(state).subspan(n * n, kBlockRows * n);
  double& filled = state.back();
  const auto flush = [&] {
    add_outer_products(block, n, matrix);
    std::fill(block.begin(), block.end(), 0.0);
    filled = 0;
  };
  scan(state, [&] {
    for (const auto& [data, scale] : gram.terms) {
      for (std::size_t r = 0; r < data->rows(); ++r) {
        const auto column = data->row_columns(r);
        const auto value = data->row_values(r);
        if (column.size() * kDenseFraction <= n) {
          add_outer_product(column, value, scale, n, matrix);
          continue;
        }
        double* row = &block[static_cast<std::size_t>(filled) * n];
        for (std::size_t k = 0; k < column.size(); ++k) row[column[k]] = std::sqrt(scale) * value[k];
        if (++filled == kBlockRows) flush();
      }
    }
  });
  if (filled > 0) flush();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) matrix[j * n + i] = matrix[i * n + j];
  }
  state.resize(n * n);
  return state;
}

struct ScaledRow {
  std::span<const std::uint32_t> column;
  std::span<const double> value;
  double root;  // root of the scale of its term
};

std::vector<ScaledRow> scaled_rows(const Gram& gram) {
  std::vector<ScaledRow> rows;
  for (const auto& [data, scale] : gram.terms)
    for (std::size_t r = 0; r < data->rows(); ++r)
      rows.push_back({data->row_columns(r), data->row_values(r), std::sqrt(scale)});
  return rows;
}

double dot(const ScaledRow& row, std::span<const double> dense) {
  double sum = 0;
  for (std::size_t k = 0; k < row.column.size(); ++k) sum += row.value[k] * dense[row.column[k]];
  return sum;
}

// Returns B B^T, (n x n). B has the rows of all terms of all processes, each scaled by the root of its term's
// scale. B B^T has the same nonzero eigenvalues as the Gram matrix. The rows of this process start at number
// `first`.
std::vector<double> dense_row_gram(const Gram& gram, std::size_t first, std::size_t n,
                                   const OrderedScan& scan) {
  const std::vector<ScaledRow> rows = scaled_rows(gram);
  const std::size_t end = first + rows.size();
  std::vector<double> columns_of_rows(n * rows.size());
  std::vector<double> given(gram.columns + 1);  // a row, and its root
  for (std::size_t r = 0; r < n; ++r) {
    const ScaledRow* const own = r >= first && r < end ? &rows[r - first] : nullptr;
    scan(given, [&] {
      if (own == nullptr) return;
      if (scan.run) std::fill(given.begin(), given.end(), 0.0);
      for (std::size_t k = 0; k < own->column.size(); ++k) given[own->column[k]] = own->value[k];
      given.back() = own->root;
    });
    for (std::size_t k = 0; k < rows.size(); ++k)
      columns_of_rows[r * rows.size() + k] = given.back() * rows[k].root * dot(rows[k], given);
    if (own != nullptr)
      for (const std::uint32_t c : own->column) given[c] = 0;
  }
  std::vector<double> matrix(n * n);
  scan(matrix, [&] {
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t k = 0; k < rows.size(); ++k)
        matrix[r * n + first + k] = columns_of_rows[r * rows.size() + k];
  });
  return matrix;
}

}  // namespace

std::size_t Gram::rows() const {
  std::size_t sum = 0;
  for (const GramTerm& term : terms) sum += term.rows->rows();
  return sum;
}

void Gram::add(std::span<const double> v, std::span<double> out) const {
  for (const auto& [data, scale] : terms) {
    for (std::size_t r = 0; r < data->rows(); ++r) {
      const auto column = data->row_columns(r);
      const auto value = data->row_values(r);
      double sum = 0;
      for (std::size_t k = 0; k < column.size(); ++k) sum += value[k] * v[column[k]];
      sum *= scale;
      for (std::size_t k = 0; k < column.size(); ++k) out[column[k]] += sum * value[k];
    }
  }
}

void Gram::apply(std::span<const double> v, std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  add(v, out);
}

double Gram::largest_eigenvalue(const OrderedScan& scan) const {
  return gradwire::largest_eigenvalue(columns, [&](std::span<const double> v, std::span<double> out) {
    std::fill(out.begin(), out.end(), 0.0);
    scan(out, [&] { add(v, out); });
  });
}

double Gram::smallest_eigenvalue(Smallest which, const OrderedScan& scan) const {
  double counted = 0;  // rows
  std::size_t first = 0;
  scan({&counted, 1}, [&] {
    first = static_cast<std::size_t>(counted);
    counted += static_cast<double>(rows());
  });
  const auto row_count = static_cast<std::size_t>(counted);
  const std::size_t size = std::min(columns, row_count);
  if (size == 0 || size > kDenseLimit) return 0;
  const bool rank_below_dim = row_count < columns;
  if (which == Smallest::kOfAll && rank_below_dim) return 0;
  const Tridiagonal t = tridiagonalize(
      rank_below_dim ? dense_row_gram(*this, first, row_count, scan) : dense_gram(*this, scan), size);
  // An eigenvalue below this is a 0 with a rounding error (the rule of numerical rank).
  const double zero = static_cast<double>(std::max(row_count, columns)) *
                      std::numeric_limits<double>::epsilon() * eigenvalue(t, size - 1);
  const std::size_t zeros = count_below(t, zero);
  if (zeros == size || (which == Smallest::kOfAll && zeros > 0)) return 0;
  return eigenvalue(t, zeros);
}

double largest_mean_square(std::size_t n, std::span<const Gram> grams, std::span<const double> weights,
                           double ridge, const OrderedScan& scan) {
  std::vector<double> once(n), twice(n);
  return largest_eigenvalue(n, [&](std::span<const double> v, std::span<double> out) {
    std::fill(out.begin(), out.end(), 0.0);
    scan(out, [&] {
      for (std::size_t i = 0; i < grams.size(); ++i) {
        grams[i].apply(v, once);
        for (std::size_t j = 0; j < n; ++j) once[j] += ridge * v[j];
        grams[i].apply(once, twice);
        for (std::size_t j = 0; j < n; ++j) out[j] += weights[i] * (twice[j] + ridge * once[j]);
      }
    });
  });
}

double largest_variance(std::size_t n, std::span<const Gram> grams, std::span<const double> weights,
                        double mean_square, const OrderedScan& scan) {
  // Lanczos stops at a relative accuracy, which it cannot reach for a variance that is 0 up to rounding. The
  // shift makes it reachable.
  const double shift = mean_square / 64;
  std::vector<double> mean(n), once(n), twice(n);
  const double shifted = largest_eigenvalue(n, [&](std::span<const double> v, std::span<double> out) {
    std::fill(mean.begin(), mean.end(), 0.0);
    scan(mean, [&] {
      for (std::size_t i = 0; i < grams.size(); ++i) {
        grams[i].apply(v, once);
        for (std::size_t j = 0; j < n; ++j) mean[j] += weights[i] * once[j];
      }
    });
    // Computes sum_i w_i G_i (G_i - mean) v. The difference is taken first, to limit cancellation.
    for (std::size_t j = 0; j < n; ++j) out[j] = shift * v[j];
    scan(out, [&] {
      for (std::size_t i = 0; i < grams.size(); ++i) {
        grams[i].apply(v, once);
        for (std::size_t j = 0; j < n; ++j) once[j] -= mean[j];
        grams[i].apply(once, twice);
        for (std::size_t j = 0; j < n; ++j) out[j] += weights[i] * twice[j];
      }
    });
  });
  return std::max(0.0, shifted - shift);
}

}  // namespace gradwire
