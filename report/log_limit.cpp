#include "report/log_limit.h"

#include <algorithm>

namespace gradwire {
namespace {

std::string duration_text(std::uint64_t ms) {
  return ms < 1000 ? std::to_string(ms) + " ms" : std::to_string((ms + 500) / 1000) + " s";
}

}  // namespace

bool LogLimit::take(const LogLine& line, std::uint64_t now_ms) {
  if (line.level == LogLevel::kError) return true;
  Kind kind{line.file, line.line, line.client ? std::int64_t{*line.client} : -1};
  auto at = windows_.find(kind);
  if (at == windows_.end()) {
    if (windows_.size() >= rate_.kinds) kind = {};
    const auto [place, is_new] =
        windows_.try_emplace(kind, LogWindow{.begin_ms = now_ms, .length_ms = rate_.window_ms, .last = {}});
    at = place;
    if (is_new) first_end_ms_ = std::min(first_end_ms_, now_ms + rate_.window_ms);
  }
  LogWindow& window = at->second;
  ++window.lines;
  if (!window.flooded && window.lines <= rate_.burst) return true;
  ++window.left_out;
  ++left_out_;
  window.last = line;
  return false;
}

std::vector<LogLine> LogLimit::sums(std::uint64_t now_ms, bool all) {
  std::vector<LogLine> lines;
  if (now_ms < first_end_ms_ && !all) return lines;
  first_end_ms_ = UINT64_MAX;
  for (auto at = windows_.begin(); at != windows_.end();) {
    LogWindow& window = at->second;
    const bool over = all || now_ms >= window.begin_ms + window.length_ms;
    if (over && window.left_out == 0) {
      at = windows_.erase(at);
      continue;
    }
    if (over) {
      lines.push_back(sum_of(window, now_ms));
      left_out_ -= window.left_out;
      const bool flooded = window.lines > rate_.burst;
      window = {
          .begin_ms = now_ms,
          .length_ms = flooded ? std::min(2 * window.length_ms, rate_.longest_window_ms) : window.length_ms,
          .flooded = flooded,
          .last = {}};
    }
    first_end_ms_ = std::min(first_end_ms_, window.begin_ms + window.length_ms);
    ++at;
  }
  return lines;
}

LogLine LogLimit::sum_of(LogWindow& window, std::uint64_t now_ms) {
  LogLine sum = std::move(*window.last);
  sum.text = "... " + std::to_string(window.left_out) + " more such line" +
             (window.left_out == 1 ? "" : "s") + " in " + duration_text(now_ms - window.begin_ms) +
             ", the last: " + sum.text;
  return sum;
}

std::optional<std::uint64_t> LogLimit::next_sum_ms() const {
  if (left_out_ == 0) return std::nullopt;
  return first_end_ms_;
}

}  // namespace gradwire
