#include <array>
#include <chrono>
#include <cstdio>
#include <unistd.h>

#include "report/log_sink.h"

namespace gradwire {
namespace {

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
  }
  return "error";
}

// Returns the time, as in 2026-01-31T12:00:00.000Z. std::strftime() would link the code of time zones.
std::string time_text() {
  using namespace std::chrono;
  const auto now = floor<milliseconds>(system_clock::now());
  const auto day = floor<days>(now);
  const year_month_day date(day);
  const hh_mm_ss time(now - day);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()),
                static_cast<int>(time.subseconds().count()));
  return text.data();
}

class StderrSink final : public LogSink {
 public:
  explicit StderrSink(LogFormat format) : format_(format) {}
  void print(LogLevel level, const std::string& text) override {
    std::string line;
    if (format_ == LogFormat::kJson)
      line = R"({"time": ")" + time_text() + R"(", "level": ")" + name_of(level) + R"(", )" + text + "}\n";
    else
      line = time_text() + " " + name_of(level) + ": " + text + "\n";
    // One call, so that lines of several threads and processes do not mix.
    (void)!::write(STDERR_FILENO, line.data(), line.size());
  }

 private:
  const LogFormat format_;
};

}  // namespace

std::unique_ptr<LogSink> make_log_sink(LogFormat format) { return std::make_unique<StderrSink>(format); }

}  // namespace gradwire
