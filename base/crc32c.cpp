#include "base/crc32c.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace gradwire {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // Castagnoli, bit-reversed

// table[k][b] is the effect of byte b on the state if k zero bytes follow it.
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

// The CRC instruction has a latency of three cycles, but one can start each cycle. So three lanes of
// kLaneBytes bytes run in parallel. Their states are joined by "advance over kLaneBytes zero bytes", which is
// linear in the state.
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

// Returns x^n modulo the polynomial; bit 31 is x^0.
constexpr std::uint32_t power_of_x(std::size_t n) {
  std::uint32_t power = 0x80000000;
  for (std::size_t k = 0; k < n; ++k) power = (power >> 1) ^ ((power & 1) != 0 ? kPolynomial : 0);
  return power;
}

// Folding (Gopal et al., "Fast CRC computation for generic polynomials using PCLMULQDQ instruction", 2009).
// If 16 bytes stand n bits before 16 other bytes, they are multiplied by x^n modulo the polynomial and added
// to the others. The exponent of the factor is 33 less, because the layout itself multiplies by x^33: by x,
// as the product of two halves has 127 bits and not 128, and by x^32, as the factor is in the low 32 bits of
// a half.
struct FoldBy {
  long long first_half, second_half;
};
constexpr FoldBy fold_by(std::size_t bits) { return {power_of_x(bits + 64 - 33), power_of_x(bits - 33)}; }

constexpr std::size_t kFoldedBytes = 256;  // bytes per step
constexpr FoldBy kFoldStep = fold_by(8 * kFoldedBytes), kFoldVector = fold_by(512);
constexpr std::size_t kLeastFolded = 1024;  // bytes; for fewer bytes three lanes are as fast

#define GRADWIRE_FOLDS __attribute__((target("avx512f,avx512vl,avx512dq,pclmul,vpclmulqdq,sse4.2")))

inline GRADWIRE_FOLDS __m512i in_all_lanes(FoldBy by) {
  return _mm512_set_epi64(by.second_half, by.first_half, by.second_half, by.first_half, by.second_half,
                          by.first_half, by.second_half, by.first_half);
}
inline GRADWIRE_FOLDS __m512i folded(__m512i bytes, __m512i by, __m512i onto) {
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(bytes, by, 0x00),
                                   _mm512_clmulepi64_epi128(bytes, by, 0x11), onto, 0x96);
}

// Updates the state with the first bytes, as many as the largest multiple of kFoldedBytes in n. Clears
// `finite` if a number is not finite. kNumberBytes is the size of a number, or 0 if the bytes are not
// numbers. REQUIRES: n >= kFoldedBytes.
template <std::size_t kNumberBytes>
GRADWIRE_FOLDS std::uint32_t update_folded(const std::byte* p, std::size_t n, std::uint32_t state,
                                           bool& finite) {
  const __m512i step = in_all_lanes(kFoldStep), vector = in_all_lanes(kFoldVector);
  [[maybe_unused]] constexpr int kNanOrInfinity = 0x99;  // QNaN, +inf, -inf, SNaN
  unsigned not_finite = 0;
  const auto load = [&](std::size_t at) GRADWIRE_FOLDS {
    const __m512i bytes = _mm512_loadu_si512(p + at);
    if constexpr (kNumberBytes == 4)
      not_finite |= _mm512_fpclass_ps_mask(_mm512_castsi512_ps(bytes), kNanOrInfinity);
    if constexpr (kNumberBytes == 8)
      not_finite |= _mm512_fpclass_pd_mask(_mm512_castsi512_pd(bytes), kNanOrInfinity);
    return bytes;
  };
  __m512i a = load(0), b = load(64), c = load(128), d = load(192);
  a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state))));
  for (p += kFoldedBytes, n -= kFoldedBytes; n >= kFoldedBytes; n -= kFoldedBytes, p += kFoldedBytes) {
    a = folded(a, step, load(0));
    b = folded(b, step, load(64));
    c = folded(c, step, load(128));
    d = folded(d, step, load(192));
  }
  d = folded(folded(folded(a, vector, b), vector, c), vector, d);
  alignas(64) std::array<std::byte, 64> last;
  _mm512_store_si512(last.data(), d);
  finite = finite && not_finite == 0;
  return update_sse42(last.data(), last.size(), 0);
}
#undef GRADWIRE_FOLDS

bool can_fold() {
  static const bool can = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("vpclmulqdq");
  return can;
}

std::uint32_t update(const std::byte* p, std::size_t n, std::uint32_t state) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (!has_instruction) return update_portable(p, n, state);
  if (n >= kLeastFolded && can_fold()) {
    bool unused = true;
    state = update_folded<0>(p, n, state, unused);
    p += n / kFoldedBytes * kFoldedBytes;
    n %= kFoldedBytes;
  }
  return update_sse42(p, n, state);
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

namespace {

template <class Real>
bool are_finite(std::span<const Real> numbers) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits kExponent = sizeof(Real) == 4 ? Bits{0x7F800000} : static_cast<Bits>(0x7FF0000000000000);
  Bits all_ones = 0;  // without branches, so that the loop is vectorized
  for (const Real number : numbers)
    all_ones |= static_cast<Bits>((std::bit_cast<Bits>(number) & kExponent) == kExponent);
  return all_ones == 0;
}

}  // namespace

template <class Real>
CheckedNumbers check_numbers(std::span<const Real> numbers, std::uint32_t crc) {
  CheckedNumbers checked{crc, true};
#if defined(__x86_64__)
  if (numbers.size_bytes() >= kLeastFolded && can_fold()) {
    const std::size_t folded = numbers.size_bytes() / kFoldedBytes * kFoldedBytes;
    checked.crc = ~update_folded<sizeof(Real)>(std::as_bytes(numbers).data(), folded, ~crc, checked.finite);
    numbers = numbers.subspan(folded / sizeof(Real));
  }
#endif
  // A block stays in the L1 cache between the two loops.
  constexpr std::size_t kBlock = 16 * 1024 / sizeof(Real);
  while (!numbers.empty()) {
    const auto block = numbers.first(std::min(kBlock, numbers.size()));
    checked.crc = crc32c(std::as_bytes(block), checked.crc);
    checked.finite = are_finite(block) && checked.finite;
    numbers = numbers.subspan(block.size());
  }
  return checked;
}
template CheckedNumbers check_numbers(std::span<const float>, std::uint32_t);
template CheckedNumbers check_numbers(std::span<const double>, std::uint32_t);

std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t crc) {
  return ~update_portable(bytes.data(), bytes.size(), ~crc);
}

}  // namespace gradwire
