// Benchmarks at tiny sizes. Each one must run and print a figure. The value of the figure is not checked.
#include "benchmarks/bench.h"

#include <gtest/gtest.h>
#include <sstream>

#include "benchmarks/harness.h"

namespace gradwire {
namespace {

BenchOptions small_options(std::ostream& out) {
  BenchOptions options;
  options.small = true;
  options.repeats = 2;
  options.out = &out;
#ifdef GRADWIRE_BIN_DIR
  options.programs = GRADWIRE_BIN_DIR;
#endif
  return options;
}

class EachBenchmark : public ::testing::TestWithParam<BenchHelp> {};

TEST_P(EachBenchmark, RunsAtATinySizeAndReportsAFigure) {
  std::ostringstream out;
  const std::string name = GetParam().name;
  ::testing::internal::CaptureStderr();
  const int code = run_bench(std::vector{name}, small_options(out));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(code, 0);
  EXPECT_NE(out.str().find("\n" + name), std::string::npos) << out.str();
  EXPECT_EQ(out.str().find("MISSED"), std::string::npos) << out.str();
  EXPECT_EQ(out.str().find("skipped"), std::string::npos) << out.str();
}

INSTANTIATE_TEST_SUITE_P(All, EachBenchmark, ::testing::ValuesIn(bench_help()), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (c == '/') c = '_';
  return name;
});

TEST(Bench, RejectsUnknownNamesAndSuggestsSimilarOnes) {
  std::ostringstream out;
  ::testing::internal::CaptureStderr();
  const int code = run_bench(std::vector<std::string>{"rouns"}, small_options(out));
  EXPECT_EQ(code, 2);
  EXPECT_NE(
      ::testing::internal::GetCapturedStderr().find("unknown benchmark 'rouns'; did you mean 'rounds'?"),
      std::string::npos);
  EXPECT_EQ(out.str(), "");
}

TEST(Bench, WritesOneJsonObject) {
  std::ostringstream out;
  BenchOptions options = small_options(out);
  options.json = true;
  ASSERT_EQ(run_bench(std::vector<std::string>{"wire/codec"}, options), 0);
  const std::string text = out.str();
  EXPECT_EQ(text.find('{'), 0u);
  EXPECT_NE(text.find("\"name\": \"wire/codec dense 1 MB encode\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"versus\": \"memcpy\""), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("}\n")) << text;
}

// Returns the printed row of a benchmark with the value `figure`, compared with the value `other` of another
// program. The target is 2.
std::string judged(double figure, double other, bench::Target::Of of) {
  std::ostringstream out;
  const BenchOptions options;
  bench::Bench bench(options, out);
  bench::Row row;
  row.name = "x";
  row.unit = "us";
  row.value.add(figure);
  row.versus = bench::Versus{"y", {}};
  row.versus->value.add(other);
  row.target = {of, 2};
  bench.row(row);
  return out.str();
}

TEST(Bench, JudgesTheMedianOrItsRatio) {
  using Of = bench::Target::Of;
  EXPECT_NE(judged(1.9, 0.5, Of::kValue).find(": met"), std::string::npos);
  EXPECT_NE(judged(2.1, 5, Of::kValue).find(": MISSED"), std::string::npos);
  EXPECT_NE(judged(1.9, 0.5, Of::kRatio).find(": MISSED"), std::string::npos);
  EXPECT_NE(judged(2.1, 5, Of::kRatio).find(": met"), std::string::npos);
}

TEST(Bench, ComparesFiguresWithThePeakOfTheCore) {
  std::ostringstream out;
  BenchOptions options;
  bench::Bench report(options, out);
  bench::Series taken, least;
  taken.add(10), taken.add(20), taken.add(30);
  least.add(8), least.add(9), least.add(9);
  bench::Row row;
  row.name = "some";
  row.value = taken;
  row.unit = "us";
  row.floor = {least, 0.4};
  report.row(row);
  EXPECT_NE(out.str().find("80.0 % / 45.0 % of the peak, >= 40.0 %: met"), std::string::npos) << out.str();
  row.floor->share_at_least = 0.5;
  report.row(row);
  EXPECT_NE(out.str().find(">= 50.0 %: MISSED"), std::string::npos) << out.str();
}

TEST(Bench, ComputesMinimumAndMedianOfSeries) {
  bench::Series series;
  for (const double v : {5.0, 1.0, 2.0}) series.add(v);
  EXPECT_EQ(series.min(), 1);
  EXPECT_EQ(series.median(), 2);
  series.add(4);
  EXPECT_EQ(series.median(), 3);
  EXPECT_EQ(series.times(2).median(), 6);
  EXPECT_EQ(series.minus(series).median(), 0);
}

TEST(Bench, InterleavesBodiesAndDiscardsTheWarmUp) {
  int calls = 0;
  const auto series = bench::interleave(3, {[&] { return static_cast<double>(calls++); },
                                            [&] {
                                              ++calls;
                                              return -1.0;
                                            }});
  EXPECT_EQ(calls, 8);
  EXPECT_EQ(series[0].min(), 2);
  EXPECT_EQ(series[1].median(), -1);
}

}  // namespace
}  // namespace gradwire
