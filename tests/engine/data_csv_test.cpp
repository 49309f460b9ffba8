#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "engine/data/csv.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

using Columns = std::vector<std::uint32_t>;
using Values = std::vector<double>;

std::string csv_error(const std::string& text) {
  return data_error([&] { parse_csv(text, "table.csv"); });
}

TEST(Csv, TakesTheLastColumnAsLabel) {
  const Dataset data = parse_csv("0.5,0,2,1\n0,0,-3,7\n", "f");
  EXPECT_EQ(data.columns, 3u);
  EXPECT_EQ(data.label, (Values{1, 7}));
  EXPECT_EQ(data.row_start, (std::vector<std::uint64_t>{0, 2, 3}));
  EXPECT_EQ(data.column, (Columns{0, 2, 2}));
  EXPECT_EQ(data.value, (Values{0.5, 2, -3}));
}

TEST(Csv, SkipsAHeaderAByteOrderMarkAndBlankLines) {
  for (const char* text : {"a,b,label\n1,2,3\n", "\xef\xbb\xbfx,y,z\r\n1,2,3\r\n",
                           "\xef\xbb\xbf"
                           "1,2,3\n",
                           "1, 2 ,\t3", "a,b,label\n1,2,3\n\n \n"}) {
    const Dataset data = parse_csv(text, "f");
    EXPECT_EQ(data.label, Values{3}) << text;
    EXPECT_EQ(data.value, (Values{1, 2})) << text;
  }
}

TEST(Csv, AFirstLineWithANumberInItIsNoHeader) {
  EXPECT_EQ(csv_error("a,2,label\n1,2,3\n"),
            "table.csv:1: field 1, 'a', is not a number; columns must be numeric");
}

TEST(Csv, RefusesTextAndNumbersThatAreNotFinite) {
  EXPECT_EQ(csv_error("1,2\n1,x\n"), "table.csv:2: field 2, 'x', is not a number; columns must be numeric");
  EXPECT_EQ(csv_error("1,2\n1,\n"), "table.csv:2: field 2, '', is not a number; columns must be numeric");
  EXPECT_EQ(csv_error("h,l\n1,2\nnan,1\n"),
            "table.csv:3: field 1, 'nan', is not finite; remove or replace it");
  EXPECT_NE(csv_error("1,inf\n"), "no error");
  EXPECT_NE(csv_error("1e999,1\n"), "no error");
  EXPECT_NE(csv_error("1;2\n3;4\n"), "no error");
}

TEST(Csv, RefusesUnequalNumbersOfFields) {
  EXPECT_EQ(csv_error("1,2,3\n1,2,3\n1,2\n"),
            "table.csv:3: 2 fields where the first line has 3; make them equal");
  EXPECT_EQ(csv_error("a,b\n1,2,3\n"), "table.csv:2: 3 fields where the first line has 2; make them equal");
  EXPECT_EQ(csv_error("1\n"), "table.csv:1: one field; expected features and, last, a label");
}

TEST(Csv, RefusesAFileWithoutSamples) {
  for (const char* text : {"", "\n", "a,b\n"}) {
    EXPECT_EQ(csv_error(text), "table.csv: holds no samples; each line is FEATURE,...,FEATURE,LABEL");
  }
}

}  // namespace
}  // namespace gradwire
