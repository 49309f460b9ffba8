// The checksum of files and messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gradwire {

// CRC32C (Castagnoli) of `bytes`, continued from `crc` (0 to start): crc32c(b, crc32c(a)) == crc32c(a + b).
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

// The same from tables alone, eight bytes a step: for processors without the instruction, and to test the
// fast way against.
std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t crc = 0);

// The checksum of numbers as they lie in memory, continued from `crc`, and whether all of them are finite:
// one pass over the memory. Real: float or double.
struct CheckedNumbers {
  std::uint32_t crc = 0;
  bool finite = true;
};
template <class Real>
CheckedNumbers check_numbers(std::span<const Real> numbers, std::uint32_t crc = 0);

}  // namespace gradwire
