#include <algorithm>
#include <fstream>
#include <limits>

#include "base/config_error.h"
#include "base/text_lines.h"
#include "config/client_latency.h"

namespace gradwire {
namespace {

constexpr std::size_t kMostNumbers = 10'000'000;  // in a trace

// Returns whether `line` may have a decimal comma: a comma right between two digits, and no decimal point.
bool may_have_decimal_comma(std::string_view line) {
  constexpr std::string_view kDigits = "0123456789";
  if (line.empty() || line.find('.') != line.npos) return false;
  for (std::size_t at = line.find(',', 1); at < line.size() - 1; at = line.find(',', at + 1))
    if (kDigits.find(line[at - 1]) != kDigits.npos && kDigits.find(line[at + 1]) != kDigits.npos) return true;
  return false;
}

// Reads the numbers of a line, which spaces, tabs or commas separate. Returns false if one is not a time.
bool read_line(std::string_view line, std::vector<double>& numbers) {
  constexpr std::string_view kBetween = " \t,";
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kBetween), line.size()));
    if (line.empty()) return true;
    const std::string_view word = line.substr(0, line.find_first_of(kBetween));
    double value = std::numeric_limits<double>::infinity();
    if (word != "inf" && !read_seconds(word, value)) return false;
    numbers.push_back(value);
    line.remove_prefix(word.size());
  }
}

}  // namespace

void read_traces(ClientLatency& seconds, const std::filesystem::path& base, std::uint32_t n) {
  if (seconds.trace.empty()) return;
  const std::string name = (base / seconds.trace).string();
  const auto fail = [&](const std::string& why) { throw ConfigError("clients.latency", name + why); };
  std::ifstream in(name, std::ios::binary);
  if (!in) fail(": cannot be opened; correct the path of latency");
  std::string read;
  std::string_view rest;  // the unread part of `read`, which has several lines if they end with CR alone
  std::size_t total = 0;
  seconds.traces.clear();
  while (seconds.traces.size() < n) {
    if (rest.empty()) {
      if (!std::getline(in, read)) break;
      rest = seconds.traces.empty() ? without_byte_order_mark(read) : read;
    }
    const std::string_view line = take_line(rest);
    const std::string here = ":" + std::to_string(seconds.traces.size() + 1) + ": ";
    std::vector<double>& numbers = seconds.traces.emplace_back();
    if (may_have_decimal_comma(line))
      fail(here + "a comma right between two digits; write 1.5 for one number, and 1 5 for two");
    if (!read_line(line, numbers))
      fail(here + "the line of a client holds numbers of seconds above 0, or inf, with spaces between them");
    if (numbers.empty()) fail(here + "the line of a client needs at least one number");
    total += numbers.size();
    if (total > kMostNumbers)
      fail(here + "a trace holds at most " + std::to_string(kMostNumbers) + " numbers");
  }
  if (seconds.traces.size() < n)
    fail(": has " + std::to_string(seconds.traces.size()) + " lines, but there are " + std::to_string(n) +
         " clients; give each a line");
}

}  // namespace gradwire
