#include "config/client_latency.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>

#include "base/config_error.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

TEST(ClientLatency, FollowTheWord) {
  EXPECT_EQ(parse_client_latency("").of(1, 7, 3), 1);
  EXPECT_EQ(parse_client_latency("2.5").of(1, 7, 3), 2.5);
  EXPECT_EQ(parse_client_latency("sqrt").of(1, 8, 3), 3);
  EXPECT_EQ(parse_client_latency("linear").of(1, 0, 3), 1);
  EXPECT_EQ(parse_client_latency("0.5*linear").of(1, 9, 3), 5);
  const double drawn = parse_client_latency("pareto:1.5").of(1, 8, 3);
  EXPECT_DOUBLE_EQ(parse_client_latency("2*sqrt*pareto:1.5").of(1, 8, 3), 6 * drawn);
  EXPECT_DOUBLE_EQ(parse_client_latency("pareto:1.5*sqrt").of(1, 8, 3), 3 * drawn);
}

TEST(ClientLatency, HaveTheTailOfAParetoDistributionWithMeanOne) {
  const ClientLatency seconds = parse_client_latency("pareto:2.5");
  constexpr int kDraws = 40000;
  double mean = 0;
  std::map<int, double> above;  // for each x, the share of the draws above x
  for (int k = 0; k < kDraws; ++k) {
    const double s = seconds.of(1, 5, k);
    EXPECT_GE(s, 0.6);  // 1 - 1/alpha
    mean += s / kDraws;
    for (const int x : {1, 2, 4}) above[x] += s > x ? 1.0 / kDraws : 0;
  }
  EXPECT_NEAR(mean, 1, 0.02);
  for (const auto& [x, share] : above) EXPECT_NEAR(share, std::pow(0.6 / x, 2.5), 0.005) << x;
}

TEST(ClientLatency, FailWithTheGivenProbability) {
  const ClientLatency seconds = parse_client_latency("3*sqrt+fail:0.25");
  int failed = 0;
  for (int k = 0; k < 20000; ++k) {
    const double s = seconds.of(1, 3, k);
    EXPECT_TRUE(s == 6 || s == std::numeric_limits<double>::infinity()) << s;
    failed += s != 6;
  }
  EXPECT_NEAR(failed / 20000.0, 0.25, 0.012);
}

TEST(ClientLatency, FollowATraceOneRequestAfterTheOther) {
  const TemporaryFolder folder;
  folder.write("speeds.txt", "1 2.5\t4\r\n 0.5,inf\n7\n");
  ClientLatency seconds = parse_client_latency("2*file:speeds.txt");
  read_traces(seconds, folder.path(), 2);
  EXPECT_EQ(seconds.of(1, 0, 9, 0), 2);
  EXPECT_EQ(seconds.of(1, 0, 9, 2), 8);
  EXPECT_EQ(seconds.of(1, 0, 9, 4), 5);
  EXPECT_EQ(seconds.of(1, 1, 9, 0), 1);
  EXPECT_EQ(seconds.of(1, 1, 9, 1), std::numeric_limits<double>::infinity());
}

TEST(ClientLatency, ReadATraceWithAByteOrderMarkAndCarriageReturnsAlone) {
  const TemporaryFolder folder;
  folder.write("speeds.txt",
               "\xef\xbb\xbf"
               "1 2\r3\r\n4\r");
  ClientLatency seconds = parse_client_latency("file:speeds.txt");
  read_traces(seconds, folder.path(), 3);
  EXPECT_EQ(seconds.traces, (std::vector<std::vector<double>>{{1, 2}, {3}, {4}}));
}

TEST(ClientLatency, RejectATraceAndNameItsWrongLine) {
  const TemporaryFolder folder;
  const auto complaint = [&](const std::string& text, std::uint32_t n) -> std::string {
    folder.write("speeds.txt", text);
    ClientLatency seconds = parse_client_latency("file:speeds.txt+fail:0.5");
    EXPECT_EQ(seconds.failure, 0.5);
    try {
      read_traces(seconds, folder.path(), n);
    } catch (const ConfigError& error) {
      const std::string what = error.what();
      return what.substr(what.find("speeds.txt"));
    }
    return "";
  };
  const std::string numbers =
      "the line of a client holds numbers of seconds above 0, or inf, with spaces between them";
  EXPECT_EQ(complaint("1\n2\n", 2), "");
  EXPECT_EQ(complaint("1\n2 fast\n", 2), "speeds.txt:2: " + numbers);
  EXPECT_EQ(complaint("1 -1\n2\n", 2), "speeds.txt:1: " + numbers);
  EXPECT_EQ(complaint("0\n2\n", 2), "speeds.txt:1: " + numbers);
  for (const char* text : {"1,5\n2\n", "3 1,5\n2\n", "1,5,2\r2"})
    EXPECT_EQ(complaint(text, 2),
              "speeds.txt:1: a comma right between two digits; write 1.5 for one number, and 1 5 for two");
  EXPECT_EQ(complaint("1, 5\n1.5,2.5\n", 2), "");
  EXPECT_EQ(complaint("nan\n2\n", 2), "speeds.txt:1: " + numbers);
  EXPECT_EQ(complaint(std::string("1\0\n2\n", 5), 2), "speeds.txt:1: " + numbers);
  EXPECT_EQ(complaint("1\n\n2\n", 3), "speeds.txt:2: the line of a client needs at least one number");
  EXPECT_EQ(complaint("1\n2\n", 3), "speeds.txt: has 2 lines, but there are 3 clients; give each a line");
  EXPECT_EQ(complaint("", 1), "speeds.txt: has 0 lines, but there are 1 clients; give each a line");
  ClientLatency missing = parse_client_latency("file:nowhere.txt");
  EXPECT_THROW(read_traces(missing, folder.path(), 1), ConfigError);
}

TEST(ClientLatency, AreDrawnForEachRequestWithMeanOne) {
  const ClientLatency seconds = parse_client_latency("3*lognormal:0.5");
  EXPECT_EQ(seconds.of(1, 2, 3), seconds.of(1, 2, 3));
  EXPECT_NE(seconds.of(1, 2, 3), seconds.of(1, 2, 4));
  EXPECT_NE(seconds.of(1, 2, 3), seconds.of(1, 3, 3));
  EXPECT_NE(seconds.of(1, 2, 3), seconds.of(2, 2, 3));
  double mean = 0, square = 0;
  constexpr int kDraws = 20000;
  for (int k = 0; k < kDraws; ++k) {
    const double s = seconds.of(1, 5, k) / 3;
    EXPECT_GT(s, 0);
    mean += s / kDraws;
    square += s * s / kDraws;
  }
  EXPECT_NEAR(mean, 1, 0.02);
  EXPECT_NEAR(square, std::exp(0.25), 0.06);  // E s^2 = e^(sigma^2)
}

TEST(ClientLatency, RejectInvalidSpeeds) {
  const auto complaint = [](const char* text) -> std::string {
    try {
      parse_client_latency(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  for (const char* text : {"0",
                           "-1",
                           "nan",
                           "inf",
                           "1e13",
                           "1 s",
                           "sqroot",
                           "lognormal",
                           "lognormal:",
                           "lognormal:-1",
                           "lognormal:11",
                           "x*sqrt",
                           "2*",
                           "2*3",
                           "0*linear",
                           "pareto",
                           "pareto:1",
                           "pareto:-2",
                           "sqrt*linear",
                           "pareto:2*lognormal:1",
                           "sqrt*2",
                           "sqrt*",
                           "*sqrt",
                           "sqrt*sqrt",
                           "file:",
                           "2*file:",
                           "sqrt*file:x",
                           "sqrt+fail:",
                           "sqrt+fail:1",
                           "sqrt+fail:-0.1",
                           "sqrt+fail:0",
                           "+fail:0.5",
                           "sqrt+fail:0.1+fail:0.1"})
    EXPECT_NE(complaint(text), "") << text;
  EXPECT_NE(complaint("sqroot").find("did you mean 'sqrt'"), std::string::npos) << complaint("sqroot");
}

}  // namespace
}  // namespace gradwire
