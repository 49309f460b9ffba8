// The checksum of files and messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gradwire {

// Returns the CRC32C (Castagnoli) of `bytes`, continued from `crc` (0 to start): crc32c(b, crc32c(a)) ==
// crc32c(a + b).
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

// Returns the same value as crc32c(), computed with tables, eight bytes per step. It is used on processors
// without the CRC instruction, and as the reference in tests.
std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t crc = 0);

// The checksum of the bytes of numbers, continued from `crc`, and a flag that is true if all numbers are
// finite. Takes one pass over the memory. Real: float or double.
struct CheckedNumbers {
  std::uint32_t crc = 0;
  bool finite = true;
};
template <class Real>
CheckedNumbers check_numbers(std::span<const Real> numbers, std::uint32_t crc = 0);

}  // namespace gradwire
