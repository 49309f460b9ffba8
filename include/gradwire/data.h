// Labelled samples in memory, for the problem kinds of the library.
//
//   auto data = gradwire::Data::dense(2, {0.5, 1.0,  -1.0, 2.0}, {1, -1});
//   auto result = gradwire::train(gradwire::Experiment::load("logistic.toml"), {.data = data});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gradwire/bad_input.h"
#include "gradwire/version.h"

namespace gradwire {

struct DataContent;  // private

// m samples of `columns` features and a label each. Copies share the samples, which do not change. The
// experiment says how clients share the rows (clients.partition), and what a label means, as for a file.
class GRADWIRE_API Data {
 public:
  // Features of shape (m, columns), row by row; labels of shape (m). Throws DataError for other shapes,
  // and for numbers that are not finite.
  static Data dense(std::size_t columns, const std::vector<double>& features, std::vector<double> labels);
  // Compressed sparse rows: row r has the numbers [row_start[r], row_start[r + 1]) of `column` and `value`;
  // row_start has shape (m + 1). Columns are below `columns` and ascend within a row. Throws DataError as
  // above.
  static Data sparse(std::size_t columns, std::vector<std::uint64_t> row_start,
                     std::vector<std::uint32_t> column, std::vector<double> value,
                     std::vector<double> labels);
  // The text of a LIBSVM file, if its first sample is LABEL INDEX:VALUE ..., else of a table (CSV). A run
  // reads it as a file, by problem.label, problem.columns and problem.missing. Its DataError is then
  // "NAME:LINE: ...".
  static Data text(std::string text, std::string name = "data");

  std::size_t rows() const;     // m; 0 for a text, which is not read yet
  std::size_t columns() const;  // features of a sample; 0 for a text

  explicit Data(std::shared_ptr<const DataContent> content);  // for the library
  const DataContent& content() const { return *content_; }

 private:
  std::shared_ptr<const DataContent> content_;
};

}  // namespace gradwire
