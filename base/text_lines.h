// Text from people and other programs: it may begin with a byte-order mark, its lines end with LF, CR LF or
// CR, and blanks may stand around its parts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace gradwire {

// Returns `text` without a leading UTF-8 byte-order mark.
inline std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

// Returns the position of the first LF or CR in `text` at or after `from`, or npos if there is none. Reads at
// most one block beyond it.
inline std::size_t find_line_end(std::string_view text, std::size_t from = 0) {
  constexpr std::size_t kBlock = 4096;
  for (std::size_t at = from; at < text.size(); at += kBlock) {
    const std::string_view block = text.substr(at, kBlock);
    const std::size_t feed = std::min(block.find('\n'), block.size());
    const std::size_t end = std::min(block.substr(0, feed).find('\r'), feed);
    if (end < block.size()) return at + end;
  }
  return std::string_view::npos;
}

// Removes the first line of `rest` and the end of that line. Returns the line without its end.
inline std::string_view take_line(std::string_view& rest) {
  const std::size_t end = std::min(find_line_end(rest), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end);
  rest.remove_prefix(rest.starts_with("\r\n") ? 2 : std::min<std::size_t>(1, rest.size()));
  return line;
}

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

inline std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace gradwire
