// Tables: one sample per line, one field per column. A column is the label, the others are features.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/readers/bytes.h"
#include "engine/data/table.h"

namespace gradwire {

// Parses a table whose fields are separated by commas, semicolons, tabs or bars, whichever divides its first
// lines. `file` is for errors.
// - Header. The first line is a header if it has names where the lines after it have numbers, or if all its
//   fields are words that do not appear again. Without a header, columns have numbers only.
// - Numbers. Decimal commas are allowed between semicolons or tabs. Fields may be in double quotes.
// - Texts. A column whose first value is a text has one feature for each text, which is 1 in the lines with
//   that text (one-hot), but False and True are 0 and 1 of one feature. Text labels are numbered in
//   ascending order: two are -1 and 1, more count from 0.
// - A first line sep=; of Excel names the separator.
// - A first column without a name that counts the lines is left out.
// All lines have the same number of fields, at least two. Blank lines are skipped. Zeros are not stored.
// The warnings of the dataset name these decisions, and its encoding holds them. If `given` is not null, it
// is the encoding; a text that it lacks is then 0 in all features of its column. Throws DataError.
Dataset parse_csv(std::string_view text, const std::string& file, const TableOptions& options = {},
                  const TableEncoding* given = nullptr);
// Parses a file without keeping it in memory, or some of its rows. Calls `open` once or twice.
Dataset parse_csv(const std::function<std::unique_ptr<ByteStream>()>& open, const std::string& file,
                  const KeepRow& keep, const TableOptions& options = {},
                  const TableEncoding* given = nullptr);

// The columns of a table, by its first lines, and its length.
struct TableColumns {
  std::vector<std::string> names;  // "" without a header
  std::size_t label = 0;
  std::vector<std::size_t> features;  // ascending
  std::size_t samples = 0;            // lines, those that lack a value included
};
// Reads a file twice, without its values. Throws DataError.
TableColumns csv_columns(const std::function<std::unique_ptr<ByteStream>()>& open, const std::string& file,
                         const TableOptions& options = {});

}  // namespace gradwire
