#include "base/byte_size.h"

#include <array>
#include <charconv>
#include <limits>

namespace gradwire {
namespace {

struct SizeUnit {
  std::string_view name;
  int shift;
};
constexpr std::array<SizeUnit, 4> kSizeUnits = {{{"GB", 30}, {"MB", 20}, {"KB", 10}, {"B", 0}}};

}  // namespace

std::optional<std::uint64_t> read_byte_size(std::string_view text) {
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || size == 0) return std::nullopt;
  const std::string_view name = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const SizeUnit& unit : kSizeUnits) {
    if (name != unit.name) continue;
    if (size > (std::numeric_limits<std::uint64_t>::max() >> 1 >> unit.shift)) return std::nullopt;
    return size << unit.shift;
  }
  return std::nullopt;
}

std::string byte_size_text(std::uint64_t bytes) {
  for (const SizeUnit& unit : kSizeUnits)
    if ((bytes >> unit.shift << unit.shift) == bytes)
      return std::to_string(bytes >> unit.shift) + std::string(unit.name);
  return {};  // not reached: every size is a multiple of B
}

}  // namespace gradwire
