#include "config/duration_option.h"

#include <charconv>
#include <cstdint>
#include <system_error>

namespace gradwire {
namespace {

constexpr std::int64_t kLongestMs = std::int64_t{10} * 365 * 24 * 3600 * 1000;

}  // namespace

std::string trouble_of_ms(const std::string& text) {
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error == std::errc() && end == text.data() + text.size() && ms >= 1 && ms <= kLongestMs) return "";
  return "'" + text + "' is not a time: write a whole number of milliseconds, 1 to " +
         std::to_string(kLongestMs) + " (ten years)";
}

}  // namespace gradwire
