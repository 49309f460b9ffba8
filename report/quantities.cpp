#include "report/quantities.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace gradwire {
namespace {

template <class... Args>
std::string formatted(const char* pattern, Args... args) {
  std::array<char, 128> text;
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

std::string scaled(double value, const char* unit, const char* base) {
  constexpr std::array<const char*, 5> kPrefixes = {"", "k", "M", "G", "T"};
  std::size_t k = 0;
  for (; value >= 999.5 && k + 1 < kPrefixes.size(); ++k) value /= 1000;
  if (k == 0) return formatted("%.0f %s", value, base);
  return formatted(value < 9.95   ? "%.2f %s%s"
                   : value < 99.5 ? "%.1f %s%s"
                                  : "%.0f %s%s",
                   value, kPrefixes[k], unit);
}

}  // namespace

std::string count_text(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string bytes_text(double bytes) { return scaled(bytes, "B", "bytes"); }
std::string bits_text(double bits) { return scaled(bits, "bit", "bits"); }

std::string rate_text(double per_second) {
  if (per_second >= 9995) return formatted("%.0fk", per_second / 1000);
  if (per_second >= 999.5) return formatted("%.1fk", per_second / 1000);
  return formatted(per_second >= 9.95 ? "%.0f" : "%.1f", per_second);
}

std::string duration_text(double seconds) {
  if (!(seconds < 360000)) return "long";
  const auto s = static_cast<unsigned>(std::lround(seconds));
  if (s < 60) return formatted("%u s", s);
  if (s < 3600) return formatted("%u:%02u min", s / 60, s % 60);
  return formatted("%u:%02u h", s / 3600, s % 3600 / 60);
}

}  // namespace gradwire
