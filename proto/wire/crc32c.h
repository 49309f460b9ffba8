// The two ways to compute the checksum; crc32c() in frame.h picks the faster one that this processor has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gradwire {

// Uses tables alone, eight bytes a step: for processors without the instruction, and to test the fast way
// against.
std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t crc = 0);

}  // namespace gradwire
