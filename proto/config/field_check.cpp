#include <algorithm>
#include <cmath>

#include "base/config_error.h"
#include "base/nearest.h"
#include "proto/config/experiment_fields.h"

namespace gradwire {
namespace {

constexpr std::size_t kLongestWord = 100;

std::string range_text(const Field& f, const char* of) {
  const std::string low = number_text(f.low), high = number_text(f.high);
  if (f.high == kNoLimit)
    return f.low_open ? std::string(of) + " above " + low : std::string(of) + ", " + low + " or more";
  if (f.type == FieldType::kNumber)
    return std::string(of) + " in " + (f.low_open ? "(" : "[") + low + ", " + high +
           (f.high_open ? ")" : "]");
  return std::string(of) + ", " + std::to_string(static_cast<std::int64_t>(f.low)) + " to " +
         std::to_string(static_cast<std::int64_t>(f.high));
}

// "\"a\", \"b\" or LAST"; without `last` the last word is last.
std::string words_text(const Field& f, const std::string& last = "") {
  std::vector<std::string> items;
  for (const std::string& word : f.words) items.push_back('"' + word + '"');
  if (!last.empty()) items.push_back(last);
  std::string list;
  for (std::size_t i = 0; i < items.size(); ++i)
    list += (i == 0 ? "" : i + 1 == items.size() ? " or " : ", ") + items[i];
  return list;
}

bool in_range(const Field& f, double v) {
  return std::isfinite(v) && (f.low_open ? v > f.low : v >= f.low) &&
         (f.high_open ? v < f.high : v <= f.high);
}

bool in_range(const Field& f, std::int64_t v) { return in_range(f, static_cast<double>(v)); }

bool is_one_of(const Field& f, const TomlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr && std::find(f.words.begin(), f.words.end(), *text) != f.words.end();
}

[[noreturn]] void refuse(const Field& f, const TomlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr && !f.words.empty()) {
    std::vector<std::string> known = f.words;
    if (f.type == FieldType::kWordOrFlag) known.insert(known.end(), {"true", "false"});
    if (f.type == FieldType::kWordOrInteger) known.push_back(range_text(f, "an integer"));
    f.fail("unknown " + std::string(f.key) + " '" + text->substr(0, kLongestWord) + "'" +
           suggest(*text, known));
  }
  f.fail(std::string(f.key) + " must be " + f.expected() + ", not " + describe(value));
}

bool fits(const Field& f, const TomlValue& value);

// Whether the value is a flag or a number in quotes ("false") that would fit without the quotes.
bool fits_unquoted(const Field& f, const TomlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return false;
  const TomlValue bare = value_of(*text);
  return !std::holds_alternative<std::string>(bare) && fits(f, bare);
}

bool fits(const Field& f, const TomlValue& value) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* number = std::get_if<double>(&value);
  const bool is_text = std::holds_alternative<std::string>(value);
  switch (f.type) {
    case FieldType::kText: return is_text;
    case FieldType::kWord: return is_one_of(f, value);
    case FieldType::kInteger: return integer != nullptr && in_range(f, *integer);
    case FieldType::kNumber: return number != nullptr && in_range(f, *number);
    case FieldType::kFlag: return std::holds_alternative<bool>(value);
    case FieldType::kIntegers: {
      const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
      return list != nullptr && list->size() <= kMaxListLength &&
             std::all_of(list->begin(), list->end(), [&](std::int64_t v) { return in_range(f, v); });
    }
    case FieldType::kWordOrInteger:
      return is_one_of(f, value) || (integer != nullptr && in_range(f, *integer)) || fits_unquoted(f, value);
    case FieldType::kWordOrFlag:
      return is_one_of(f, value) || std::holds_alternative<bool>(value) || fits_unquoted(f, value);
    case FieldType::kNumberOrText: return is_text || integer != nullptr || number != nullptr;
  }
  return false;
}

}  // namespace

void Field::fail(const std::string& message) const { throw ConfigError(path(), message); }

std::string Field::path() const {
  return section.empty() ? std::string(key) : std::string(section) + "." + std::string(key);
}

std::string Field::expected() const {
  switch (type) {
    case FieldType::kText: return "a string";
    case FieldType::kWord: return words_text(*this);
    case FieldType::kInteger: return range_text(*this, "an integer");
    case FieldType::kNumber: return range_text(*this, "a number");
    case FieldType::kFlag: return "true or false";
    case FieldType::kIntegers:
      return "a list of at most " + std::to_string(kMaxListLength) + range_text(*this, " integers");
    case FieldType::kWordOrInteger: return words_text(*this, range_text(*this, "an integer"));
    case FieldType::kWordOrFlag: return words_text(*this) + ", true or false";
    case FieldType::kNumberOrText: return "a number or a string";
  }
  return "";
}

const Field::OfKind* Field::of_kind(std::string_view kind) const {
  const auto at = std::find_if(kinds.begin(), kinds.end(), [&](const OfKind& k) { return k.kind == kind; });
  return at == kinds.end() ? nullptr : &*at;
}

std::string Field::fallback_text() const {
  if (!fallback_note.empty()) return std::string(fallback_note);
  if (kinds.empty()) return toml_literal(fallback);
  const bool all_alike = std::all_of(kinds.begin(), kinds.end(),
                                     [&](const OfKind& k) { return k.fallback == kinds[0].fallback; });
  if (all_alike) return toml_literal(kinds[0].fallback);
  std::string text;
  for (const OfKind& k : kinds)
    text += (text.empty() ? "" : ", ") + std::string(k.kind) + ": " + toml_literal(k.fallback);
  return text;
}

void check_printable(const std::string& key, const TomlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return;
  for (const char c : *text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      throw ConfigError(key, "no control characters can be here: " + describe(value));
}

TomlValue check_field(const Field& field, const TomlValue& value) {
  check_printable(field.path(), value);
  TomlValue kept = value;
  if (const auto* integer = std::get_if<std::int64_t>(&value);
      integer != nullptr && field.type == FieldType::kNumber)
    kept = static_cast<double>(*integer);
  if (!fits(field, kept)) refuse(field, value);
  if (field.check_text != nullptr) field.check_text(field, std::get<std::string>(kept));
  // -0.0 is zero: it would be written as 0.
  if (auto* number = std::get_if<double>(&kept); number != nullptr) *number += 0.0;
  return kept;
}

}  // namespace gradwire
