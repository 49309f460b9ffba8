#include "engine/data/memory_data.h"

#include <cmath>
#include <string>
#include <utility>

#include "gradwire/data.h"

namespace gradwire {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw DataError("data: " + what); }

void check_shape(const char* name, std::size_t size, std::size_t wanted) {
  if (size != wanted)
    refuse(std::string(name) + " has " + std::to_string(size) + " numbers, but " + std::to_string(wanted) +
           " are needed");
}

void check_labels(const std::vector<double>& labels) {
  for (std::size_t r = 0; r < labels.size(); ++r)
    if (!std::isfinite(labels[r])) refuse("the label of sample " + std::to_string(r) + " is not finite");
}

[[noreturn]] void refuse_feature(std::size_t row, std::size_t column) {
  refuse("feature " + std::to_string(column) + " of sample " + std::to_string(row) + " is not finite");
}

void check_columns_fit(std::size_t columns) {
  if (columns > 0xFFFFFFFF) refuse("more than 2^32 columns");
}

Data data_of(Dataset samples) {
  return Data(std::make_shared<const DataContent>(DataContent{std::move(samples), {}, {}}));
}

}  // namespace

Data::Data(std::shared_ptr<const DataContent> content) : content_(std::move(content)) {}

Data Data::text(std::string text, std::string name) {
  return Data(std::make_shared<const DataContent>(DataContent{{}, std::move(text), std::move(name)}));
}

Data Data::dense(std::size_t columns, const std::vector<double>& features, std::vector<double> labels) {
  check_columns_fit(columns);
  check_shape("features", features.size(), labels.size() * columns);
  check_labels(labels);
  Dataset data;
  data.columns = columns;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    for (std::size_t j = 0; j < columns; ++j) {
      const double value = features[r * columns + j];
      if (!std::isfinite(value)) refuse_feature(r, j);
      if (value == 0) continue;
      data.column.push_back(static_cast<std::uint32_t>(j));
      data.value.push_back(value);
    }
    data.row_start.push_back(data.value.size());
  }
  data.label = std::move(labels);
  return data_of(std::move(data));
}

Data Data::sparse(std::size_t columns, std::vector<std::uint64_t> row_start,
                  std::vector<std::uint32_t> column, std::vector<double> value, std::vector<double> labels) {
  check_columns_fit(columns);
  check_labels(labels);
  check_shape("row_start", row_start.size(), labels.size() + 1);
  check_shape("column", column.size(), value.size());
  if (row_start.front() != 0 || row_start.back() != value.size())
    refuse("row_start must begin with 0 and end with the number of values, " + std::to_string(value.size()));
  Dataset data;
  data.columns = columns;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    if (row_start[r + 1] < row_start[r] || row_start[r + 1] > value.size())
      refuse("row_start falls at sample " + std::to_string(r));
    for (std::uint64_t k = row_start[r]; k < row_start[r + 1]; ++k) {
      if (column[k] >= columns || (k > row_start[r] && column[k] <= column[k - 1]))
        refuse("the columns of sample " + std::to_string(r) + " must ascend and be below " +
               std::to_string(columns));
      if (!std::isfinite(value[k])) refuse_feature(r, column[k]);
      if (value[k] == 0) continue;
      data.column.push_back(column[k]);
      data.value.push_back(value[k]);
    }
    data.row_start.push_back(data.value.size());
  }
  data.label = std::move(labels);
  return data_of(std::move(data));
}

std::size_t Data::rows() const { return content_->samples.rows(); }
std::size_t Data::columns() const { return content_->samples.columns; }

}  // namespace gradwire
