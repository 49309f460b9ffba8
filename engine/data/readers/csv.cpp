#include "engine/data/readers/csv.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text_lines.h"
#include "base/value.h"
#include "base/word_list.h"
#include "engine/data/readers/lines.h"
#include "engine/data/readers/table_head.h"

namespace gradwire {
namespace {

constexpr std::size_t kMostTexts = 1000;  // different texts of a column
constexpr std::size_t kMostNumbers = 64;  // different numbers of a column that also has texts

// Thrown by a pass at a value that needs a pass over the whole table before it.
struct NeedsScan {};
// Thrown by a row that lacks a value, if such rows are left out.
struct LeavesOutRow {};

// Finds the number of a text of a column.
class TextNumbers {
 public:
  explicit TextNumbers(const std::vector<std::string>& texts) {
    for (std::uint32_t k = 0; k < texts.size(); ++k) numbers_.emplace_back(texts[k], k);
    std::ranges::sort(numbers_);
  }
  std::optional<std::uint32_t> find(std::string_view text) const {
    const auto found =
        std::ranges::lower_bound(numbers_, text, {}, [](const auto& known) { return known.first; });
    if (found == numbers_.end() || found->first != text) return std::nullopt;
    return found->second;
  }

 private:
  std::vector<std::pair<std::string_view, std::uint32_t>> numbers_;
};

// The values of a column over the whole table.
struct SeenColumn {
  std::size_t numbers = 0, texts = 0;
  std::size_t number_line = 0, text_line = 0;  // first lines with a number and a text
  std::string number, text;                    // and these values
  std::set<std::string, std::less<>> marks;    // texts that are missing values between numbers
  double sum = 0;
  std::set<std::string, std::less<>> different;     // the texts
  std::set<std::string, std::less<>> number_texts;  // the numbers as written; at most kMostNumbers + 1

  void see(std::string_view field, std::size_t line, Delimiter delimiter) {
    if (is_missing_value(field)) return;
    const auto number_here = parse_field_number(field, delimiter);
    if (number_here) {
      if (numbers++ == 0) number_line = line, number = field;
      if (std::isfinite(*number_here)) sum += *number_here;
      if (number_texts.size() <= kMostNumbers && !number_texts.contains(field)) number_texts.emplace(field);
      return;
    }
    if (is_missing_number(field)) {
      if (!marks.contains(field)) marks.emplace(field);
      return;
    }
    if (texts++ == 0) text_line = line, text = field;
    if (different.size() <= kMostTexts && !different.contains(field)) different.emplace(field);
  }

  // Returns true if the numbers of a column with texts are names, as in 2, 3, 4, 5more.
  bool numbers_are_texts() const {
    const bool repeats = texts > different.size() && 10 * texts >= numbers;
    return number_texts.size() <= kMostNumbers && (texts > numbers || repeats);
  }
};

class TableReader {
 public:
  TableReader(const EachLine& each_line, const std::string& file, const KeepRow& keep,
              const TableOptions& options, const TableEncoding* given)
      : each_line_(each_line), file_(file), keep_(keep), options_(options), head_(each_line, file, options) {
    if (head_.width() == 0) throw no_samples();
    warnings_ = head_.warnings();
    if (reads_label()) encoding_.label.name = head_.name(head_.label());
    for (const std::size_t i : head_.features()) encoding_.features.emplace_back().name = head_.name(i);
    if (given != nullptr) take_encoding(*given);
    take_options();
    if (reads_label())
      encoding_.label_place =
          head_.described(head_.label()) + (head_.name(head_.label()).empty() ? "" : ",") + " of " + file_;
  }

  Dataset read() {
    if (is_encoded_) return build();
    if (options_.missing != MissingValues::kMean && !head_.has_texts()) {
      try {
        return build();
      } catch (const NeedsScan&) {
      }
    }
    scan();
    return build();
  }

 private:
  struct Feature {
    std::size_t field;     // in a line
    std::uint32_t column;  // the first one in the dataset
    bool has_texts, is_flag;
    const TableEncoding::Column* encoding;
    TextNumbers numbers;
  };

  bool reads_label() const { return options_.to_predict == 0; }

  // Takes the texts that the experiment names.
  void take_options() {
    if (!options_.labels.empty()) {
      encoding_.label.texts = options_.labels;
      encoding_.label.is_given = true;
    }
    for (const auto& [name, texts] : options_.categories) {
      const std::size_t i = head_.find_or_throw(name, "problem.categories");
      const auto at = std::ranges::find(head_.features(), i);
      if (at == head_.features().end())
        throw DataError("problem.categories: " + head_.described(i) + ", of " + file_ +
                        " is not a feature; leave it out" +
                        (i == head_.label() ? ": problem.labels has the texts of the label" : ""));
      TableEncoding::Column& column =
          encoding_.features[static_cast<std::size_t>(at - head_.features().begin())];
      column.texts = texts;
      column.is_given = true;
    }
  }

  void take_encoding(const TableEncoding& given) {
    if (given.features.size() != encoding_.features.size())
      throw DataError(file_ + ": has " + std::to_string(encoding_.features.size()) +
                      " columns for features, but the training data have " +
                      std::to_string(given.features.size()));
    for (std::size_t k = 0; k < given.features.size(); ++k) {
      const std::string &here = encoding_.features[k].name, &there = given.features[k].name;
      if (!here.empty() && !there.empty() && here != there)
        throw DataError(file_ + ": " + head_.described(head_.features()[k]) + ", is " +
                        gradwire::quoted(there) +
                        " in the training data; both need the same columns in the same order");
    }
    encoding_ = given;
    is_encoded_ = true;
  }

  // ---- the pass over the whole table ----

  void scan() {
    std::vector<SeenColumn> columns(head_.width());
    const std::size_t label = head_.label();
    each_row([&](const Fields& fields, std::size_t line) {
      if (options_.missing == MissingValues::kDrop) {
        const auto is_missing = [&](std::size_t i) { return is_missing_value(fields[i]); };
        if ((reads_label() && is_missing(label)) || std::ranges::any_of(head_.features(), is_missing)) return;
      }
      if (reads_label()) columns[label].see(fields[label], line, head_.delimiter());
      for (const std::size_t i : head_.features()) columns[i].see(fields[i], line, head_.delimiter());
    });
    std::vector<std::string> one_hot, meaning;
    for (std::size_t k = 0; k < head_.features().size(); ++k) {
      const std::size_t i = head_.features()[k];
      encode(columns[i], i, encoding_.features[k]);
      const TableEncoding::Column& column = encoding_.features[k];
      if (!column.texts.empty() && !column.is_given && !column.is_flag())
        one_hot.push_back(head_.described(i) + " (" + std::to_string(column.width()) + " features)");
    }
    if (!one_hot.empty()) warn("text becomes one feature for each different value: " + some_of(one_hot));
    if (reads_label()) encode(columns[label], label, encoding_.label);
    const auto& labels = encoding_.label.texts;
    for (std::size_t k = 0; k < labels.size() && !encoding_.label.is_given; ++k) {
      const int number = static_cast<int>(number_of_label(k, labels.size()));
      meaning.push_back(labels[k] + " -> " + (labels.size() == 2 && k == 1 ? "+1" : std::to_string(number)));
    }
    if (!meaning.empty())
      warn("labels: " + some_of(meaning) +
           (labels.size() == 2
                ? "; problem.labels = " + toml_literal(labels[1] + ", " + labels[0]) + " changes that"
                : ""));
    is_encoded_ = true;
  }

  void encode(const SeenColumn& seen, std::size_t i, TableEncoding::Column& to) const {
    if (to.is_given) return;
    if (seen.numbers > 0) to.mean = seen.sum / static_cast<double>(seen.numbers);
    if (options_.missing == MissingValues::kMean && !std::isfinite(to.mean))
      throw DataError(file_ + ": " + head_.described(i) +
                      ": the sum of its numbers is not finite; scale the column");
    if (seen.texts == 0) {
      if (seen.numbers == 0 && seen.marks.size() < 2 && options_.missing == MissingValues::kMean)
        throw DataError(file_ + ": " + head_.described(i) +
                        ", has no values; leave it out with problem.columns");
      if (seen.numbers > 0 || seen.marks.size() < 2) return;
    }
    const std::string remedy = std::string("; correct the column") +
                               (i == head_.label() ? "" : ", or leave it out with problem.columns");
    const auto refuse = [&](const std::string& what) {
      throw error(seen.text_line, head_.described(i) + ": " + gradwire::quoted(seen.text) + what);
    };
    if (has_thousands_commas(seen.text)) refuse(" has commas between thousands; remove them");
    if (is_several_numbers(seen.text))
      refuse(" holds several numbers with blanks between them; write the same separator between all fields");
    if (seen.numbers > 0 && !seen.numbers_are_texts())
      refuse(" is a text, but " + gradwire::quoted(seen.number) + " in line " +
             std::to_string(seen.number_line) + " is a number" + remedy);
    to.texts.assign(seen.different.begin(), seen.different.end());
    for (const auto* more : {&seen.number_texts, &seen.marks})
      to.texts.insert(to.texts.end(), more->begin(), more->end());
    std::ranges::sort(to.texts);
    if (to.texts.size() > kMostTexts)
      throw DataError(file_ + ": " + head_.described(i) + ", has more than " + std::to_string(kMostTexts) +
                      " different texts; " +
                      (i == head_.label() ? "name another label with problem.label"
                                          : "leave it out with problem.columns"));
  }

  // ---- the dataset ----

  Dataset build() {
    Dataset data;
    std::vector<Feature> features;
    std::uint32_t columns = 0;
    for (std::size_t k = 0; k < encoding_.features.size(); ++k) {
      const TableEncoding::Column& column = encoding_.features[k];
      features.push_back({head_.features()[k], columns, !column.texts.empty(), column.is_flag(), &column,
                          TextNumbers(column.texts)});
      columns += static_cast<std::uint32_t>(column.width());
    }
    std::size_t left_out = 0;
    const std::size_t label = head_.label();
    const TextNumbers labels(encoding_.label.texts);
    filled_.clear();
    const auto add_row = [&](const Fields& fields, std::size_t line) {
      try {
        for (const Feature& feature : features) add_feature(feature, fields[feature.field], line, data);
        data.label.push_back(reads_label() ? label_of(labels, fields[label], line) : 0);
      } catch (const LeavesOutRow&) {
        ++left_out;
        forget_features(data);
        return;
      }
      if (keep_ && !keep_(data.rows() - 1)) forget_features(data);
      data.row_start.push_back(data.column.size());
    };
    // In a table without texts, a pass over all lines has checked the lines that are not kept, or the process
    // that keeps them does. Lines may be left out only if values are missing.
    const bool has_numbers =
        is_encoded_ && !encoding_.has_texts() && options_.missing != MissingValues::kDrop;
    const auto is_simple = [&](std::string_view line) {
      return has_numbers ? line.find('"') == std::string_view::npos
                         : has_only_numbers(line, head_.delimiter(), head_.width());
    };
    const auto add_label = [&](std::string_view line, std::size_t number) {
      if (!keep_ || keep_(data.rows()) || !is_simple(line)) return false;
      data.label.push_back(label_of(labels, trim(field_of(line, label)), number));
      data.row_start.push_back(data.column.size());
      return true;
    };
    each_row(add_row, add_label);
    if (data.rows() == 0 && left_out > 0)
      throw DataError(file_ +
                      ": problem.missing = \"drop\" leaves out all lines, because each lacks a value; "
                      "name the columns of the features in problem.columns");
    if (data.rows() == 0) throw no_samples();
    data.columns = columns;
    data.warnings = warnings_;
    if (left_out > 0)
      data.warnings.push_back(file_ + ": problem.missing = \"drop\" leaves out " + std::to_string(left_out) +
                              " of " + std::to_string(left_out + data.rows()) + " lines");
    if (!filled_.empty()) {
      std::vector<std::string> filled;
      for (const Feature& feature : features)
        if (const auto at = filled_.find(feature.field); at != filled_.end())
          filled.push_back(std::to_string(at->second) + " of " + head_.described(feature.field) +
                           (feature.has_texts ? " (a text: 0 in all its features)" : ""));
      data.warnings.push_back(file_ +
                              ": problem.missing = \"mean\" fills in missing values: " + some_of(filled));
    }
    data.encoding = std::make_shared<const TableEncoding>(encoding_);
    return data;
  }

  // Removes the features that were added after the last row.
  static void forget_features(Dataset& data) {
    data.column.resize(data.row_start.back());
    data.value.resize(data.row_start.back());
  }

  // Returns a field of a line without quotes.
  std::string_view field_of(std::string_view line, std::size_t at) const {
    const char separator = head_.delimiter().separator;
    if (at + 1 == head_.width()) return line.substr(line.rfind(separator) + 1);
    for (; at > 0; --at) line.remove_prefix(line.find(separator) + 1);
    return line.substr(0, line.find(separator));
  }

  double label_of(const TextNumbers& numbers, std::string_view field, std::size_t line) {
    const auto& texts = encoding_.label.texts;
    if (texts.empty()) return number_of(field, head_.label(), line, encoding_.label);
    if (const auto number = numbers.find(field)) return number_of_label(*number, texts.size());
    if (is_missing_value(field)) return missing(field, head_.label(), line, encoding_.label);
    throw error(
        line,
        head_.described(head_.label()) + ": the label " + gradwire::quoted(field) + " is not in " +
            (encoding_.label.is_given ? "problem.labels, which has " : "the training data, which have ") +
            some_of(texts));
  }

  double number_of(std::string_view field, std::size_t i, std::size_t line,
                   const TableEncoding::Column& column) {
    const auto number = head_.delimiter().has_decimal_commas ? parse_field_number(field, head_.delimiter())
                                                             : parse_number(field);
    return number && std::isfinite(*number) ? *number : odd_number(field, i, line, column);
  }

  void add_feature(const Feature& feature, std::string_view field, std::size_t line, Dataset& data) {
    std::uint32_t at = feature.column;
    double value = 1;
    if (!feature.has_texts) {
      value = number_of(field, feature.field, line, *feature.encoding);
    } else {
      const auto index = feature.numbers.find(field);
      if (!index && is_missing_value(field)) {
        missing(field, feature.field, line, *feature.encoding);
        return;
      }
      if (!index && feature.encoding->is_given)
        throw error(line, head_.described(feature.field) + ": " + gradwire::quoted(field) +
                              " is not in problem.categories, which has " + some_of(feature.encoding->texts));
      if (!index) return;
      if (feature.is_flag)
        value = *index;
      else
        at += *index;
    }
    if (value == 0) return;
    data.column.push_back(at);
    data.value.push_back(value);
  }

  // Returns the number that a missing value stands for, or throws.
  double missing(std::string_view field, std::size_t i, std::size_t line,
                 const TableEncoding::Column& column) {
    const bool is_label = i == head_.label();
    if (options_.missing == MissingValues::kMean && !is_label) {
      ++filled_[i];
      return column.mean;
    }
    if (!reads_label())
      throw error(line, head_.described(i) + ": no value (" + gradwire::quoted(field) +
                            "), so this line cannot be predicted; add the value, or remove the line");
    if (options_.missing == MissingValues::kDrop) throw LeavesOutRow();
    throw error(line, head_.described(i) + ": no value (" + gradwire::quoted(field) +
                          "); problem.missing = \"drop\" leaves out such lines" +
                          (is_label ? "" : ", and \"mean\" uses the mean of the column"));
  }

  // Returns the number of a field that is not a finite number, or throws.
  double odd_number(std::string_view field, std::size_t i, std::size_t line,
                    const TableEncoding::Column& column) {
    if (is_missing_value(field)) return missing(field, i, line, column);
    const auto number = parse_field_number(field, head_.delimiter());
    if (number && std::isfinite(*number)) return *number;
    const bool is_number = number.has_value();
    if (!is_encoded_ && !is_number) throw NeedsScan();
    if (is_missing_number(field)) return missing(field, i, line, column);
    throw error(line, head_.described(i) + ": " + gradwire::quoted(field) +
                          (is_number ? " is not finite; remove or replace it"
                                     : " is not a number, as the training data have here"));
  }

  // ---- lines ----

  // Calls row(fields, line number) for each sample, but first skip(line, number), which may take the line.
  template <class Row, class Skip>
  void each_row(const Row& row, const Skip& skip) const {
    Fields fields;
    bool is_header = head_.has_header();
    each_line_([&](std::string_view line, std::size_t number) {
      if (number == head_.separator_line()) return true;
      if (std::exchange(is_header, false) || skip(line, number)) return true;
      head_.split(line, number, fields);
      row(fields, number);
      return true;
    });
  }
  template <class Row>
  void each_row(const Row& row) const {
    each_row(row, [](std::string_view, std::size_t) { return false; });
  }

  void warn(const std::string& what) { warnings_.push_back(file_ + ": " + what); }
  DataError error(std::size_t line, const std::string& what) const { return error_at(file_, line, what); }
  DataError no_samples() const {
    return DataError(file_ + ": holds no samples; each line is FEATURE,...,FEATURE,LABEL");
  }

  const EachLine& each_line_;
  const std::string& file_;
  const KeepRow& keep_;
  const TableOptions& options_;
  const TableHead head_;
  TableEncoding encoding_;
  bool is_encoded_ = false;                    // the encoding is of the whole table
  std::map<std::size_t, std::size_t> filled_;  // values that means replace, by column
  std::vector<std::string> warnings_;
};

void visit(Lines&& lines, const std::function<bool(std::string_view line, std::size_t number)>& see) {
  while (const auto line = lines.next())
    if (!trim(*line).empty() && !see(*line, lines.number())) return;
}

}  // namespace

Dataset parse_csv(std::string_view text, const std::string& file, const TableOptions& options,
                  const TableEncoding* given) {
  const EachLine each_line = [text](const auto& see) { visit(Lines(text, true), see); };
  return TableReader(each_line, file, {}, options, given).read();
}

TableColumns csv_columns(const std::function<std::unique_ptr<ByteStream>()>& open, const std::string& file,
                         const TableOptions& options) {
  const EachLine each_line = [&open](const auto& see) {
    const std::unique_ptr<ByteStream> stream = open();
    visit(Lines(*stream, true), see);
  };
  const TableHead head(each_line, file, options);
  TableColumns columns;
  for (std::size_t i = 0; i < head.width(); ++i) columns.names.push_back(head.name(i));
  columns.label = head.label();
  columns.features = head.features();
  each_line([&](std::string_view, std::size_t number) {
    columns.samples += number != head.separator_line() ? 1 : 0;
    return true;
  });
  columns.samples -= head.has_header() && columns.samples > 0 ? 1 : 0;
  return columns;
}

Dataset parse_csv(const std::function<std::unique_ptr<ByteStream>()>& open, const std::string& file,
                  const KeepRow& keep, const TableOptions& options, const TableEncoding* given) {
  const EachLine each_line = [&open](const auto& see) {
    const std::unique_ptr<ByteStream> stream = open();
    visit(Lines(*stream, true), see);
  };
  return TableReader(each_line, file, keep, options, given).read();
}

}  // namespace gradwire
