#include "proto/report/json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace gradwire {
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
