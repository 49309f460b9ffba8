#include "fl_server/json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

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

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) {
    out += c;
    return;
  }
  std::array<char, 8> code{};
  std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned char>(c));
  out += code.data();
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) out += "\xEF\xBF\xBD";
    if (length == 1) append_escaped(out, text[0]);
    if (length > 1) out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + "\"";
}

void JsonWriter::before_value() {
  if (levels_.empty()) {
    if (!text_.empty()) throw std::logic_error("JSON: two values");
    return;
  }
  Level& level = levels_.back();
  if (level.object != after_key_) throw std::logic_error("JSON: a member without a name");
  after_key_ = false;
  if (level.object) return;
  text_ += level.empty ? "\n" : ",\n";
  text_.append(2 * levels_.size(), ' ');
  level.empty = false;
}

void JsonWriter::key(std::string_view name) {
  if (levels_.empty() || !levels_.back().object || after_key_)
    throw std::logic_error("JSON: a name out of place");
  text_ += levels_.back().empty ? "\n" : ",\n";
  text_.append(2 * levels_.size(), ' ');
  text_ += json_string(name) + ": ";
  levels_.back().empty = false;
  after_key_ = true;
}

void JsonWriter::begin(char bracket, bool object) {
  before_value();
  text_ += bracket;
  levels_.push_back({object});
}

void JsonWriter::end(char bracket, bool object) {
  if (levels_.empty() || levels_.back().object != object || after_key_)
    throw std::logic_error("JSON: an end too many");
  const bool empty = levels_.back().empty;
  levels_.pop_back();
  if (!empty) {
    text_ += '\n';
    text_.append(2 * levels_.size(), ' ');
  }
  text_ += bracket;
}

void JsonWriter::begin_object() { begin('{', true); }
void JsonWriter::end_object() { end('}', true); }
void JsonWriter::begin_array() { begin('[', false); }
void JsonWriter::end_array() { end(']', false); }

void JsonWriter::value(std::string_view text) {
  before_value();
  text_ += json_string(text);
}

void JsonWriter::value(bool truth) {
  before_value();
  text_ += truth ? "true" : "false";
}

void JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  before_value();
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text_.append(digits.data(), end);
}

void JsonWriter::value(std::uint64_t number) {
  before_value();
  text_ += std::to_string(number);
}

void JsonWriter::null() {
  before_value();
  text_ += "null";
}

std::string JsonWriter::take() {
  if (!levels_.empty()) throw std::logic_error("JSON: something has not ended");
  return std::exchange(text_, {}) + "\n";
}

}  // namespace gradwire
