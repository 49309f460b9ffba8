#include "proto/wire/codec.h"

#include <algorithm>
#include <charconv>
#include <variant>

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
  return Error{"zstd must be \"auto\", \"off\" or a level from 1 to 19, not '" + std::string(text) + "'"};
}

namespace {

// Returns how many vectors of the full length have at least as many numbers as one part. The factors of a
// matrix may have twice as many numbers as the matrix. So may the eigenvectors of a matrix whose triangle is
// compressed.
std::uint64_t most_vectors(const Compressor& compressor) {
  std::uint64_t vectors = 0;
  for (std::size_t link = 0; link < kMaxLinks; ++link) {
    const Compressor* const c = chain_link(compressor, link);
    if (c != nullptr)
      vectors += std::holds_alternative<RankK>(*c) || std::holds_alternative<RankR>(*c) ? 2 : 1;
  }
  return vectors;
}

}  // namespace

std::uint64_t max_payload_bytes(const CodecContext& context, std::size_t real_bytes) {
  // A request may hold a body and a resync. Indices never take more than a bitmap, and each packed vector may
  // add its unit.
  constexpr std::uint64_t kMessages = 2;
  const std::uint64_t dim = context.longest();
  std::uint64_t vectors = most_vectors(context.compressor);
  if (context.compressor_down) vectors = std::max(vectors, most_vectors(*context.compressor_down));
  return kMessages * kMaxParts * vectors * ((dim + 1) * real_bytes + (dim + 7) / 8);
}

}  // namespace gradwire
