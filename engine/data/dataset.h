// Labelled samples in compressed sparse rows. Every reader produces them, and every oracle is built from
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/table.h"
#include "gradwire/bad_input.h"

namespace gradwire {

// The name of the source that stands for samples of the program that runs the experiment.
inline constexpr std::string_view kGivenSource = "given";

struct Dataset {
  std::size_t columns = 0;                     // features are numbered 0 .. columns-1
  std::vector<std::uint64_t> row_start = {0};  // row r is [row_start[r], row_start[r+1]) of the two below
  std::vector<std::uint32_t> column;           // ascending within a row
  std::vector<double> value;                   // zeros are not stored
  std::vector<double> label;                   // one per row, as in the file
  std::vector<std::string> warnings = {};      // choices of the file reader that the user should know about
  std::shared_ptr<const TableEncoding> encoding = nullptr;  // null if the source is not a table

  std::size_t rows() const { return label.size(); }
  std::span<const std::uint32_t> row_columns(std::size_t r) const {
    return std::span(column).subspan(row_start[r], row_start[r + 1] - row_start[r]);
  }
  std::span<const double> row_values(std::size_t r) const {
    return std::span(value).subspan(row_start[r], row_start[r + 1] - row_start[r]);
  }
};

// A function that says which rows a reader keeps; an empty function keeps all. A row that is not kept has
// only its label in the dataset, but its columns still count.
using KeepRow = std::function<bool(std::size_t row)>;

// Returns the rows `rows` of `data`, in that order. Does not change the number of columns.
Dataset select_rows(const Dataset& data, std::span<const std::uint32_t> rows);

// Throws DataError if a feature is not below `columns`: the model does not have it.
void check_columns(const Dataset& data, std::size_t columns);

// Adds a feature, 1 in every row, after the others. `data` then has `columns` + 1 columns. Throws like
// check_columns().
void add_bias(Dataset& data, std::size_t columns);

// Returns the distinct labels, ascending.
std::vector<double> distinct_labels(std::span<const double> labels);
inline std::vector<double> distinct_labels(const Dataset& data) { return distinct_labels(data.label); }

}  // namespace gradwire
