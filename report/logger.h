// The log of a program: lines on stderr with time and level, as text or as JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"
#include "report/log_limit.h"

namespace gradwire {

enum class LogFormat : std::uint8_t {
  kText,  // 2026-01-31T12:00:00.000Z warning: TEXT
  kJson,  // {"time": "...", "level": "warning", "client": 3, "round": 12, "message": "TEXT"}
};

// The logger of a program. Several threads may use it. It summarizes too many lines of one kind (LogLimit).
class Logger {
 public:
  // `program` is the first word of lines without a time.
  explicit Logger(std::string program, LogFormat format = LogFormat::kText, LogRate rate = {});
  ~Logger();  // prints the remaining summaries
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void set_quiet(bool quiet);  // if true, prints only errors
  void log(const LogLine& line);
  // Prints an error for the user who typed the command: "PROGRAM: WHAT", or a line of JSON.
  void complain(const std::string& what);
  // Prints the last line of a program that fails, and returns `code`. Uses complain() for bad usage before
  // the first line of the log, else prints a line of the log.
  int fail(const std::string& what, int code);

 private:
  void log_error(const std::string& what);

  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

// Exit codes of all programs. A supervisor must not restart a program after kBadUsage, because the user must
// first correct the command line, a file or the data.
inline constexpr int kFailed = 1, kBadUsage = 2;

// Returns the log format in the arguments. Call it before the command line is parsed, so that parse errors
// use the format as well.
LogFormat log_format(int argc, char** argv);

// Returns the text of a line that a Logger printed, without time and level. Returns other lines unchanged.
std::string_view without_time(std::string_view line);

// Protects the program from closed standard streams; main() calls it first. Without this call, a closed pipe
// would end the program, and a file that the program opens could become its stderr.
void guard_standard_streams();

}  // namespace gradwire
