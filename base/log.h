// Log lines. Each has a level and, if known, its client and round. Code that logs is given a Log; the
// programs pass the one in report/logger.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace gradwire {

enum class LogLevel : std::uint8_t { kInfo, kWarning, kError };

struct LogLine {
  // Lines from the same place in the code are grouped: many of them in a short time become one summary. The
  // compiler fills in the place.
  LogLine(std::string t, const char* in_file = __builtin_FILE(), int at_line = __builtin_LINE())
      : text(std::move(t)), file(in_file), line(at_line) {}
  LogLine(const char* t, const char* in_file = __builtin_FILE(), int at_line = __builtin_LINE())
      : text(t), file(in_file), line(at_line) {}
  static LogLine warning(std::string t, const char* in_file = __builtin_FILE(),
                         int at_line = __builtin_LINE()) {
    LogLine result(std::move(t), in_file, at_line);
    result.level = LogLevel::kWarning;
    return result;
  }

  LogLine of_client(std::optional<std::uint32_t> number) && {
    client = number;
    return std::move(*this);
  }
  LogLine in_round(std::uint32_t number) && {
    round = number;
    return std::move(*this);
  }
  operator const std::string&() const { return text; }  // for callers that only need the text

  LogLevel level = LogLevel::kInfo;
  std::string text;  // one line
  std::optional<std::uint32_t> client, round;
  const char* file;
  int line;
};

using Log = std::function<void(const LogLine&)>;  // may be empty

}  // namespace gradwire
