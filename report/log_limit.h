// Keeps a log readable, and its file small, when something happens again and again: the first lines of a kind
// are printed, and one line sums up the rest of a window. A kind is a place in the code and, where known, a
// client, so that lines about strangers never hide lines about clients.
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
  std::uint64_t window_ms = 10'000;  // doubles while too many lines come; then only its sum is printed
  std::uint64_t longest_window_ms = 300'000;  // ... up to this
  std::size_t kinds = 16'384;                 // kept at a time; all others count as one kind
};

// Times may come from any monotonic clock.
class LogLimit {
 public:
  explicit LogLimit(LogRate rate = {}) : rate_(rate) {}

  // Whether the line is to be printed. Errors always are.
  bool take(const LogLine& line, std::uint64_t now_ms);
  // Summary lines of the windows that are over, or of all windows.
  std::vector<LogLine> sums(std::uint64_t now_ms, bool all = false);
  // When to call sums() next; nothing: no line was left out.
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
  std::uint64_t first_end_ms_ = UINT64_MAX;  // no window ends before
  std::uint64_t left_out_ = 0;               // in all windows
};

}  // namespace gradwire
