#include "engine/data/readers/lines.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>

#include "base/text_lines.h"

namespace gradwire {
namespace {

constexpr std::size_t kMaxQuotedBytes = 32;
constexpr std::size_t kStreamBytes = std::size_t{1} << 13;  // read from a stream at once

// Returns true if the decimal number |text|, which does not fit a double, is too small rather than too large.
// The power of ten of its first nonzero digit is then negative.
bool underflows(std::string_view text) {
  const std::size_t e = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, e);
  long long power = 0;
  if (e != std::string_view::npos) {
    std::string_view exponent = text.substr(e + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    const auto parsed = std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
    if (parsed.ec != std::errc()) return exponent.starts_with('-');
  }
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = std::min(digits.find_first_of("123456789"), digits.size());
  // The position of the first nonzero digit. A text is far shorter than 2^62 bytes, but its exponent may be
  // any number.
  const long long place =
      first < point ? static_cast<long long>(point - first) - 1 : -static_cast<long long>(first - point);
  return power < -place;
}

}  // namespace

bool Lines::read_on() {
  if (stream_ == nullptr) return false;
  const std::size_t have = rest_.size();
  if (have + kStreamBytes > buffer_.size()) {  // the first call, and long lines
    std::vector<char> larger(std::max(2 * kStreamBytes, 2 * have));
    std::copy(rest_.begin(), rest_.end(), larger.begin());
    buffer_.swap(larger);
  } else {
    std::copy(rest_.begin(), rest_.end(), buffer_.begin());
  }
  const std::size_t got = stream_->read(std::span(buffer_).subspan(have));
  rest_ = {buffer_.data(), have + got};
  return got > 0;
}

std::optional<std::string_view> Lines::next() {
  // A CR at the end of the bytes may be the first half of a CR LF.
  for (std::size_t end = find_line_end(rest_); end >= rest_.size() || end + 1 == rest_.size();) {
    const std::size_t seen = std::min(end, rest_.size());
    if (!read_on()) break;
    end = find_line_end(rest_, seen);
  }
  if (rest_.empty()) return std::nullopt;
  std::string_view line = take_line(rest_);
  ++number_;
  while (!keeps_blanks_ && !line.empty() && is_blank(line.back())) line.remove_suffix(1);
  return line;
}

std::optional<double> parse_number(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument) return std::nullopt;
  if (parsed.ec == std::errc::result_out_of_range) {
    const bool negative = text.starts_with('-');
    number = underflows(text) ? 0 : std::numeric_limits<double>::infinity();
    if (negative) number = -number;
  }
  return number;
}

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, kMaxQuotedBytes)) out += c >= 0x20 && c < 0x7f ? c : '?';
  return out + (text.size() > kMaxQuotedBytes ? "...'" : "'");
}

DataError error_at(const std::string& file, std::size_t line, const std::string& what) {
  return DataError(file + ":" + std::to_string(line) + ": " + what);
}

}  // namespace gradwire
