// Copies the payload of a frame to where a slot wants it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace gradwire {

// Fills the targets in order with the bytes of the segments. Returns false if the segments have fewer or more
// bytes than the targets.
inline bool scatter(std::span<const std::span<const std::byte>> segments,
                    std::span<const std::span<std::byte>> targets) {
  std::size_t segment = 0, offset = 0;
  const auto skip_empty = [&] {
    while (segment < segments.size() && offset == segments[segment].size()) ++segment, offset = 0;
  };
  for (std::span<std::byte> target : targets) {
    while (!target.empty()) {
      skip_empty();
      if (segment == segments.size()) return false;
      const std::size_t size = std::min(target.size(), segments[segment].size() - offset);
      std::memcpy(target.data(), segments[segment].data() + offset, size);
      target = target.subspan(size);
      offset += size;
    }
  }
  skip_empty();
  return segment == segments.size();
}
inline bool scatter(std::span<const std::byte> bytes, std::span<const std::span<std::byte>> targets) {
  return scatter(std::span(&bytes, 1), targets);
}

}  // namespace gradwire
