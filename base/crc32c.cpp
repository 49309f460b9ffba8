#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace gradwire {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // Castagnoli, bit-reversed

// table[k][b]: what byte b does to the state when k zero bytes follow it.
constexpr auto make_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> table{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t state = b;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) ? kPolynomial : 0);
    table[0][b] = state;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t state = table[k - 1][b];
      table[k][b] = (state >> 8) ^ table[0][state & 0xFF];
    }
  }
  return table;
}
constexpr auto kTables = make_tables();

template <class T>
T load_native(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::uint32_t update_portable(const std::byte* p, std::size_t n, std::uint32_t state) {
  for (; n >= 8; n -= 8, p += 8) {
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto low = static_cast<std::uint32_t>(p[i]) ^ ((state >> (8 * i)) & 0xFF);
      next ^= kTables[7 - i][low] ^ kTables[3 - i][static_cast<std::uint32_t>(p[i + 4])];
    }
    state = next;
  }
  for (; n > 0; --n, ++p) state = (state >> 8) ^ kTables[0][(state ^ static_cast<std::uint32_t>(*p)) & 0xFF];
  return state;
}

#if defined(__x86_64__)

// The instruction takes three cycles but one can start each cycle: three lanes of this many bytes run side by
// side, and their states are joined by "advance over kLaneBytes zero bytes", which is linear in the state.
constexpr std::size_t kLaneBytes = 1024;

constexpr auto make_advance() {
  std::array<std::uint32_t, 32> of_bit{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    std::uint32_t state = std::uint32_t{1} << bit;
    for (std::size_t i = 0; i < kLaneBytes; ++i) state = (state >> 8) ^ kTables[0][state & 0xFF];
    of_bit[bit] = state;
  }
  std::array<std::array<std::uint32_t, 256>, 4> table{};
  for (std::size_t byte = 0; byte < 4; ++byte) {
    for (std::size_t value = 1; value < 256; ++value) {
      std::size_t lowest = 0;
      while (((value >> lowest) & 1) == 0) ++lowest;
      table[byte][value] = table[byte][value & (value - 1)] ^ of_bit[8 * byte + lowest];
    }
  }
  return table;
}
constexpr auto kAdvance = make_advance();

std::uint32_t advance(std::uint64_t state) {
  return kAdvance[0][state & 0xFF] ^ kAdvance[1][(state >> 8) & 0xFF] ^ kAdvance[2][(state >> 16) & 0xFF] ^
         kAdvance[3][(state >> 24) & 0xFF];
}

__attribute__((target("sse4.2"))) std::uint32_t update_sse42(const std::byte* p, std::size_t n,
                                                             std::uint32_t state) {
  std::uint64_t a = state;
  for (; n >= 3 * kLaneBytes; n -= 3 * kLaneBytes, p += 3 * kLaneBytes) {
    std::uint64_t b = 0, c = 0;
    for (std::size_t i = 0; i < kLaneBytes; i += 8) {
      a = _mm_crc32_u64(a, load_native<std::uint64_t>(p + i));
      b = _mm_crc32_u64(b, load_native<std::uint64_t>(p + kLaneBytes + i));
      c = _mm_crc32_u64(c, load_native<std::uint64_t>(p + 2 * kLaneBytes + i));
    }
    a = advance(advance(a) ^ b) ^ c;
  }
  for (; n >= 8; n -= 8, p += 8) a = _mm_crc32_u64(a, load_native<std::uint64_t>(p));
  auto s = static_cast<std::uint32_t>(a);
  for (; n > 0; --n, ++p) s = _mm_crc32_u8(s, static_cast<unsigned char>(*p));
  return s;
}

std::uint32_t update(const std::byte* p, std::size_t n, std::uint32_t state) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  return has_instruction ? update_sse42(p, n, state) : update_portable(p, n, state);
}

#elif defined(__ARM_FEATURE_CRC32)

std::uint32_t update(const std::byte* p, std::size_t n, std::uint32_t state) {
  for (; n >= 8; n -= 8, p += 8) state = __crc32cd(state, load_native<std::uint64_t>(p));
  for (; n > 0; --n, ++p) state = __crc32cb(state, static_cast<unsigned char>(*p));
  return state;
}

#else

std::uint32_t update(const std::byte* p, std::size_t n, std::uint32_t state) {
  return update_portable(p, n, state);
}

#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
  return ~update(bytes.data(), bytes.size(), ~crc);
}

std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t crc) {
  return ~update_portable(bytes.data(), bytes.size(), ~crc);
}

}  // namespace gradwire
