#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "report/log_sink.h"

namespace gradwire {
namespace {

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%eZ %l: %v";
constexpr const char* kJsonPattern = R"({"time": "%Y-%m-%dT%H:%M:%S.%eZ", "level": "%l", %v})";

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

class SpdlogSink final : public LogSink {
 public:
  explicit SpdlogSink(LogFormat format) : out_("", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    const char* pattern = format == LogFormat::kJson ? kJsonPattern : kTextPattern;
    out_.set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc));
  }
  void print(LogLevel level, const std::string& text) override { out_.log(level_of(level), text); }

 private:
  spdlog::logger out_;
};

}  // namespace

std::unique_ptr<LogSink> make_log_sink(LogFormat format) { return std::make_unique<SpdlogSink>(format); }

}  // namespace gradwire
