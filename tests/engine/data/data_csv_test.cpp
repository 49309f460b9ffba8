#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "engine/data/readers/csv.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

using Columns = std::vector<std::uint32_t>;
using Values = std::vector<double>;

std::string csv_error(const std::string& text) {
  return data_error([&] { parse_csv(text, "table.csv"); });
}

TEST(Csv, UsesTheLastColumnAsLabel) {
  const Dataset data = parse_csv("0.5,0,2,1\n0,0,-3,7\n", "f");
  EXPECT_EQ(data.columns, 3u);
  EXPECT_EQ(data.label, (Values{1, 7}));
  EXPECT_EQ(data.row_start, (std::vector<std::uint64_t>{0, 2, 3}));
  EXPECT_EQ(data.column, (Columns{0, 2, 2}));
  EXPECT_EQ(data.value, (Values{0.5, 2, -3}));
}

TEST(Csv, SkipsAHeaderBlanksQuotesAndBlankLines) {
  for (const char* text : {"a,b,label\n1,2,3\n", "u,v,w\r\n1,2,3\r\n", "u,v,w\r1,2,3\r", "1, 2 ,\t3",
                           "a,b,label\n1,2,3\n\n \n", "\"a, b\",\"c\"\"d\",\"y\"\n\"1\", \" 2\" ,\"3\"\n"}) {
    const Dataset data = parse_csv(text, "f");
    EXPECT_EQ(data.label, Values{3}) << text;
    EXPECT_EQ(data.value, (Values{1, 2})) << text;
  }
}

TEST(Csv, RefusesAFirstLineThatIsNeitherHeaderNorNumbers) {
  const std::string leave_out = ", or leave it out with problem.columns",
                    drop = "problem.missing = \"drop\" leaves out such lines",
                    mean = ", and \"mean\" uses the mean of the column";
  EXPECT_EQ(
      csv_error("a,2.5,label\n1,2,3\n"),
      "table.csv:1: column 1: 'a' is a text, but '1' in line 2 is a number; correct the column" + leave_out);
  EXPECT_EQ(csv_error("3,1,x\n1,2,3\n"),
            "table.csv:1: column 3: 'x' is a text, but '3' in line 2 is a number; correct the column");
  EXPECT_EQ(csv_error("?,?,?\n1,2,3\n"), "table.csv:1: column 1: no value ('?'); " + drop + mean);
  EXPECT_EQ(csv_error("NA,,null\n1,2,3\n"), "table.csv:1: column 1: no value ('NA'); " + drop + mean);
  EXPECT_EQ(csv_error("0,1,?\n1,2,3\n"), "table.csv:1: column 3: no value ('?'); " + drop);
  EXPECT_EQ(
      csv_error("\"1\n"),
      "table.csv:1: a quote is not closed at the end of its field; correct the field: line breaks in quotes "
      "are not read");
}

TEST(Csv, TreatsColumnNumbersNextToANameAsHeader) {
  for (const char* header : {"0,1,label", "1,2,species", "3,7,Label"}) {
    const Dataset data = parse_csv(std::string(header) + "\n1,2,3\n", "f");
    EXPECT_EQ(data.label, Values{3}) << header;
    EXPECT_EQ(data.value, (Values{1, 2})) << header;
  }
}

TEST(Csv, WarnsAboutAFirstLineThatCountsUp) {
  const Dataset data = parse_csv("0,1,2\n4,5,6\n", "f.csv");
  EXPECT_EQ(data.label, (Values{2, 6}));
  ASSERT_EQ(data.warnings.size(), 1u);
  EXPECT_EQ(data.warnings[0].find("f.csv:1: the first line counts up from 0"), 0u) << data.warnings[0];
  EXPECT_TRUE(parse_csv("0,1\n4,5\n", "f.csv").warnings.empty());
}

TEST(Csv, UsesTheLabelColumnThatTheHeaderNames) {
  for (const char* name : {"label", "CLASS", "Target", "y"}) {
    const Dataset data = parse_csv(std::string(name) + ",p,q\n7,0,2\n8,3,0\n", "f.csv");
    EXPECT_EQ(data.columns, 2u);
    EXPECT_EQ(data.label, (Values{7, 8}));
    EXPECT_EQ(data.column, (Columns{1, 0}));
    EXPECT_EQ(data.value, (Values{2, 3}));
    EXPECT_EQ(data.warnings, std::vector<std::string>{"f.csv: the label is column 1, '" + std::string(name) +
                                                      "', as the header says"});
  }
  EXPECT_EQ(
      parse_csv("p,q,quality\n1,2,3\n", "f.csv").warnings,
      std::vector<std::string>{"f.csv: the label is the last one, column 3, 'quality': no column of the "
                               "header is named label, class, target or y; problem.label names another one"});
  const Dataset both = parse_csv("x,y,label\n1,2,3\n", "f.csv");
  EXPECT_EQ(both.label, Values{3});
  EXPECT_EQ(both.warnings,
            std::vector<std::string>{"f.csv: the label is column 3, 'label', though the header "
                                     "names column 2, 'y' as well"});
  EXPECT_TRUE(parse_csv("p,q,label\n1,2,3\n", "f.csv").warnings.empty());
}

TEST(Csv, LeavesOutAFirstColumnWithoutAName) {
  for (const char* header : {",a,label", "\"\",\"a\",\"label\"", "Unnamed: 0,a,label", ",0,label", ",0,1"}) {
    const Dataset data = parse_csv(std::string(header) + "\n0,1,2\n", "table.csv");
    EXPECT_EQ(data.columns, 1u) << header;
    EXPECT_EQ(data.value, Values{1}) << header;
    ASSERT_FALSE(data.warnings.empty()) << header;
    EXPECT_NE(data.warnings.back().find("the first column has no name and counts or names the lines"),
              std::string::npos)
        << data.warnings.back();
  }
}

TEST(Csv, RefusesAFirstColumnWithoutANameThatMayBeAFeature) {
  for (const char* text : {",a,label\n0.5,1,2\n", ",a,label\n7,1,2\n7,3,4\n", ",a,label\nx,1,2\nx,3,4\n"})
    EXPECT_EQ(
        csv_error(text),
        "table.csv:1: the first column has no name, like the row numbers that pandas and R write; remove the "
        "column (pandas: index=False), name it, or name the features in problem.columns")
        << text;
}

TEST(Csv, NamesBlanksBetweenFields) {
  EXPECT_EQ(
      csv_error("1 2\n3 4\n"),
      "table.csv:1: one field; expected features and a label; its fields seem to be separated by blanks: "
      "save it with commas between fields");
  EXPECT_EQ(csv_error("1, 2\n3\n").find("separated"), std::string::npos);
  EXPECT_EQ(csv_error("18 8\tford\n15 4\tfiat\n"),
            "table.csv:1: column 1: '18 8' holds several numbers with blanks between them; write the same "
            "separator between all fields");
}

TEST(Csv, RefusesTextAndNumbersThatAreNotFinite) {
  EXPECT_EQ(csv_error("1,2\n1,x\n"),
            "table.csv:2: column 2: 'x' is a text, but '2' in line 1 is a number; correct the column");
  EXPECT_EQ(csv_error("1,2\n1,\n"),
            "table.csv:2: column 2: no value (''); problem.missing = \"drop\" leaves out such lines");
  EXPECT_EQ(
      csv_error("h,l\n1,2\nnan,1\n"),
      "table.csv:3: column 1, 'h': no value ('nan'); problem.missing = \"drop\" leaves out such lines, and "
      "\"mean\" uses the mean of the column");
  EXPECT_EQ(csv_error("1,inf\n"), "table.csv:1: column 2: 'inf' is not finite; remove or replace it");
  EXPECT_EQ(csv_error("1e999,1\n"), "table.csv:1: column 1: '1e999' is not finite; remove or replace it");
}

TEST(Csv, RefusesUnequalNumbersOfFields) {
  EXPECT_EQ(csv_error("1,2,3\n1,2,3\n1,2\n"),
            "table.csv:3: 2 fields, but the first line has 3; all lines need the same number");
  EXPECT_EQ(csv_error("a,b\n1,2,3\n"),
            "table.csv:2: 3 fields, but the first line has 2; all lines need the same number: R leaves out "
            "the name of the row names; write with row.names = FALSE");
  EXPECT_EQ(csv_error("a,b\n1,2\n1,2,3\n"),
            "table.csv:3: 3 fields, but the first line has 2; all lines need the same number");
  EXPECT_EQ(csv_error("1\n"), "table.csv:1: one field; expected features and a label");
}

TEST(Csv, RefusesAFileWithoutSamples) {
  for (const char* text : {"", "\n", "a,b\n"}) {
    EXPECT_EQ(csv_error(text), "table.csv: holds no samples; each line is FEATURE,...,FEATURE,LABEL");
  }
}

}  // namespace
}  // namespace gradwire
