// Sizes with units, as in "512MB". KB, MB and GB are powers of 1024.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gradwire {

// Returns the size in bytes, or nullopt if the text is not a size, is 0, or exceeds 63 bits.
std::optional<std::uint64_t> read_byte_size(std::string_view text);
// The type of a setting that is a byte size (base/field.h).
struct ByteSize {
  std::uint64_t bytes = 0;
};
// Returns the size in the largest unit that divides it. REQUIRES: bytes > 0.
std::string byte_size_text(std::uint64_t bytes);

template <class T>
struct TextCodec;
template <>
struct TextCodec<ByteSize> {
  static bool read(std::string_view text, ByteSize& out) {
    const auto bytes = read_byte_size(text);
    if (bytes) out.bytes = *bytes;
    return bytes.has_value();
  }
  static std::string write(const ByteSize& size) { return byte_size_text(size.bytes); }
  static constexpr std::string_view expected = "a size such as \"512MB\" (or B, KB, GB)";
};

}  // namespace gradwire
