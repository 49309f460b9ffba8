// A rate limit for log lines, which keeps the log short if an event repeats. In each window the first
// lines of a kind are printed, and one line summarizes the rest. A kind is a place in the code and, if known,
// a client. So lines about unauthenticated peers never hide those about clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/log.h"

namespace gradwire {

struct LogRate {
  std::uint32_t burst = 20;          // lines of a kind that are printed in one window
  std::uint64_t window_ms = 10'000;  // doubles while too many lines arrive; then only the summary is printed
  std::uint64_t longest_window_ms = 300'000;  // limit of the doubling
  std::size_t kinds = 16'384;                 // tracked at a time; all others count as one kind
};

// The rate limit. Times may come from any monotonic clock.
class LogLimit {
 public:
  explicit LogLimit(LogRate rate = {}) : rate_(rate) {}

  // Returns whether to print the line. Errors are always printed.
  bool take(const LogLine& line, std::uint64_t now_ms);
  // Returns the summary lines of the windows that have ended, or of all windows.
  std::vector<LogLine> sums(std::uint64_t now_ms, bool all = false);
  // Returns when to call sums() next, or nullopt if no line was suppressed.
  std::optional<std::uint64_t> next_sum_ms() const;

 private:
  using Kind = std::tuple<std::string, int, std::int64_t>;  // file, line, client or -1
  struct LogWindow {
    std::uint64_t begin_ms = 0, length_ms = 0;
    std::uint64_t lines = 0, left_out = 0;
    bool flooded = false;  // the window before had too many lines
    std::optional<LogLine> last;
  };

  static LogLine sum_of(LogWindow& window, std::uint64_t now_ms);

  const LogRate rate_;
  std::map<Kind, LogWindow> windows_;
  std::uint64_t first_end_ms_ = UINT64_MAX;  // end of the earliest window
  std::uint64_t left_out_ = 0;               // in all windows
};

}  // namespace gradwire
