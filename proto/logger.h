// The log of a program: lines to stderr, each with its time and its level, as text or as JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "proto/log.h"
#include "proto/log_limit.h"

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
  ~Logger();  // prints what is left to be summed up
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void set_quiet(bool quiet);  // only errors
  void log(const LogLine& line);
  // An answer to who typed the command: "PROGRAM: WHAT", or a line of JSON.
  void complain(const std::string& what);
  // The last line of a program that fails, with the code that it is to return: of bad usage a complaint.
  int fail(const std::string& what, int code);

 private:
  void log_error(const std::string& what);

  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

// Exit codes of all programs. What starts a program again when it fails is not to do so after bad usage: the
// command line, a file or the data must be mended first.
inline constexpr int kFailed = 1, kBadUsage = 2;

// Before the command line is understood: its errors are lines of JSON too.
LogFormat log_format(int argc, char** argv);

// The text of a line that a Logger has printed, without time and level; any other line as it is.
std::string_view without_time(std::string_view line);

// For the first line of main(): who reads stdout or stderr may go away, and need never have been there. Else
// a closed pipe ends the program, and the next file that it opens takes the place of stderr.
void guard_standard_streams();

}  // namespace gradwire
