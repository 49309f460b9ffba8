#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/crc32c.h"

namespace gradwire {

// Changes the magic of a snapshot to another version, and corrects its checksum.
inline void make_of_version(std::string& snapshot, char digit) {
  snapshot[7] = digit;
  std::uint32_t count = 0;
  std::memcpy(&count, &snapshot[16], sizeof count);
  const std::size_t end = 20 + 16 * count;
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(snapshot).first(end)));
  std::memcpy(&snapshot[end], &crc, sizeof crc);
}

}  // namespace gradwire
