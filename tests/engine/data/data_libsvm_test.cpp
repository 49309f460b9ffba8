#include <chrono>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "engine/data/readers/bytes.h"
#include "engine/data/readers/libsvm.h"
#include "engine/data/readers/source.h"
#include "tests/support/data_files.h"
#include "tests/support/test_data.h"

namespace gradwire {
namespace {

using Columns = std::vector<std::uint32_t>;
using Values = std::vector<double>;

std::string libsvm_error(const std::string& text, std::size_t dim = 0) {
  return data_error([&] { parse_libsvm(text, "train.txt", dim); });
}

// The reference: iostreams and strtod, correct only for well-formed input.
Dataset naive_libsvm(const std::string& text) {
  Dataset data;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    data.label.push_back(std::strtod(word.c_str(), nullptr));
    while (words >> word) {
      const std::size_t colon = word.find(':');
      const unsigned long index = std::stoul(word.substr(0, colon));
      const double value = std::strtod(word.c_str() + colon + 1, nullptr);
      data.columns = std::max<std::size_t>(data.columns, index);
      if (value == 0) continue;
      data.column.push_back(static_cast<std::uint32_t>(index - 1));
      data.value.push_back(value);
    }
    data.row_start.push_back(data.column.size());
  }
  return data;
}

TEST(Libsvm, ReadsLabelsIndicesAndValues) {
  const Dataset data = parse_libsvm("+1 1:0.5 3:-2e-3\n-1\n2.5 2:+7\n", "f");
  EXPECT_EQ(data.label, (Values{1, -1, 2.5}));
  EXPECT_EQ(data.row_start, (std::vector<std::uint64_t>{0, 2, 2, 3}));
  EXPECT_EQ(data.column, (Columns{0, 2, 1}));
  EXPECT_EQ(data.value, (Values{0.5, -2e-3, 7}));
  EXPECT_EQ(data.columns, 3u);
}

TEST(Libsvm, SkipsQueryNumbersWithOneWarning) {
  const Dataset plain = parse_libsvm("2 1:1 3:4\n0.5 2:2\n1\n", "f");
  const Dataset data = parse_libsvm("2 qid:1 1:1 3:4 # doc 7\n0.5 qid:12 2:2\n1 qid:2\n", "f");
  EXPECT_EQ(data.label, plain.label);
  EXPECT_EQ(data.column, plain.column);
  EXPECT_EQ(data.value, plain.value);
  EXPECT_EQ(data.row_start, plain.row_start);
  EXPECT_EQ(data.columns, plain.columns);
  EXPECT_EQ(data.warnings,
            std::vector<std::string>{"f: qid: is skipped; the samples are not grouped by query"});
  EXPECT_TRUE(plain.warnings.empty());
  EXPECT_EQ(libsvm_error("1 qid:x 1:1\n"), "train.txt:1: expected INDEX:VALUE, found 'qid:x'");
  EXPECT_EQ(libsvm_error("1 1:1 qid:3\n"), "train.txt:1: expected INDEX:VALUE, found 'qid:3'");
}

TEST(Libsvm, AcceptsCrlfTrailingBlanksCommentsAndNoFinalNewline) {
  const Dataset plain = parse_libsvm("1 1:1 2:3\n-1 2:2\n", "f");
  for (const char* text :
       {"1 1:1 2:3\r\n-1 2:2\r\n", "1 1:1 2:3   \n-1 2:2\t\n", "1 1:1 2:3\n-1 2:2",
        "1 1:1 2:3\n-1 2:2\n\n  \n\r\n", "# head\n1 1:1 2:3 # why\n-1 2:2#\n", " 1\t1:1  2:3\n-1 \t 2:2\n"}) {
    const Dataset data = parse_libsvm(text, "f");
    EXPECT_EQ(data.label, plain.label) << text;
    EXPECT_EQ(data.column, plain.column) << text;
    EXPECT_EQ(data.value, plain.value) << text;
    EXPECT_EQ(data.row_start, plain.row_start) << text;
  }
}

TEST(Libsvm, RoundsNumbersCorrectly) {
  // Halfway cases and the ends of the range, for which naive digit-by-digit readers are one ulp off.
  const char* const numbers[] = {"0.1",
                                 "9007199254740993",
                                 "2.2250738585072011e-308",
                                 "4.9406564584124654e-324",
                                 "1.7976931348623157e308",
                                 "8.5",
                                 "123456789012345678901234567890",
                                 "0.500000000000000166533453693773481063544750213623046875",
                                 "6.02214076e+23"};
  for (const char* number : numbers) {
    const Dataset data = parse_libsvm(std::string("1 1:") + number, "f");
    EXPECT_EQ(data.value.at(0), std::strtod(number, nullptr)) << number;
  }
}

TEST(Libsvm, ReadsUnderflowAsZeroAndRefusesOverflow) {
  for (const char* tiny : {"1e-400", "-1e-400", "123e-99999999999999999999", "0.001e-330"}) {
    const Dataset data = parse_libsvm(std::string("1 1:") + tiny + " 2:5", "f");
    EXPECT_EQ(data.value, Values{5}) << tiny;
  }
  const std::string tiny_without_exponent = "0." + std::string(400, '0') + "1";
  EXPECT_EQ(parse_libsvm("1 1:" + tiny_without_exponent, "f").value.size(), 0u);
  EXPECT_EQ(libsvm_error("1 1:1e400"), "train.txt:1: the value '1e400' is not finite; remove or replace it");
  EXPECT_EQ(libsvm_error("-1e400"), "train.txt:1: the label '-1e400' is not finite; remove or replace it");
  EXPECT_NE(libsvm_error("1 1:0.1e999999999999999999999"), "no error");
  EXPECT_NE(libsvm_error("1 1:" + std::string(400, '9')), "no error");
}

TEST(Libsvm, DoesNotStoreZerosButCountsTheirIndex) {
  const Dataset data = parse_libsvm("1 1:0 2:4 9:0.0\n1 3:-0\n", "f");
  EXPECT_EQ(data.value, Values{4});
  EXPECT_EQ(data.columns, 9u);
}

TEST(Libsvm, DimSetsTheColumnsAndBoundsTheIndex) {
  EXPECT_EQ(parse_libsvm("1 2:1\n", "f", 7).columns, 7u);
  EXPECT_EQ(parse_libsvm("1 7:1\n", "f", 7).columns, 7u);
  EXPECT_EQ(libsvm_error("1 1:1\n1 8:1\n", 7),
            "train.txt:2: index 8 is above the given dim 7; raise dim or check the file");
}

TEST(Libsvm, RefusesIndexZeroWithFileAndLine) {
  EXPECT_EQ(libsvm_error("1 1:1\n\n-1 0:2\n"),
            "train.txt:3: index 0 in '0:2'; indices start at 1: add 1 to each");
}

TEST(Libsvm, RefusesUnsortedAndRepeatedIndices) {
  EXPECT_EQ(libsvm_error("1 3:1 2:1\n"), "train.txt:1: index 2 after 3; sort the indices of each line");
  EXPECT_EQ(libsvm_error("1 1:1\n1 3:0 3:1\n"), "train.txt:2: index 3 is repeated; keep one of the two");
}

TEST(Libsvm, RefusesAnIndexAboveTheLimitAndAllocatesNothingForALargeOne) {
  const Dataset data = parse_libsvm("1 4294967294:1\n", "f", 4294967294);
  EXPECT_EQ(data.columns, 4294967294u);
  EXPECT_EQ(data.column, Columns{4294967293u});
  EXPECT_LT(data.column.capacity() + data.value.capacity() + data.row_start.capacity(), 100u);
  for (const char* index : {"4294967295", "4294967296", "18446744073709551616", "99999999999999999999999"}) {
    const std::string error = libsvm_error(std::string("1 ") + index + ":1\n");
    EXPECT_NE(error.find("train.txt:1: index in"), std::string::npos) << error;
  }
}

TEST(Libsvm, RefusesALineThatEndsInsideAPair) {
  EXPECT_EQ(libsvm_error("1 2:1 3:"), "train.txt:1: the pair '3:' has no value; complete or remove it");
  EXPECT_EQ(libsvm_error("1 2:1 3\n"), "train.txt:1: the pair '3' has no ':VALUE'; complete or remove it");
  EXPECT_EQ(libsvm_error("1 2:1 3: 4:5\n"), "train.txt:1: the pair '3:' has no value; complete or remove it");
}

TEST(Libsvm, AcceptsABlankBetweenColonAndValue) {
  const Dataset data = parse_libsvm("1 2: .50 3:\t4 5:6\n", "f");
  EXPECT_EQ(data.column, (Columns{1, 2, 4}));
  EXPECT_EQ(data.value, (Values{0.5, 4, 6}));
  EXPECT_EQ(libsvm_error("1 2: x\n"), "train.txt:1: the value 'x' is not a number; correct it");
}

TEST(Libsvm, RefusesAnIndexThatIsLargeForTheNumberOfValues) {
  const std::string error =
      "train.txt:2: index 2147483648 would make a model of 2147483648 coordinates, but the file has 4 values "
      "in "
      "all; correct the index, or, if it is right, set problem.dim = 2147483648: models are dense, so that "
      "each "
      "vector of the run then takes 16384 MiB";
  const std::string text = "1 1:1 2:1\n-1 2:1 2147483648:1\n1\n";
  EXPECT_EQ(libsvm_error(text), error);
  EXPECT_EQ(parse_libsvm(text, "f", 2147483648).columns, 2147483648u);
  const TemporaryFolder folder;
  folder.write("train.txt", text);
  for (const bool is_kept : {false, true})
    EXPECT_EQ(data_error([&] {
                read_source("libsvm:train.txt", folder.path(), {}, 0, [&](std::size_t) { return is_kept; });
              }),
              folder.path().string() + "/" + error);
  // The limit itself is accepted.
  EXPECT_EQ(parse_libsvm("1 1048576:1\n", "f").columns, 1048576u);
  EXPECT_NE(libsvm_error("1 1048577:1\n"), "no error");
  std::string values;
  for (int k = 1; k <= 16384; ++k) values += "1 " + std::to_string(64 * k + 63) + ":1\n";
  EXPECT_EQ(parse_libsvm(values, "f").columns, 1048639u);
}

TEST(Libsvm, RefusesNanInfinityAndText) {
  for (const char* line :
       {"1 1:nan",   "1 1:inf", "1 1:-inf", "1 1:infinity", "1 1:nan(1)",  "nan 1:1", "inf",
        "cat 1:1",   "1:1",     "1 1:1x",   "1 1:0x10",     "1 1:1e",      "1 1:1:1", "1 a:1",
        "1 -1:1",    "1 +1:1",  "1 1.5:1",  "1 :1",         "1 :",         "1 1:+-1", "1 1:++1",
        "1 1:1,2:1", "1 1:--1", "+",        "1,5 1:1",      "1 1:\xff\xfe"}) {
    const std::string error = libsvm_error(std::string("1 1:1\n") + line);
    EXPECT_EQ(error.rfind("train.txt:2: ", 0), 0u) << line << " gave " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(Libsvm, KeepsErrorsToOneShortPrintableLine) {
  const std::string error = libsvm_error("1 1:" + std::string(100000, '\x01') + "\n");
  EXPECT_LT(error.size(), 200u);
  for (const char c : error) EXPECT_TRUE(c >= 0x20 && c < 0x7f);
}

TEST(Libsvm, RefusesAnEmptyFile) {
  for (const char* text : {"", "\n", " \r\n\n", "# only a comment\n"}) {
    EXPECT_EQ(libsvm_error(text), "train.txt: holds no samples; each line is LABEL INDEX:VALUE ...");
  }
}

TEST(Libsvm, ReadsOrRefusesEveryTruncation) {
  const std::string text = "+1 1:0.5 3:-2e-3 # c\r\n-1 10:1e5\n";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const std::string error = libsvm_error(text.substr(0, size));
    EXPECT_TRUE(error == "no error" || error.starts_with("train.txt:")) << error;
  }
}

TEST(Libsvm, AgreesWithTheNaiveReaderOnPublicFiles) {
  for (const char* name : {"a1a", "australian", "phishing"}) {
    const auto path = test_data(name);
    if (!path) GTEST_SKIP() << "no " << name << ": set GRADWIRE_TEST_DATA";
    const std::string text = read_file_bytes(*path);
    const Dataset data = parse_libsvm(text, name);
    const Dataset twin = naive_libsvm(text);
    EXPECT_EQ(data.columns, twin.columns);
    EXPECT_EQ(data.label, twin.label);
    EXPECT_EQ(data.row_start, twin.row_start);
    EXPECT_EQ(data.column, twin.column);
    EXPECT_EQ(data.value, twin.value);
  }
}

TEST(Libsvm, ReadsPublicFilesWithTheirKnownShapes) {
  struct Known {
    const char* name;
    std::size_t rows, columns;
    Values labels;
  };
  for (const Known& known : {Known{"a9a", 32561, 123, {-1, 1}}, Known{"w8a", 49749, 300, {-1, 1}},
                             Known{"mushrooms", 8124, 112, {1, 2}}, Known{"phishing", 11055, 68, {0, 1}}}) {
    const auto path = test_data(known.name);
    if (!path) GTEST_SKIP() << "no " << known.name << ": set GRADWIRE_TEST_DATA";
    const Dataset data = read_source("libsvm:" + path->string(), "", {});
    EXPECT_EQ(data.rows(), known.rows) << known.name;
    EXPECT_EQ(data.columns, known.columns) << known.name;
    EXPECT_EQ(distinct_labels(data), known.labels) << known.name;
  }
}

TEST(Libsvm, SlowReadsTwoMegabytesInFarLessThanASecond) {
  const auto path = test_data("a9a");
  if (!path) GTEST_SKIP() << "no a9a: set GRADWIRE_TEST_DATA";
  const auto start = std::chrono::steady_clock::now();
  read_source("libsvm:" + path->string(), "", {});
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  RecordProperty("milliseconds", std::to_string(elapsed.count()));
  // Optimised builds take about 15 ms. The bound leaves room for sanitizers and busy machines.
  EXPECT_LT(elapsed.count(), 2000);
}

}  // namespace
}  // namespace gradwire
