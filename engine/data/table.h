// Tables of samples (engine/data/readers/csv.h): how to read them, and what their texts stand for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradwire {

// A missing value is an error, or leaves out its line, or stands for the mean of its column.
enum class MissingValues : std::uint8_t { kRefuse, kDrop, kMean };

struct TableOptions {
  // The column of the label: its name, or its number from 1. If empty, the column that a header names label,
  // class, target or y, else the last one.
  std::string label = {};
  std::string columns = {};  // columns of the features, as in "age, 3-7, color"; all others if empty
  MissingValues missing = MissingValues::kRefuse;
};

// The meaning of a table beyond its numbers: the texts that stand for numbers, and the means that replace
// missing values. A test table is read with the encoding of the training table.
struct TableEncoding {
  struct Column {
    std::string name;                // "" without a header
    std::vector<std::string> texts;  // the texts, ascending; empty for a column of numbers
    double mean = 0;                 // mean of the numbers; with MissingValues::kMean

    // Returns true if the texts are False and True. They are then one feature, 0 or 1.
    bool is_flag() const;
    // Returns the number of features.
    std::size_t width() const { return texts.empty() || is_flag() ? 1 : texts.size(); }
    bool operator==(const Column&) const = default;
  };
  std::vector<Column> features;
  Column label;
  std::string label_place;  // the label's column for messages: "column 5, 'id', of pets.csv"

  // Returns true if a column has texts. They get their numbers from the whole table.
  bool has_texts() const;
  bool operator==(const TableEncoding&) const = default;
};

}  // namespace gradwire
