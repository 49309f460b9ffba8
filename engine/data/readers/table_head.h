// The first lines of a table decide its separator, its header, and the columns of the label and the features.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/readers/delimited.h"
#include "engine/data/table.h"

namespace gradwire {

using Fields = std::vector<std::string_view>;
// Calls the function with each line that is not blank, and its number, until it returns false.
using EachLine = std::function<void(const std::function<bool(std::string_view line, std::size_t number)>&)>;

class TableHead {
 public:
  TableHead(const TableHead&) = delete;
  TableHead& operator=(const TableHead&) = delete;
  // Reads the first lines. If there are none, the width is 0. Throws DataError if they are not a table, or
  // have no column that `options` name.
  TableHead(const EachLine& each_line, const std::string& file, const TableOptions& options);

  Delimiter delimiter() const { return delimiter_; }
  std::size_t separator_line() const { return separator_line_; }  // the number of the line sep=; or 0
  std::size_t width() const { return width_; }                    // fields in each line
  bool has_header() const { return has_header_; }
  std::size_t label() const { return label_; }  // its column; width() if there is none
  const std::vector<std::size_t>& features() const { return features_; }        // their columns, ascending
  const std::string& name(std::size_t column) const { return names_[column]; }  // "" if unknown
  // Returns the column of that name or number, counted from 0. Throws DataError that names `key`.
  std::size_t find_or_throw(std::string_view column, const char* key) const;
  // Returns "column 3, 'age'", or "column 3" if its name is unknown.
  std::string described(std::size_t column) const;
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Returns true if these lines have a text in one of the columns that are used, or no value in one.
  bool has_texts() const;

  // Splits a line after the header. Throws DataError.
  void split(std::string_view line, std::size_t number, Fields& fields) const;

 private:
  void choose_header();
  bool is_header(const Fields& first);
  bool names_lines(std::size_t column) const;
  bool is_empty(std::size_t column) const;
  std::optional<std::size_t> find(std::string_view column) const;
  void choose_label();
  void choose_unread_label();
  void choose_features();
  void add_features(std::string_view token);
  void leave_out_unnamed();
  void warn(const std::string& what);
  DataError error(std::size_t line, const std::string& what) const;

  const std::string& file_;
  const TableOptions& options_;
  std::vector<std::string> lines_;
  std::vector<Fields> rows_;  // the first lines after the header, as fields
  std::size_t first_line_ = 0, separator_line_ = 0;
  Delimiter delimiter_;
  std::size_t width_ = 0;
  bool has_header_ = false, ends_with_separator_ = false;
  std::vector<std::string> names_;
  std::size_t label_ = 0;
  std::vector<std::size_t> features_;
  std::vector<std::string> warnings_;
};

}  // namespace gradwire
