// Tables of samples (engine/data/readers/csv.h): how to read them, and what their texts stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gradwire {

// A missing value is an error, or leaves out its line, or stands for the mean of its column.
enum class MissingValues : std::uint8_t { kRefuse, kDrop, kMean };

// The texts of a column, in the order of their numbers.
struct ColumnTexts {
  std::string column;  // its name, or its number from 1
  std::vector<std::string> texts;
  bool operator==(const ColumnTexts&) const = default;
};

struct TableOptions {
  // The column of the label: its name, or its number from 1. If empty, the column that a header names label,
  // class, target or y, else the last one.
  std::string label = {};
  std::string columns = {};  // columns of the features, as in "age, 3-7, color"; all others if empty
  MissingValues missing = MissingValues::kRefuse;
  // The texts of the label and of columns of text, as the experiment gives them. A column that is not here
  // gets its texts from the whole table.
  std::vector<std::string> labels = {};
  std::vector<ColumnTexts> categories = {};
  // The number of feature columns if the lines are to be predicted: their label is not read and may be
  // absent. 0 if they are not.
  std::size_t to_predict = 0;
};

// The meaning of a table beyond its numbers: the texts that stand for numbers, and the means that replace
// missing values. A test table is read with the encoding of the training table.
struct TableEncoding {
  struct Column {
    std::string name;                // "" without a header
    std::vector<std::string> texts;  // the texts in the order of their numbers; empty for a column of numbers
    double mean = 0;                 // mean of the numbers; with MissingValues::kMean
    bool is_given = false;           // true if the experiment names the texts

    // Returns true if the texts are False and True. They are then one feature, 0 or 1.
    bool is_flag() const;
    // Returns the number of features.
    std::size_t width() const { return texts.empty() || is_flag() ? 1 : texts.size(); }
    bool operator==(const Column&) const = default;
  };
  std::vector<Column> features;
  Column label;
  std::string label_place;  // the label's column for messages: "column 5, 'id', of pets.csv"

  // Returns the names of the features, as in "age" and "color=red". Empty if a column has no name.
  std::vector<std::string> feature_names() const;
  // Returns true if a column has texts.
  bool has_texts() const;
  // Returns true if a column has texts that got their numbers from the whole table.
  bool has_own_texts() const;
  bool operator==(const TableEncoding&) const = default;
};

// Returns the number of a label's text. Two texts are -1 and 1, as logistic regression needs them; more are
// numbered from 0.
double number_of_label(std::size_t index, std::size_t texts);
// Returns the text of a label, or the number if the label has no texts.
std::string label_text(const TableEncoding* encoding, double number);

}  // namespace gradwire
