#include "report/logger.h"

#include <chrono>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "report/json.h"
#include "report/log_limit.h"
#include "tests/support/eventually.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

constexpr LogRate kRate{.burst = 3, .window_ms = 100, .longest_window_ms = 400, .kinds = 8};

LogLine unauthenticated(int port) { return "10.0.0.9:" + std::to_string(port) + " is disconnected"; }
LogLine of_client(std::uint32_t client) { return LogLine("is disconnected").of_client(client); }

// ---- LogLimit ----

TEST(LogLimit, PrintsTheFirstLinesOfAKindAndSummarizesTheRest) {
  LogLimit limit(kRate);
  for (int k = 0; k < 10; ++k) EXPECT_EQ(limit.take(unauthenticated(k), 5), k < 3) << k;
  EXPECT_EQ(limit.next_sum_ms(), 105u);
  EXPECT_TRUE(limit.sums(104).empty());
  const auto sums = limit.sums(105);
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].text, "... 7 more such lines in 100 ms, the last: 10.0.0.9:9 is disconnected");
  EXPECT_FALSE(limit.next_sum_ms());
}

TEST(LogLimit, PrintsLinesAboutClientsDuringFloods) {
  LogLimit limit(kRate);
  for (int k = 0; k < 1000; ++k) limit.take(unauthenticated(k), 0);
  for (int k = 0; k < 1000; ++k) limit.take(of_client(1), 0);
  EXPECT_TRUE(limit.take(of_client(2), 0));
  EXPECT_TRUE(limit.take("another line", 0));
  EXPECT_FALSE(limit.take(of_client(1), 0));
}

TEST(LogLimit, NeverDropsErrors) {
  LogLimit limit(kRate);
  LogLine error("the disk is full");
  error.level = LogLevel::kError;
  for (int k = 0; k < 100; ++k) EXPECT_TRUE(limit.take(error, 0));
}

TEST(LogLimit, SummarizesLongRepetitionsMoreRarely) {
  LogLimit limit(kRate);
  constexpr std::uint64_t kEnd = 40'000;
  std::uint64_t printed = 0, summed = 0, said = 0;
  for (std::uint64_t ms = 0; ms < kEnd; ++ms) {
    for (const LogLine& sum : limit.sums(ms)) {
      ++printed;
      summed += std::stoul(sum.text.substr(4));
    }
    ++said;
    if (limit.take(unauthenticated(1), ms)) {
      ++printed;
      ++summed;
    }
  }
  for (const LogLine& sum : limit.sums(kEnd, true)) summed += std::stoul(sum.text.substr(4));
  EXPECT_EQ(summed, said) << "every line is printed or counted";
  EXPECT_LT(printed, 3 + 2 + kEnd / 400 + 2);
}

TEST(LogLimit, PrintsLinesAgainAfterAQuietWindow) {
  LogLimit limit(kRate);
  for (int k = 0; k < 10; ++k) limit.take(unauthenticated(k), 0);
  EXPECT_EQ(limit.sums(100).size(), 1u);
  EXPECT_FALSE(limit.take(unauthenticated(1), 101)) << "the flood may continue";
  EXPECT_EQ(limit.sums(300).at(0).text,
            "... 1 more such line in 200 ms, the last: 10.0.0.9:1 is disconnected");
  EXPECT_TRUE(limit.take(unauthenticated(1), 301));
  EXPECT_TRUE(limit.sums(501).empty());
  EXPECT_TRUE(limit.take(unauthenticated(1), 502));
}

TEST(LogLimit, UsesBoundedMemoryForManyKinds) {
  LogLimit limit(kRate);
  std::uint64_t printed = 0;
  for (std::uint32_t client = 0; client < 1000; ++client) printed += limit.take(of_client(client), 0) ? 1 : 0;
  EXPECT_EQ(printed, kRate.kinds + kRate.burst);
  const auto sums = limit.sums(100);
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_NE(sums[0].text.find("989 more such lines"), std::string::npos) << sums[0].text;
}

// ---- Logger ----

template <class Say>
std::vector<std::string> lines_said(const Say& say) {
  ::testing::internal::CaptureStderr();
  say();
  return lines_of(::testing::internal::GetCapturedStderr());
}

TEST(LoggerTest, PrintsTimeAndLevel) {
  const auto lines = lines_said([] {
    Logger logger("program");
    logger.log("listening");
    logger.log(LogLine::warning("a snapshot was not written"));
    EXPECT_EQ(logger.fail("the disk is full", kFailed), 1);
  });
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].substr(24), " info: listening");
  EXPECT_EQ(lines[1].substr(24), " warning: a snapshot was not written");
  EXPECT_EQ(lines[2].substr(24), " error: the disk is full");
  for (const std::string& line : lines) {
    EXPECT_EQ(line.substr(0, 2) + line[10] + line[23], "20TZ") << line;
    EXPECT_EQ(without_time(line), line.substr(line.find(": ") + 2));
  }
}

TEST(LoggerTest, WritesJsonWithLevelClientAndRound) {
  const auto lines = lines_said([] {
    Logger logger("program", LogFormat::kJson);
    logger.log("listening");
    logger.log(LogLine::warning("says \"\xff\n\x1b[2J\"").of_client(3).in_round(12));
    logger.fail("no.toml: no such file", kBadUsage);
  });
  ASSERT_EQ(lines.size(), 3u);
  for (const std::string& line : lines) {
    EXPECT_TRUE(Json::parse(line, nullptr, false).is_object()) << line;
    EXPECT_TRUE(line.starts_with("{\"time\": \"20")) << line;
  }
  EXPECT_TRUE(lines[0].ends_with(R"(Z", "level": "info", "message": "listening"})")) << lines[0];
  EXPECT_TRUE(
      lines[1].ends_with("Z\", \"level\": \"warning\", \"client\": 3, \"round\": 12, \"message\": \"says "
                         "\\\"\xEF\xBF\xBD\\n\\u001b[2J\\\"\"}"))
      << lines[1];
  EXPECT_TRUE(lines[2].ends_with(R"("level": "error", "message": "no.toml: no such file"})")) << lines[2];
}

TEST(LoggerTest, EscapesTextOfPeers) {
  const auto lines = lines_said([] {
    Logger logger("program");
    logger.log("client 'a\n2026-01-01T00:00:00.000Z info: b\x1b[2J\x7f\xc2\x9b\xc3\xa9\xff'");
  });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(without_time(lines[0]),
            "client 'a\\u000a2026-01-01T00:00:00.000Z info: b\\u001b[2J\\u007f\\u009b\xc3\xa9\\xff'");
}

TEST(LoggerTest, EscapesControlCharactersInEveryOutput) {
  const std::string text =
                        "'a\xc2\x9b"
                        "2J\xe2\x80\xae\xe2\x81\xa6z'",
                    escaped = "'a\\u009b2J\\u202e\\u2066z'";
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    const auto lines = lines_said([&] {
      Logger logger("program", format, {.burst = 1, .window_ms = 1'000'000});
      for (int k = 0; k < 2; ++k) logger.log(text);  // the second line is in the summary
      logger.complain(text);
      logger.fail(text, kFailed);
      logger.fail(text, kBadUsage);
    });
    ASSERT_EQ(lines.size(), 5u);
    for (const std::string& line : lines) {
      EXPECT_NE(line.find(escaped), std::string::npos) << line;
      EXPECT_EQ(line.find_first_of("\xc2\xe2"), std::string::npos) << line;
      if (format == LogFormat::kJson) {
        EXPECT_NE(Json::parse(line).at("message").get<std::string>().find(text), std::string::npos);
      }
    }
  }
}

TEST(LoggerTest, PrintsBadUsageWithoutATime) {
  const auto lines = lines_said([] {
    Logger logger("program");
    EXPECT_EQ(logger.fail("--listen is required", kBadUsage), 2);
  });
  EXPECT_EQ(lines, std::vector<std::string>{"program: --listen is required"});
  EXPECT_EQ(without_time(lines.at(0)), lines.at(0));
}

TEST(LoggerTest, LogsBadUsageOnceTheLogHasBegun) {
  for (const bool quiet : {false, true}) {
    const auto lines = lines_said([&] {
      Logger logger("program");
      logger.set_quiet(quiet);
      logger.log("joined");
      EXPECT_EQ(logger.fail("'site' was revoked", kBadUsage), 2);
    });
    ASSERT_EQ(lines.size(), quiet ? 1u : 2u);
    EXPECT_EQ(lines.back().substr(24), " error: 'site' was revoked");
    EXPECT_EQ(without_time(lines.back()), "'site' was revoked");
  }
}

TEST(LoggerTest, PrintsErrorsOfAQuietProgram) {
  const auto lines = lines_said([] {
    Logger logger("program");
    logger.set_quiet(true);
    logger.log("listening");
    logger.log(LogLine::warning("a snapshot was not written"));
    logger.fail("the disk is full", kFailed);
  });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(without_time(lines[0]), "the disk is full");
}

TEST(LoggerTest, PrintsASummaryWhenItIsDueWithoutOtherLines) {
  const auto lines = lines_said([] {
    Logger logger("program", LogFormat::kText, kRate);
    for (int k = 0; k < 10; ++k) logger.log(unauthenticated(k));
    const auto printed = [] {
      struct stat file {};
      ::fstat(STDERR_FILENO, &file);
      return file.st_size;
    };
    EXPECT_TRUE(eventually([&, before = printed()] { return printed() > before; }));
    logger.log("the end");
  });
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(without_time(lines[3]).substr(0, 25), "... 7 more such lines in ");
}

TEST(LoggerTest, PrintsRemainingSummariesAtTheEnd) {
  const auto lines = lines_said([] {
    Logger logger("program", LogFormat::kText, {.burst = 3, .window_ms = 1'000'000});
    for (int k = 0; k < 10; ++k) logger.log(unauthenticated(k));
  });
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(without_time(lines[3]).substr(0, 25), "... 7 more such lines in ");
}

TEST(LoggerTest, AcceptsLinesOfSeveralThreads) {
  const auto lines = lines_said([] {
    Logger logger("program", LogFormat::kText, {.burst = 5, .window_ms = 1});
    std::vector<std::thread> threads;
    for (std::uint32_t client = 0; client < 4; ++client)
      threads.emplace_back([&logger, client] {
        for (int k = 0; k < 2000; ++k) logger.log(of_client(client));
      });
    for (std::thread& thread : threads) thread.join();
  });
  for (const std::string& line : lines) EXPECT_TRUE(without_time(line).ends_with("is disconnected")) << line;
}

TEST(LoggerTest, AcceptsCallbacksThatTakeStrings) {
  std::vector<std::string> taken;
  const std::function<void(const std::string&)> old = [&](const std::string& line) { taken.push_back(line); };
  const Log log = old;
  log("one");
  log(std::string("two"));
  const std::function<void(const std::string&)> older = log;
  older("three");
  EXPECT_EQ(taken, (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_FALSE(Log(std::function<void(const std::string&)>()));
}

}  // namespace
}  // namespace gradwire
