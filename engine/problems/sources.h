// The keys of [problem] for sources of samples.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/field.h"
#include "engine/data/dataset.h"
#include "engine/data/normalize.h"
#include "engine/data/table.h"
#include "engine/problems/problem_type.h"

namespace gradwire {

struct SampleSource {
  std::string data;
  std::string test;       // empty if there is no test data
  double test_share = 0;  // held out for accuracy

  void check() const;  // throws ConfigError
};

// Returns a source with its kind: "idx:mnist" for the public data set "mnist", "csv:pets.csv" for a path
// whose ending says its kind. Returns other sources unchanged.
std::string full_source(const std::string& source);

// Throw ConfigError(path) if `source` is not a source of labelled samples, or not text, for kind `kind`.
void check_rows_source(std::string_view kind, const std::string& path, const std::string& source);
void check_text_source(std::string_view kind, const std::string& path, const std::string& source);

inline std::span<const std::string_view> words_of(MissingValues) {
  static constexpr auto words = std::to_array<std::string_view>({"refuse", "drop", "mean"});
  return words;
}

inline std::span<const std::string_view> words_of(Normalize) {
  static constexpr std::array words = {normalize_word(Normalize::kNone), normalize_word(Normalize::kStandard),
                                       normalize_word(Normalize::kMinMax),
                                       normalize_word(Normalize::kUnitRows)};
  return words;
}

// A column of a table: its name, or its number from 1. In an experiment file a number needs no quotes.
struct ColumnName {
  std::string text = {};
};
template <>
struct TextCodec<ColumnName> {
  static bool read(std::string_view text, ColumnName& out) {
    out.text = text;
    return true;
  }
  static std::string write(const ColumnName& column) { return column.text; }
  static constexpr std::string_view expected = "a name or a number";
};

// The texts of the label, as in "no, yes".
struct LabelTexts {
  std::vector<std::string> texts = {};
};
template <>
struct TextCodec<LabelTexts> {
  static bool read(std::string_view text, LabelTexts& out);
  static std::string write(const LabelTexts& labels);
  static constexpr std::string_view expected =
      "a string of two or more different texts with commas between them, as in \"no, yes\"";
};

// The texts of columns, as in "color: red|green; size: S|M|L".
struct CategoryTexts {
  std::vector<ColumnTexts> columns = {};
};
template <>
struct TextCodec<CategoryTexts> {
  static bool read(std::string_view text, CategoryTexts& out);
  static std::string write(const CategoryTexts& categories);
  static constexpr std::string_view expected =
      "a string of columns with their different texts, as in \"color: red|green; size: S|M|L\"";
};

struct RowsData : SampleSource {
  ColumnName label;
  LabelTexts labels;
  std::string columns;
  CategoryTexts categories;
  MissingValues missing = MissingValues::kRefuse;
  Normalize normalize = Normalize::kNone;
  std::uint64_t dim = 0;  // 0 for the largest feature index
  std::uint64_t samples = 1000;
  std::uint32_t classes = 2;
  double noise = 0.1;

  template <class Kind>
  static void fields(auto& self, auto&& visit) {
    const bool drawn = self.data == "synthetic";
    constexpr auto check_source = [](const std::string& path, const std::string& source) {
      check_rows_source(Kind::traits.name, path, source);
    };
    visit("data", self.data,
          "`digits`, `libsvm:PATH`, `csv:PATH`, `npy:X.npy,y.npy`, `npz:PATH`, `idx:DIR`, `synthetic`, or a "
          "public data set such as `mnist` or `a9a`; a path that ends in .csv, .tsv, .svm, .libsvm, .npy or "
          ".npz needs no kind; may be compressed with gzip, bzip2 or xz",
          {.required = ", as in data = \"libsvm:PATH\" or \"digits\"", .quiet = true, .check = check_source});
    visit("test", self.test, "data on which accuracy is measured, spelled like data",
          {.note = "none", .quiet = true, .check = check_source});
    visit("test_share", self.test_share,
          "share of the samples held out for accuracy before the rest is split; they are drawn",
          {.high = 1, .high_open = true});
    const bool is_table = self.data.starts_with("csv:") || self.test.starts_with("csv:");
    const bool may_be_table = is_table || self.data == kGivenSource || self.test == kGivenSource;
    visit("label", self.label, "for `csv`: the column of the label, by its name or its number from 1",
          {.note = "label, class, target or y, else the last",
           .quiet = !is_table,
           .sent_if_set = true,
           .idle_by = idle_if(!may_be_table, "data")});
    visit(
        "labels", self.labels,
        "for `csv`: the texts of the label in the order of their numbers, as in \"no, yes\": two are -1 and "
        "+1, more count from 0",
        {.note = "those of the data, in ascending order",
         .quiet = true,
         .sent_if_set = true,
         .idle_by = idle_if(!may_be_table, "data")});
    visit("columns", self.columns,
          "for `csv`: the columns of the features, as in \"age, 3-7, color\"; the order is that of the file",
          {.note = "all others",
           .quiet = !is_table,
           .sent_if_set = true,
           .idle_by = idle_if(!may_be_table, "data")});
    visit("categories", self.categories,
          "for `csv`: the texts of columns, as in \"color: red|green; size: S|M|L\"; each text is a feature, "
          "in this order",
          {.note = "those of the data, in ascending order",
           .quiet = true,
           .sent_if_set = true,
           .idle_by = idle_if(!may_be_table, "data")});
    visit("missing", self.missing,
          "for `csv`: a missing value is an error (`refuse`), leaves out its line (`drop`), or is the mean "
          "of its column (`mean`)",
          {.quiet = !is_table, .sent_if_set = true, .idle_by = idle_if(!may_be_table, "data")});
    visit(
        "normalize", self.normalize,
        "features of mean 0 and standard deviation 1 (`standard`), features from 0 to 1 (`minmax`), or "
        "samples of Euclidean norm 1 (`unit_rows`); over a network, clients send sums of their features for "
        "the first two",
        {.quiet = true, .sent_if_set = true});
    visit("dim", self.dim, "number of features",
          {.high = kMaxModelDim, .note = "the largest feature index (0)", .quiet = true});
    visit("samples", self.samples, "number of samples of `synthetic`",
          {.low = 1, .high = kMaxU32, .quiet = !drawn, .idle_by = idle_if(!drawn, "data")});
    visit("classes", self.classes, "number of labels of `synthetic`; 0: labels are real numbers",
          {.high = 65536, .quiet = !drawn, .idle_by = idle_if(!drawn, "data")});
    visit("noise", self.noise,
          "for `synthetic`: standard deviation of the noise in real labels, or the chance that a class is "
          "wrong",
          {.quiet = !drawn, .idle_by = idle_if(!drawn, "data")});
  }
  void check() const;  // throws ConfigError

  TableOptions table() const { return {label.text, columns, missing, labels.texts, categories.columns, 0}; }

  // Returns the number of features. Throws DataError if the data has more, or none.
  std::size_t features(const DataSchema& schema) const;
};

// Returns "5: 1, 2, ..." for messages.
std::string count_and_list(const std::vector<double>& labels);
// Return "5: 1, 2, ..., in column 5, 'id', of pets.csv" and what to do if this is not the label.
std::string labels_found(const DataSchema& schema);
std::string other_label(const DataSchema& schema);

struct TextData : SampleSource {
  template <class Kind>
  static void fields(auto& self, auto&& visit) {
    constexpr auto check_source = [](const std::string& path, const std::string& source) {
      check_text_source(Kind::traits.name, path, source);
    };
    visit("data", self.data,
          "`text:PATH` or `shakespeare` (text:tinyshakespeare.txt); may be "
          "compressed with gzip, bzip2 or xz",
          {.required = ", as in data = \"text:PATH\"", .quiet = true, .check = check_source});
    visit("test", self.test, "text on which accuracy is measured, spelled like data",
          {.note = "none", .quiet = true, .check = check_source});
    visit("test_share", self.test_share,
          "share of the text held out for accuracy before the rest is split; gpt: its end; char_mlp: "
          "drawn samples",
          {.high = 1, .high_open = true});
  }
};

}  // namespace gradwire
