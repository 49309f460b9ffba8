// Prints the lines of a log on stderr. Programs of hosts use spdlog, those of boards write(2).
#pragma once

#include <memory>
#include <string>

#include "base/log.h"
#include "report/logger.h"

namespace gradwire {

class LogSink {
 public:
  virtual ~LogSink() = default;
  // Prints the time, the level, and the text (or the members of a JSON object) as one line.
  virtual void print(LogLevel level, const std::string& text) = 0;
};

std::unique_ptr<LogSink> make_log_sink(LogFormat format);

}  // namespace gradwire
