#include "engine/data/dataset.h"

#include <algorithm>
#include <stdexcept>

namespace gradwire {

Dataset select_rows(const Dataset& data, std::span<const std::uint32_t> rows) {
  std::uint64_t entries = 0;
  for (const std::uint32_t r : rows) {
    if (r >= data.rows())
      throw std::logic_error("select_rows: row " + std::to_string(r) + " is not in the data");
    entries += data.row_start[r + 1] - data.row_start[r];
  }
  Dataset selected;
  selected.columns = data.columns;
  selected.encoding = data.encoding;
  selected.row_start.reserve(rows.size() + 1);
  selected.label.reserve(rows.size());
  selected.column.reserve(entries);
  selected.value.reserve(entries);
  for (const std::uint32_t r : rows) {
    const auto columns = data.row_columns(r);
    const auto values = data.row_values(r);
    selected.column.insert(selected.column.end(), columns.begin(), columns.end());
    selected.value.insert(selected.value.end(), values.begin(), values.end());
    selected.row_start.push_back(selected.column.size());
    selected.label.push_back(data.label[r]);
  }
  return selected;
}

void check_columns(const Dataset& data, std::size_t columns) {
  const auto largest = std::max_element(data.column.begin(), data.column.end());
  if (largest == data.column.end() || *largest < columns) return;
  throw DataError("a sample has feature number " + std::to_string(*largest + std::uint64_t{1}) +
                  " but the model has " + std::to_string(columns) + " features; set problem.dim");
}

namespace {

// Returns the entries of all rows, with `last` after those of each row.
template <class T>
std::vector<T> with_last(const Dataset& data, const std::vector<T>& entries, T last) {
  std::vector<T> longer;
  longer.reserve(entries.size() + data.rows());
  for (std::size_t r = 0; r < data.rows(); ++r) {
    longer.insert(longer.end(), entries.begin() + static_cast<std::ptrdiff_t>(data.row_start[r]),
                  entries.begin() + static_cast<std::ptrdiff_t>(data.row_start[r + 1]));
    longer.push_back(last);
  }
  return longer;
}

}  // namespace

void add_bias(Dataset& data, std::size_t columns) {
  check_columns(data, columns);
  data.columns = columns + 1;
  data.column = with_last(data, data.column, static_cast<std::uint32_t>(columns));
  data.value = with_last(data, data.value, 1.0);
  for (std::size_t r = 0; r < data.row_start.size(); ++r) data.row_start[r] += r;
}

namespace {

std::vector<double> sorted_distinct(std::span<const double> all) {
  std::vector<double> labels(all.begin(), all.end());
  for (double& label : labels) label += 0.0;  // turns -0 into +0
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  return labels;
}

}  // namespace

std::vector<double> distinct_labels(std::span<const double> all) {
  constexpr std::size_t kFew = 64;  // most data have few labels, and then need no sorting
  std::vector<double> labels;
  for (const double label : all) {
    const auto at = std::lower_bound(labels.begin(), labels.end(), label);
    if (at != labels.end() && *at == label) continue;
    if (labels.size() == kFew) return sorted_distinct(all);
    labels.insert(at, label + 0.0);  // turns -0 into +0
  }
  return labels;
}

}  // namespace gradwire
