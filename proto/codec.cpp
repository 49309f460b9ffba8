#include "proto/codec.h"

#include <charconv>

namespace gradwire {

Result<ZstdMode> parse_zstd_mode(std::string_view text) {
  if (text == "auto") return ZstdMode{};
  if (text == "off") return ZstdMode{ZstdMode::Kind::kOff, 0};
  constexpr int kMaxLevel = 19;
  int level = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), level);
  if (failure == std::errc() && end == text.data() + text.size() && level >= 1 && level <= kMaxLevel) {
    return ZstdMode{ZstdMode::Kind::kLevel, level};
  }
  return Error{"zstd is \"auto\", \"off\" or a level from 1 to 19, not '" + std::string(text) + "'"};
}

std::uint64_t max_payload_bytes(const CodecContext& context, std::size_t real_bytes) {
  // An envelope may hold a body and a resync; indices never take more than a bitmap.
  constexpr std::uint64_t kMessages = 2;
  const std::uint64_t dim = context.dim;
  return kMessages * kMaxParts * (dim * real_bytes + (dim + 7) / 8);
}

}  // namespace gradwire
