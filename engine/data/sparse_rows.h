// Samples as oracles keep them: compressed sparse rows in Real, and the two passes over a row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/shares.h"
#include "gradwire/oracle.h"

namespace gradwire {

template <class Real>
class SparseRows {
 public:
  // Copies the features of `data`, not the labels. Throws DataError if a feature is not below `columns`.
  SparseRows(const Dataset& data, std::size_t columns) : SparseRows(Dataset(data), columns) {}

  // Does the same, but takes the memory of the features.
  SparseRows(Dataset&& data, std::size_t columns) : columns_(columns) {
    check_columns(data, columns);
    if constexpr (std::is_same_v<std::vector<std::size_t>, decltype(data.row_start)>)
      row_start_ = std::move(data.row_start);
    else
      row_start_.assign(data.row_start.begin(), data.row_start.end());
    memory_ = std::move(data.value);
    column_ = std::move(data.column);
    if constexpr (kIsShared) share_memory();
  }

  std::size_t rows() const { return row_start_.size() - 1; }
  std::size_t columns() const { return columns_; }
  std::size_t nonzeros() const { return memory_.size(); }

  std::span<const std::uint32_t> row_columns(std::size_t r) const {
    return {all_columns() + row_start_[r], row_start_[r + 1] - row_start_[r]};
  }
  std::span<const Real> row_values(std::size_t r) const {
    return {all_values() + row_start_[r], row_start_[r + 1] - row_start_[r]};
  }

  // Returns a_r^T x, summed in column order.
  Real dot(std::size_t r, const Real* x) const {
    const std::uint32_t* const column = all_columns();
    const Real* const value = all_values();
    Real sum = 0;
    for (std::size_t k = row_start_[r]; k < row_start_[r + 1]; ++k) sum += value[k] * x[column[k]];
    return sum;
  }

  // Computes y += scale a_r.
  void add_scaled(std::size_t r, Real scale, Real* y) const {
    const std::uint32_t* const column = all_columns();
    const Real* const value = all_values();
    for (std::size_t k = row_start_[r]; k < row_start_[r + 1]; ++k) y[column[k]] += scale * value[k];
  }

  // Computes a_r^T x and a_r^T y, with the bits of dot().
  void two_dots(std::size_t r, const Real* x, const Real* y, Real& with_x, Real& with_y) const {
    const std::uint32_t* const column = all_columns();
    const Real* const value = all_values();
    Real sum_x = 0, sum_y = 0;
    for (std::size_t k = row_start_[r]; k < row_start_[r + 1]; ++k) {
      sum_x += value[k] * x[column[k]];
      sum_y += value[k] * y[column[k]];
    }
    with_x = sum_x;
    with_y = sum_y;
  }

  // Computes y += scale_y a_r and z += scale_z a_r.
  void add_two_scaled(std::size_t r, Real scale_y, Real* y, Real scale_z, Real* z) const {
    const std::uint32_t* const column = all_columns();
    const Real* const value = all_values();
    for (std::size_t k = row_start_[r]; k < row_start_[r + 1]; ++k) {
      y[column[k]] += scale_y * value[k];
      z[column[k]] += scale_z * value[k];
    }
  }

  // Computes y_j += scale a_rj for j in [first, end).
  void add_scaled(std::size_t r, Real scale, std::size_t first, std::size_t end, Real* y) const {
    const std::uint32_t* columns = all_columns() + row_start_[r];
    const std::size_t count = row_start_[r + 1] - row_start_[r];
    std::size_t k =
        count == columns_
            ? first  // all of them, in order
            : static_cast<std::size_t>(std::lower_bound(columns, columns + count, first) - columns);
    const Real* values = all_values() + row_start_[r];
    for (; k < count && columns[k] < end; ++k) y[columns[k]] += scale * values[k];
  }

  // The sums of a row for a clipped gradient, from one pass: a_r^T x and a_r^T y with the bits of dot(), and
  // ||a_r||^2.
  struct RowProducts {
    Real with_x = 0, with_y = 0, square = 0;
  };
  RowProducts sums(std::size_t r, const Real* x, const Real* y) const {
    const std::uint32_t* const column = all_columns();
    const Real* const value = all_values();
    RowProducts s;
    for (std::size_t k = row_start_[r]; k < row_start_[r + 1]; ++k) {
      s.with_x += value[k] * x[column[k]];
      s.with_y += value[k] * y[column[k]];
      s.square += value[k] * value[k];
    }
    return s;
  }

 private:
  // Floats take half of the memory of the doubles that they come from. The columns then get the other half,
  // so that the conversion needs no memory. memcpy() creates the new numbers there.
  static constexpr bool kIsShared = sizeof(Real) + sizeof(std::uint32_t) == sizeof(double);

  void share_memory() {
    const std::size_t count = memory_.size();
    const double* const from = memory_.data();
    char* const bytes = reinterpret_cast<char*>(memory_.data());
    for (std::size_t k = 0; k < count; ++k) {
      const Real value = static_cast<Real>(from[k]);
      std::memcpy(bytes + k * sizeof value, &value, sizeof value);  // ends before the next double to read
    }
    if (count > 0) std::memcpy(bytes + count * sizeof(Real), column_.data(), count * sizeof column_[0]);
    std::vector<std::uint32_t>().swap(column_);
  }
  const Real* all_values() const { return reinterpret_cast<const Real*>(memory_.data()); }
  const std::uint32_t* all_columns() const {
    if constexpr (kIsShared) return reinterpret_cast<const std::uint32_t*>(all_values() + memory_.size());
    return column_.data();
  }

  std::size_t columns_;
  std::vector<std::size_t> row_start_;
  std::vector<double> memory_;         // the values, and the columns if kIsShared
  std::vector<std::uint32_t> column_;  // empty if kIsShared
};

// The rows that one call of an oracle uses: those of `batch`, or all of a client. The constructor throws
// std::logic_error if the batch names a sample that does not exist, or if there are no samples.
class BatchRows {
 public:
  BatchRows(Batch batch, const ClientRows& rows)
      : batch_(batch), rows_(rows), count_(batch.empty() ? rows.count : batch.size()) {
    if (count_ == 0) throw std::logic_error("an oracle without samples has no gradient");
    if (batch.empty()) return;
    const std::uint32_t largest = *std::max_element(batch.begin(), batch.end());
    if (largest >= rows.count) {
      throw std::logic_error("batch names sample " + std::to_string(largest) + " of " +
                             std::to_string(rows.count));
    }
  }
  // Uses the rows for which sample j is row j.
  BatchRows(Batch batch, std::size_t rows) : BatchRows(batch, ClientRows{.count = rows}) {}

  std::size_t count() const { return count_; }
  std::size_t operator[](std::size_t k) const { return rows_[batch_.empty() ? k : batch_[k]]; }

 private:
  Batch batch_;
  ClientRows rows_;
  std::size_t count_;
};

// Throw std::logic_error unless x (and the gradient) have length d.
template <class Real>
void check_length(std::span<const Real> x, std::size_t dim) {
  if (x.size() == dim) return;
  throw std::logic_error("an oracle of dimension " + std::to_string(dim) + " was given a vector of length " +
                         std::to_string(x.size()));
}

template <class Real>
void check_lengths(std::span<const Real> x, std::span<Real> gradient, std::size_t dim) {
  check_length(x, dim);
  check_length(std::span<const Real>(gradient), dim);
}

}  // namespace gradwire
