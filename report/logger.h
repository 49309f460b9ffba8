// The log of a program: lines to stderr, each with its time and its level, as text or as JSON.
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

// May be used by several threads. Too many lines of one kind are summed up (LogLimit).
class Logger {
 public:
  // `program`: what a line without a time begins with.
  explicit Logger(std::string program, LogFormat format = LogFormat::kText, LogRate rate = {});
  ~Logger();  // prints the sums that are still due
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void set_quiet(bool quiet);  // only errors
  void log(const LogLine& line);
  // An answer to the person who typed the command: "PROGRAM: WHAT", or a line of JSON.
  void complain(const std::string& what);
  // Prints the last line of a program that fails: bad usage that is found before the program has logged
  // anything with complain(), else as a line of the log. Returns `code`.
  int fail(const std::string& what, int code);

 private:
  void log_error(const std::string& what);

  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

// Exit codes of all programs. A supervisor that restarts a failed program must not do so after bad usage:
// somebody must first correct the command line, a file or the data.
inline constexpr int kFailed = 1, kBadUsage = 2;

// For use before the command line is parsed: its errors are lines of JSON too.
LogFormat log_format(int argc, char** argv);

// The text of a line that a Logger has printed, without time and level; any other line as it is.
std::string_view without_time(std::string_view line);

// main() calls it first. The reader of stdout or stderr may go away, or these streams may be closed from the
// start. Without this call, a closed pipe ends the program, and the next file that it opens becomes its
// stderr.
void guard_standard_streams();

}  // namespace gradwire
