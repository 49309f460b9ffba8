#include "engine/dataset.h"

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

std::vector<double> distinct_labels(std::span<const double> all) {
  std::vector<double> labels(all.begin(), all.end());
  for (double& label : labels) label += 0.0;  // -0 becomes +0
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  return labels;
}

}  // namespace gradwire
