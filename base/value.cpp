#include "base/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <type_traits>

namespace gradwire {
namespace {

constexpr std::size_t kLongestQuote = 60;

template <class Number>
std::optional<Number> read_all(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string in_quotes(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += {kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Returns a TOML float, which needs a point or an exponent.
std::string float_literal(double value) {
  std::string text = number_text(value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
#ifdef GRADWIRE_SMALL
  return number_text_by_trial(value);
#else
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
#endif
}

std::string number_text_by_trial(double value) {
  if (!std::isfinite(value) || value == 0) return rounded_text(value, 1);
  // The fewest digits that read back, in the shorter of both forms.
  char text[64];
  int digits = 1;
  do {
    std::snprintf(text, sizeof text, "%.*e", digits - 1, value);
  } while (std::strtod(text, nullptr) != value && ++digits <= 17);
  const int exponent = std::atoi(std::strchr(text, 'e') + 1);
  char fixed[400];
  std::snprintf(fixed, sizeof fixed, "%.*f", std::max(0, digits - 1 - exponent), value);
  return std::strlen(fixed) <= std::strlen(text) ? fixed : text;
}

std::string rounded_text(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string toml_literal(const Value& value) {
  return std::visit(
      []<class T>(const T& v) -> std::string {
        if constexpr (std::is_same_v<T, bool>) {
          return v ? "true" : "false";
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          return std::to_string(v);
        } else if constexpr (std::is_same_v<T, double>) {
          return float_literal(v);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return in_quotes(v);
        } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
          std::string list;
          for (const std::int64_t i : v) list += (list.empty() ? "" : ", ") + std::to_string(i);
          return "[" + list + "]";
        } else {
          throw std::logic_error("toml_literal: " + v.what + " is not a value of any key");
        }
      },
      value);
}

std::string describe(const Value& value) {
  if (const auto* other = std::get_if<OtherValue>(&value)) return other->what;
  if (const auto* text = std::get_if<std::string>(&value); text != nullptr && text->size() > kLongestQuote)
    return in_quotes(text->substr(0, kLongestQuote) + "...");
  std::string literal = toml_literal(value);
  if (literal.size() > 2 * kLongestQuote) return literal.substr(0, kLongestQuote) + "...";
  return literal;
}

std::string text_of(const Value& scalar) {
  if (const auto* text = std::get_if<std::string>(&scalar)) return *text;
  if (const auto* number = std::get_if<double>(&scalar)) return number_text(*number);
  return toml_literal(scalar);
}

Value value_of(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  if (const auto integer = read_all<std::int64_t>(text); integer && std::to_string(*integer) == text)
    return *integer;
  if (const auto number = read_all<double>(text);
      number && std::isfinite(*number) && number_text(*number) == text)
    return *number;
  return std::string(text);
}

std::string canonical_text(std::string_view text) {
  if (const auto integer = read_all<std::int64_t>(text)) return std::to_string(*integer);
  if (const auto number = read_all<double>(text); number && std::isfinite(*number))
    return number_text(*number);
  return std::string(text);
}

}  // namespace gradwire
