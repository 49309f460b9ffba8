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

Dataset with_bias(const Dataset& data, std::size_t columns) {
  check_columns(data, columns);
  Dataset biased;
  biased.columns = columns + 1;
  biased.label = data.label;
  biased.row_start.reserve(data.row_start.size());
  biased.column.reserve(data.column.size() + data.rows());
  biased.value.reserve(data.value.size() + data.rows());
  for (std::size_t r = 0; r < data.rows(); ++r) {
    const auto column = data.row_columns(r);
    const auto value = data.row_values(r);
    biased.column.insert(biased.column.end(), column.begin(), column.end());
    biased.value.insert(biased.value.end(), value.begin(), value.end());
    biased.column.push_back(static_cast<std::uint32_t>(columns));
    biased.value.push_back(1);
    biased.row_start.push_back(biased.column.size());
  }
  return biased;
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
