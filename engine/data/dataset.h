// Labelled samples in compressed sparse rows: what every reader produces and every oracle is built from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/bad_input.h"

namespace gradwire {

// A data file or its description is unusable. what() is one line: "FILE:LINE: what is wrong; what to do".
class DataError : public BadInput {
 public:
  using BadInput::BadInput;
};

struct Dataset {
  std::size_t columns = 0;                     // features are numbered 0 .. columns-1
  std::vector<std::uint64_t> row_start = {0};  // row r is [row_start[r], row_start[r+1]) of the two below
  std::vector<std::uint32_t> column;           // ascending inside a row
  std::vector<double> value;                   // zeros are not stored
  std::vector<double> label;                   // one per row, as it stands in the file
  std::vector<std::string> warnings = {};      // what a reader decided that the user should know

  std::size_t rows() const { return label.size(); }
  std::span<const std::uint32_t> row_columns(std::size_t r) const {
    return std::span(column).subspan(row_start[r], row_start[r + 1] - row_start[r]);
  }
  std::span<const double> row_values(std::size_t r) const {
    return std::span(value).subspan(row_start[r], row_start[r + 1] - row_start[r]);
  }
};

// Which rows of a source a reader keeps; empty: all. Of another row it keeps the label alone, and does not
// look at its features further than to count the columns.
using KeepRow = std::function<bool(std::size_t row)>;

// The rows `rows` of `data`, in that order; `columns` is kept.
Dataset select_rows(const Dataset& data, std::span<const std::uint32_t> rows);

// Throws DataError when a feature is not below `columns`: the model has no such feature.
void check_columns(const Dataset& data, std::size_t columns);

// `data` with the feature number `columns`, 1 in every row, behind the others; `columns` + 1 columns in all.
// Throws as check_columns() does.
Dataset with_bias(const Dataset& data, std::size_t columns);

// The distinct labels, ascending.
std::vector<double> distinct_labels(std::span<const double> labels);
inline std::vector<double> distinct_labels(const Dataset& data) { return distinct_labels(data.label); }

}  // namespace gradwire
