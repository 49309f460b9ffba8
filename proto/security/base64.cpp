#include "proto/security/base64.h"

#include <cstdint>
#include <cstring>

namespace gradwire {
namespace {

constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  std::uint32_t held = 0;
  int bits = 0;
  for (const std::byte byte : bytes) {
    held = held << 8 | static_cast<std::uint32_t>(byte);
    for (bits += 8; bits >= 6; bits -= 6) text += kDigits[held >> (bits - 6) & 63];
  }
  if (bits > 0) text += kDigits[held << (6 - bits) & 63];
  return text;
}

Result<std::vector<std::byte>> from_base64(std::string_view text) {
  std::vector<std::byte> bytes;
  std::uint32_t held = 0;
  int bits = 0;
  for (const char c : text) {
    const char* const digit = c == '\0' ? nullptr : std::strchr(kDigits, c);
    if (digit == nullptr) return Error{std::string("'") + c + "' is not a digit of base64url"};
    held = held << 6 | static_cast<std::uint32_t>(digit - kDigits);
    if ((bits += 6) >= 8) bytes.push_back(static_cast<std::byte>(held >> (bits -= 8) & 255));
  }
  // Each value has exactly one text: no half bytes, and no bits after the last byte.
  if (bits >= 6 || (held & ((1U << bits) - 1)) != 0) return Error{"it is cut off"};
  return bytes;
}

}  // namespace gradwire
