// A display of the progress of a run, for a person or a program.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "base/log.h"
#include "report/quantities.h"
#include "rounds/round_loop.h"

namespace gradwire {

enum class Verbosity : std::uint8_t {
  kNormal,  // on a terminal one line of stderr that is rewritten, else lines at growing intervals
  kNotes,   // notes and warnings alone
  kQuiet,   // nothing
  kJson,    // one JSON object on stdout per evaluated round
};

class Progress {
 public:
  // All lines except the one that is rewritten go to `log`.
  Progress(std::string name, std::uint32_t rounds, Verbosity verbosity, Log log);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Sets the number of rounds that an earlier process did.
  void resume_after(std::uint32_t done) { before_ = done; }
  void record(const RoundRecord& record);
  void round(std::uint32_t done);  // may be called between evaluations, because it is cheap
  void note(const LogLine& line);  // prints a separate line
  void finish();                   // shows the last state

 private:
  using Clock = std::chrono::steady_clock;

  void show(Clock::time_point now, bool last);
  std::string line(double elapsed, std::size_t width) const;

  const std::string name_;
  const std::uint32_t rounds_;
  const Verbosity verbosity_;
  const Log log_;
  const bool terminal_;
  const Clock::time_point started_ = Clock::now();
  Clock::time_point next_show_ = started_;
  std::chrono::duration<double> interval_{1};  // between log lines; grows
  std::optional<RoundRecord> record_;
  std::uint32_t before_ = 0, done_ = 0, shown_ = 0;
  bool line_open_ = false;
  bool finished_ = false;
};

}  // namespace gradwire
