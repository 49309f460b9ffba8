#include "base/printable.h"

#include <array>
#include <cstdint>
#include <cstdio>

namespace gradwire {
namespace {

// Returns the length of the UTF-8 sequence at the front of `text`. Returns 0 if there is none, or if it is
// overlong or a surrogate.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((byte(k) & 0xC0) != 0x80) return 0;
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) > 0x9F) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

std::uint32_t code_point(std::string_view sequence) {
  if (sequence.size() == 1) return static_cast<unsigned char>(sequence[0]);
  std::uint32_t code = static_cast<unsigned char>(sequence[0]) & (0x7Fu >> sequence.size());
  for (const char c : sequence.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return code;
}

bool is_control(std::uint32_t code) {
  const auto within = [code](std::uint32_t first, std::uint32_t last) {
    return code >= first && code <= last;
  };
  return code < 0x20 || within(0x7F, 0x9F) || code == 0x061C || within(0x200E, 0x200F) ||
         within(0x2028, 0x202E) || within(0x2066, 0x2069);
}

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

}  // namespace

std::string printable(std::string_view text, std::size_t most) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
    const std::uint32_t code = code_point(sequence);
    const std::string piece = length == 0        ? format("\\x%02x", code)
                              : is_control(code) ? format("\\u%04x", code)
                                                 : std::string(sequence);
    if (out.size() + piece.size() > most) return out + "...";
    out += piece;
    text.remove_prefix(sequence.size());
  }
  return out;
}

std::string json_string(std::string_view text) {
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
    if (const std::size_t found = kEscaped.find(text[0]); found != kEscaped.npos)
      (out += '\\') += kLetters[found];
    else
      out += length == 0 ? "\xEF\xBF\xBD" : printable(sequence);
    text.remove_prefix(sequence.size());
  }
  return out + '"';
}

bool has_control_characters(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length > 0 && is_control(code_point(text.substr(0, length)))) return true;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return false;
}

}  // namespace gradwire
