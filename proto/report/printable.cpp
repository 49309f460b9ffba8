#include "proto/report/printable.h"

namespace gradwire {
namespace {

// Length of the UTF-8 sequence at the front of `text`, 0 when it is none (overlong forms and surrogates
// included).
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

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
    const bool control =
        length == 1 ? byte(0) < 0x20 || byte(0) == 0x7f : length == 2 && byte(0) == 0xC2 && byte(1) < 0xA0;
    if (length == 0) out += "\xEF\xBF\xBD";
    if (length > 0) out += control ? std::string_view("?") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace gradwire
