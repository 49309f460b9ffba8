// Columns of a metrics.csv by their names, for programs that need only some of them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

struct MetricsTable {
  std::vector<std::string> names;            // all columns of the file
  std::vector<std::string> read;             // the columns that were read
  std::vector<std::vector<double>> columns;  // their numbers, one per row; NaN if the cell is empty

  std::size_t rows = 0;
  // Returns the numbers of a column, or null if it was not read.
  const std::vector<double>* column(std::string_view name) const;
  bool has(std::string_view name) const;  // returns whether the file has the column
};

// Reads the `wanted` columns that the file has. The file may have others, because later versions append
// columns. Ignores a last line without a newline, because it is still being written. Throws
// std::runtime_error (one line, with file and line number).
MetricsTable read_metrics_table(const std::filesystem::path& file, std::span<const std::string> wanted);

}  // namespace gradwire
