// Columns of a metrics.csv by their names, for programs that need some of them and not a RoundRecord.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

struct MetricsTable {
  std::vector<std::string> names;            // of all columns of the file
  std::vector<std::string> read;             // of those that were read
  std::vector<std::vector<double>> columns;  // of those, one number a row; nan: the cell is empty

  std::size_t rows = 0;
  // Null: it was not read.
  const std::vector<double>* column(std::string_view name) const;
  bool has(std::string_view name) const;  // the file
};

// Reads those of `wanted` that the file has, whatever else it has: later versions append columns. Ignores a
// last line without a newline, because it is still being written. Throws std::runtime_error (one line, with
// file and line number).
MetricsTable read_metrics_table(const std::filesystem::path& file, std::span<const std::string> wanted);

}  // namespace gradwire
