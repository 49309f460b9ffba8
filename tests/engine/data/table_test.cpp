// Tables as people have them: separators, texts, missing values, chosen columns.
#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/readers/csv.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

using Values = std::vector<double>;

// Returns the samples as dense rows.
std::vector<Values> rows_of(const Dataset& data) {
  std::vector<Values> rows;
  for (std::size_t r = 0; r < data.rows(); ++r) {
    rows.emplace_back(data.columns);
    for (std::size_t k = 0; k < data.row_columns(r).size(); ++k)
      rows[r][data.row_columns(r)[k]] = data.row_values(r)[k];
  }
  return rows;
}
// The bytes of a text, a few at once.
class TextStream final : public ByteStream {
 public:
  explicit TextStream(std::string_view text) : rest_(text) {}
  std::size_t read(std::span<char> to) override {
    const std::size_t got = rest_.copy(to.data(), std::min<std::size_t>(to.size(), 3));
    rest_.remove_prefix(got);
    return got;
  }

 private:
  std::string_view rest_;
};

std::string table_error(const std::string& text, const TableOptions& options = {}) {
  return data_error([&] { parse_csv(text, "t.csv", options); });
}

constexpr const char* kPets =
    "name,animal,age,weight\n"
    "Rex,dog,3,12.5\n"
    "Tom,cat,2,4.1\n"
    "Ace,dog,,9\n";

TEST(Table, ReadsTextLabelsAndSaysTheirNumbers) {
  const Dataset data = parse_csv(kPets, "t.csv", {.label = "animal", .columns = "weight"});
  EXPECT_EQ(data.label, (Values{1, -1, 1}));
  EXPECT_EQ(rows_of(data), (std::vector<Values>{{12.5}, {4.1}, {9}}));
  EXPECT_EQ(data.warnings,
            std::vector<std::string>{"t.csv: labels: cat -> -1, dog -> +1; problem.labels = \"dog, cat\" "
                                     "changes that"});
  const Dataset iris = parse_csv("5,setosa\n7,versicolor\n6,virginica\n5,setosa\n", "t.csv");
  EXPECT_EQ(iris.label, (Values{0, 1, 2, 0}));
  EXPECT_EQ(iris.warnings,
            std::vector<std::string>{"t.csv: labels: setosa -> 0, versicolor -> 1, virginica -> 2"});
}

TEST(Table, ReadsTextColumnsAsOneFeatureForEachText) {
  const Dataset data = parse_csv("color,size,y\nred,1,0\nblue,2,1\nred,3,1\n", "t.csv");
  EXPECT_EQ(rows_of(data), (std::vector<Values>{{0, 1, 1}, {1, 0, 2}, {0, 1, 3}}));
  EXPECT_EQ(data.warnings, std::vector<std::string>{"t.csv: text becomes one feature for each different "
                                                    "value: column 1, 'color' (2 features)"});
}

TEST(Table, FindsTheSeparatorAndDecimalCommas) {
  const std::vector<Values> rows = {{1.75, 70.5}, {1001.5, 55}};
  for (const char* text :
       {"1.75,70.5,3\n1001.5,55,4\n", "1,75;70,5;3\n1.001,5;55;4\n", "1.75\t70.5\t3\n1001.5\t55\t4\n",
        "1,75\t70,5\t3\n1001,5\t55\t4\n", "1.75|70.5|3\n1001.5|55|4\n",
        "\"1.75\",\"70.5\",3\n1001.5,55,\"4\"\n", "a;b;y\n1,75;70,5;3\n1.001,5;55;4\n"}) {
    const Dataset data = parse_csv(text, "t.csv");
    EXPECT_EQ(rows_of(data), rows) << text;
    EXPECT_EQ(data.label, (Values{3, 4})) << text;
  }
}

TEST(Table, TakesTheSeparatorThatExcelNames) {
  // Without its first line, commas would divide this table.
  EXPECT_EQ(rows_of(parse_csv("sep=;\n1,5;2\n2,5;3\n", "t.csv")), (std::vector<Values>{{1.5}, {2.5}}));
  const Dataset named =
      parse_csv("\n\"sep=\t\"\na\tb\ty\n1\t2\t3\n4\tx\t5\n4\tz\t5\n", "t.csv", {.columns = "1"});
  EXPECT_EQ(rows_of(named), (std::vector<Values>{{1}, {4}, {4}}));
  EXPECT_EQ(
      table_error("sep=,\n1;5,2\n2,5\n"),
      "t.csv:2: column 1: '1;5' is a text, but '2' in line 3 is a number; correct the column, or leave it "
      "out with problem.columns");
  EXPECT_EQ(table_error("sep=;\n1;2\n3;x;4\n"),
            "t.csv:3: 3 fields, but the first line has 2; all lines need the same number");
  EXPECT_EQ(table_error("sep=;\n"), "t.csv: holds no samples; each line is FEATURE,...,FEATURE,LABEL");
  const std::string text = "sep=;\nx;y\n1;2\n3;4\n";
  const auto open = [&] { return std::make_unique<TextStream>(text); };
  const Dataset some = parse_csv(open, "t.csv", [](std::size_t row) { return row == 1; });
  EXPECT_EQ(some.label, (Values{2, 4}));
  EXPECT_EQ(rows_of(some), (std::vector<Values>{{0}, {3}}));
}

TEST(Table, FindsTheLabelsOfRowsThatAreNotKept) {
  const TableOptions mean{.missing = MissingValues::kMean};
  for (const std::string text : {"1,2,3\n4,5,6\n7,8,9\n", "1, 2 , 3 \n4,5,\"6\"\n7,,9\n",
                                 "1;2,5;3\n4;5;6\n7;8;9\n", "y,a,b\n3,1,2\n6,NA,5\n \"9\",7,8\n"}) {
    const auto open = [&] { return std::make_unique<TextStream>(text); };
    const Dataset all = parse_csv(open, "t.csv", {}, mean);
    EXPECT_EQ(all.label, (Values{3, 6, 9}));
    for (const TableEncoding* given : {static_cast<const TableEncoding*>(nullptr), all.encoding.get()}) {
      const Dataset some = parse_csv(
          open, "t.csv", [](std::size_t row) { return row == 1; }, mean, given);
      EXPECT_EQ(some.label, all.label) << text;
      EXPECT_EQ(rows_of(some)[1], rows_of(all)[1]) << text;
      EXPECT_EQ(some.row_values(0).size() + some.row_values(2).size(), 0u) << text;
    }
  }
}

TEST(Table, ReadsFalseAndTrueAsOneFeature) {
  const Dataset data = parse_csv("a,b,y\nTrue,1,False\nFalse,2,True\nTrue,3,True\n", "t.csv");
  EXPECT_EQ(rows_of(data), (std::vector<Values>{{1, 1}, {0, 2}, {1, 3}}));
  EXPECT_EQ(data.label, (Values{-1, 1, 1}));
  EXPECT_EQ(data.warnings,
            std::vector<std::string>{"t.csv: labels: False -> -1, True -> +1; problem.labels = "
                                     "\"True, False\" changes that"});
  const TableOptions mean{.missing = MissingValues::kMean};
  EXPECT_EQ(rows_of(parse_csv("a,y\nTRUE,1\nFALSE,2\n,3\n", "t.csv", mean)),
            (std::vector<Values>{{1}, {0}, {0}}));
  const Dataset test = parse_csv("a,b,y\nFalse,1,True\nmaybe,2,True\n", "t.csv", {}, data.encoding.get());
  EXPECT_EQ(rows_of(test), (std::vector<Values>{{0, 1}, {0, 2}}));
}

TEST(Table, RefusesDropsOrAveragesMissingValues) {
  const TableOptions refuse{.label = "animal", .columns = "3-4"};
  EXPECT_EQ(table_error(kPets, refuse),
            "t.csv:4: column 3, 'age': no value (''); problem.missing = \"drop\" leaves out such lines, and "
            "\"mean\" uses the mean of the column");
  TableOptions drop = refuse, mean = refuse;
  drop.missing = MissingValues::kDrop;
  mean.missing = MissingValues::kMean;
  EXPECT_EQ(rows_of(parse_csv(kPets, "t.csv", drop)), (std::vector<Values>{{3, 12.5}, {2, 4.1}}));
  EXPECT_EQ(rows_of(parse_csv(kPets, "t.csv", mean)), (std::vector<Values>{{3, 12.5}, {2, 4.1}, {2.5, 9}}));
  EXPECT_EQ(table_error("x\ty\n1\t\n2\t3\n", {.missing = MissingValues::kMean}),
            "t.csv:2: column 2, 'y': no value (''); problem.missing = \"drop\" leaves out such lines");
}

TEST(Table, SaysWhereMeansReplaceMissingValues) {
  const TableOptions mean{.missing = MissingValues::kMean};
  EXPECT_EQ(
      parse_csv("a,b,c,y\n1,2,u,0\n,3,v,1\n,NA,,1\n", "t.csv", mean).warnings.back(),
      "t.csv: problem.missing = \"mean\" fills in missing values: 2 of column 1, 'a', 1 of column 2, 'b', 1 "
      "of column 3, 'c' (a text: 0 in all its features)");
}

TEST(Table, NumbersTextsInTheGivenOrder) {
  const TableOptions options{.labels = {"yes", "no"},
                             .categories = {{"size", {"S", "M", "L"}}, {"3", {"2", "1"}}}};
  const Dataset data = parse_csv("age,size,doors,y\n1,L,1,no\n2,S,2,yes\n", "t.csv", options);
  EXPECT_EQ(data.label, (Values{1, -1}));
  EXPECT_EQ(rows_of(data), (std::vector<Values>{{1, 0, 0, 1, 0, 1}, {2, 1, 0, 0, 1, 0}}));
  EXPECT_TRUE(data.warnings.empty());
  EXPECT_FALSE(data.encoding->has_own_texts());
  EXPECT_EQ(data.encoding->feature_names(),
            (std::vector<std::string>{"age", "size=S", "size=M", "size=L", "doors=2", "doors=1"}));
  EXPECT_EQ(label_text(data.encoding.get(), -1), "yes");
  // A table that lacks texts has the same features.
  EXPECT_EQ(rows_of(parse_csv("age,size,doors,y\n2,S,2,yes\n", "t.csv", options))[0], rows_of(data)[1]);
  TableOptions mean = options;
  mean.missing = MissingValues::kMean;
  EXPECT_EQ(rows_of(parse_csv("age,size,doors,y\n,,1,no\n2,L,,yes\n", "t.csv", mean)),
            (std::vector<Values>{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 1, 0, 0}}));
  EXPECT_EQ(table_error("age,size,doors,y\n1,L,1,no\n2,XL,2,yes\n", options),
            "t.csv:3: column 2, 'size': 'XL' is not in problem.categories, which has S, M, L");
  EXPECT_EQ(table_error("age,size,doors,y\n1,L,1,no\n2,L,2,maybe\n", options),
            "t.csv:3: column 4, 'y': the label 'maybe' is not in problem.labels, which has yes, no");
  EXPECT_EQ(table_error("age,doors,y\n1,1,no\n", {.categories = {{"size", {"S", "M"}}}}),
            "problem.categories: t.csv has no column 'size'; it has 3 columns: age, doors, y");
  EXPECT_EQ(table_error("age,size,y\n1,S,no\n", {.categories = {{"y", {"no", "yes"}}}}),
            "problem.categories: column 3, 'y', of t.csv is not a feature; leave it out: problem.labels has "
            "the texts of the label");
}

TEST(Table, ReadsRowsToPredictWithAndWithoutTheirLabel) {
  const TableOptions options{.label = "animal", .to_predict = 2};
  const std::vector<Values> rows = {{3, 12}, {2, 4}};
  for (const char* text : {"age,weight\n3,12\n2,4\n", "animal,age,weight\ndog,3,12\n,2,4\n",
                           "age,weight,animal\n3,12,dog\n2,4,bird\n", ",age,weight\n0,3,12\n1,2,4\n"})
    EXPECT_EQ(rows_of(parse_csv(text, "t.csv", options)), rows) << text;
  for (const char* text : {"3,12\n2,4\n", "3,12,1\n2,4,0\n", "a,b\n3,12\n2,4\n", "a,b,c\n3,12,0\n2,4,0\n",
                           "Class,a,b\n0,3,12\n0,2,4\n"})
    EXPECT_EQ(rows_of(parse_csv(text, "t.csv", {.to_predict = 2})), rows) << text;
  EXPECT_EQ(rows_of(parse_csv("7,3\n8,2\n", "t.csv", {.label = "1", .to_predict = 1})),
            (std::vector<Values>{{3}, {2}}));
  EXPECT_EQ(rows_of(parse_csv("3\n2\n", "t.csv", {.to_predict = 1})), (std::vector<Values>{{3}, {2}}));
  EXPECT_EQ(table_error("age,weight\n3,\n", options),
            "t.csv:2: column 2, 'weight': no value (''), so this line cannot be predicted; add the value, or "
            "remove the line");
}

TEST(Table, RefusesAMeanThatIsNotFinite) {
  const TableOptions mean{.missing = MissingValues::kMean};
  EXPECT_EQ(table_error("1e308,2\n1e308,3\n,4\n", mean),
            "t.csv: column 1: the sum of its numbers is not finite; scale the column");
  EXPECT_EQ(table_error("a,y\n1,2\n,3\ninf,4\n", mean),
            "t.csv:4: column 1, 'a': 'inf' is not finite; remove or replace it");
}

TEST(Table, SaysHowManyLinesItDrops) {
  const TableOptions drop{.missing = MissingValues::kDrop};
  EXPECT_EQ(parse_csv("1,2\n,3\n4,5\n", "t.csv", drop).warnings,
            std::vector<std::string>{"t.csv: problem.missing = \"drop\" leaves out 1 of 3 lines"});
  EXPECT_EQ(
      table_error("a,y\n,3\n5,\n", drop),
      "t.csv: problem.missing = \"drop\" leaves out all lines, because each lacks a value; name the columns "
      "of the features in problem.columns");
  EXPECT_EQ(table_error("a,b,y\n1,,3\n2,NA,4\n", {.missing = MissingValues::kMean}),
            "t.csv: column 2, 'b', has no values; leave it out with problem.columns");
}

TEST(Table, TakesMarksOfMissingNumbersAsTextsBetweenTexts) {
  EXPECT_EQ(rows_of(parse_csv("c,y\n-,0\nhttp,1\nnone,0\n", "t.csv")),
            (std::vector<Values>{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}));
  EXPECT_EQ(rows_of(parse_csv("c,y\n-,0\n2,1\nnone,0\n4,1\n", "t.csv", {.missing = MissingValues::kMean})),
            (std::vector<Values>{{3}, {2}, {3}, {4}}));
}

TEST(Table, TakesNumbersBetweenRepeatedTextsAsTexts) {
  const std::string text = "d,y\n2,0\n3,1\n5more,0\n2,1\n5more,0\n";
  EXPECT_EQ(rows_of(parse_csv(text, "t.csv")),
            (std::vector<Values>{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 0}, {0, 0, 1}}));
  std::string long_text = "d,y\n";  // the texts begin after the lines that are read first
  for (int k = 0; k < 200; ++k) long_text += (k < 100 ? "2," : "5more,") + std::to_string(k % 2) + "\n";
  EXPECT_EQ(parse_csv(long_text, "t.csv").columns, 2u);
}

TEST(Table, ReadsPointsAsThousandsOnlyNextToDecimalCommas) {
  EXPECT_EQ(rows_of(parse_csv("1.234;1\n2.5;2\n", "t.csv")), (std::vector<Values>{{1.234}, {2.5}}));
  EXPECT_EQ(rows_of(parse_csv("1.234;1\n2,5;2\n", "t.csv")), (std::vector<Values>{{1234}, {2.5}}));
  EXPECT_EQ(table_error("a;y\n1,5;1\n2.5;2\n3,5;3\n"),
            "t.csv:3: column 1, 'a': '2.5' is a text, but '1,5' in line 2 is a number; correct the column, "
            "or leave "
            "it out with problem.columns");
}

TEST(Table, ChoosesColumnsByNameAndNumber) {
  const std::string text = "a,b,c,d,y\n1,2,3,4,5\n";
  EXPECT_EQ(rows_of(parse_csv(text, "t.csv", {.columns = "3-4, A"})), (std::vector<Values>{{1, 3, 4}}));
  EXPECT_EQ(parse_csv(text, "t.csv", {.label = "2"}).label, Values{2});
  EXPECT_EQ(table_error(text, {.label = "z"}),
            "problem.label: t.csv has no column 'z'; it has 5 columns: a, b, c, d, y");
  EXPECT_EQ(table_error("1,2\n", {.label = "3"}),
            "problem.label: t.csv has no column '3'; it has 2 columns, without names");
  EXPECT_EQ(table_error(text, {.columns = "2-9"}),
            "problem.columns: '2-9': column 9 is beyond the 5 columns of t.csv");
  EXPECT_EQ(table_error(text, {.columns = "a-c"}), "problem.columns: 'a-c': a range needs numbers: 1-3");
  EXPECT_EQ(table_error(text, {.columns = "a,1"}), "problem.columns = 'a,1': a column is named twice");
  EXPECT_EQ(table_error(text, {.columns = "a,y"}),
            "problem.columns = 'a,y': column 5, 'y' is the label; leave it out, or name another one with "
            "problem.label");
}

TEST(Table, LeavesOutAColumnThatCountsTheLines) {
  for (const char* text : {",a,y\n0,2,3\n1,4,6\n", "Unnamed: 0,a,y\n1,2,3\n2,4,6\n"}) {
    const Dataset data = parse_csv(text, "t.csv");
    EXPECT_EQ(rows_of(data), (std::vector<Values>{{2}, {4}})) << text;
    EXPECT_EQ(data.warnings, std::vector<std::string>{
                                 "t.csv: the first column has no name and counts or names the lines, as "
                                 "pandas and R write it; it is left out"});
  }
}

TEST(Table, RefusesATextInAColumnOfNumbers) {
  EXPECT_EQ(table_error("1,2\n3,x\n4,5\n6,7\n"),
            "t.csv:2: column 2: 'x' is a text, but '2' in line 1 is a number; correct the column");
}

TEST(Table, ReadsTestDataWithTheEncodingOfTheTrainingData) {
  const Dataset train = parse_csv("c,y\nred,dog\nblue,cat\n", "train.csv");
  const Dataset test = parse_csv("c,y\ngreen,dog\nred,dog\n", "test.csv", {}, train.encoding.get());
  EXPECT_EQ(test.label, (Values{1, 1}));
  EXPECT_EQ(rows_of(test), (std::vector<Values>{{0, 0}, {0, 1}})) << "green is not in the training data";
  EXPECT_EQ(data_error([&] { parse_csv("c,y\nred,cow\n", "test.csv", {}, train.encoding.get()); }),
            "test.csv:2: column 2, 'y': the label 'cow' is not in the training data, which have cat, dog");
  EXPECT_EQ(
      data_error([&] { parse_csv("d,y\nred,dog\n", "test.csv", {}, train.encoding.get()); }),
      "test.csv: column 1, 'd', is 'c' in the training data; both need the same columns in the same order");
}

// Returns one byte of a text at a time.
class OneByOne : public ByteStream {
 public:
  explicit OneByOne(std::string_view text) : rest_(text) {}
  std::size_t read(std::span<char> to) override {
    if (rest_.empty()) return 0;
    to[0] = rest_[0];
    rest_.remove_prefix(1);
    return 1;
  }

 private:
  std::string_view rest_;
};

TEST(Table, ReadsAStreamAsItsText) {
  const TableOptions options{.label = "animal", .missing = MissingValues::kDrop};
  const auto open = [] { return std::make_unique<OneByOne>(kPets); };
  const Dataset whole = parse_csv(kPets, "t.csv", options), streamed = parse_csv(open, "t.csv", {}, options);
  EXPECT_EQ(rows_of(streamed), rows_of(whole));
  EXPECT_EQ(streamed.label, whole.label);
  const Dataset second = parse_csv(
      open, "t.csv", [](std::size_t row) { return row == 1; }, options);
  EXPECT_EQ(second.label, whole.label);
  EXPECT_TRUE(second.row_values(0).empty());
  EXPECT_EQ(rows_of(second)[1], rows_of(whole)[1]);
}

TEST(Table, FindsTextsAndMissingValuesInRowsThatAreNotKept) {
  std::string lines;
  for (int r = 0; r < 100; ++r) lines += "1," + std::to_string(r) + ",0\n";
  for (const char* last : {"1,x,1\n", "1,,1\n", "1,2\n", "1,2020-01-01,1\n", "1,E5,1\n", "1,\"2,1\n"}) {
    const std::string text = lines + last;
    const auto open = [&] { return std::make_unique<OneByOne>(text); };
    EXPECT_NE(data_error([&] {
                parse_csv(open, "t.csv", [](std::size_t row) { return row == 5; });
              }).find("t.csv:101: "),
              std::string::npos)
        << last;
  }
}

TEST(Table, LimitsTheTextsOfAColumn) {
  std::string text = "id,y\n";
  for (int k = 0; k < 1001; ++k) text += "n" + std::to_string(k) + ",1\n";
  EXPECT_EQ(table_error(text),
            "t.csv: column 1, 'id', has more than 1000 different texts; leave it out with problem.columns");
}

}  // namespace
}  // namespace gradwire
