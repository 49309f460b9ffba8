// Numbers in files and messages of the user's own: a header, then the numbers as they lie in memory. Bytes
// in, numbers out; engine/files/number_file.h has the files. Three formats are told apart by their first
// bytes.
//
// Ours, 64 bytes, so that numbers that are mapped into memory begin at a cache line:
//   offset  field          rule
//   0       magic          "GWNUMBER"
//   8       version u8     1
//   9       type u8        a NumberType
//   10      byte order u8  1: lowest byte first, 2: highest byte first; of all fields below and the numbers
//   11      u8             zero
//   12      crc u32        CRC32C over the header, with this field zero, and the numbers
//   16      count u64
//   24      40 bytes       zero
//   64      count numbers, and no byte behind them
//
// model.bin, the result of a run: storage/model_file.h.
//
// NumPy's .npy, versions 1.0 to 3.0, of f2, f4 and f8 (numpy.lib.format in the manual of NumPy): an array of
// several dimensions counts as its numbers in C order.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gradwire {

// Each is a byte of the header: never renumbered.
enum class NumberType : std::uint8_t { kFp32 = 1, kFp64 = 2, kFp16 = 3, kBf16 = 4, kFp128 = 5 };

std::size_t bytes_per_number(NumberType type);
std::string_view name_of(NumberType type);  // "fp32"

// Of the types that can be saved; base/half.h and engine/tape/float128.h have more.
template <class T>
inline constexpr NumberType kNumberType = T::kNumberType;
template <>
inline constexpr NumberType kNumberType<float> = NumberType::kFp32;
template <>
inline constexpr NumberType kNumberType<double> = NumberType::kFp64;

inline constexpr std::string_view kNumbersMagic = "GWNUMBER";
inline constexpr std::string_view kModelMagic = "GWMODEL1";
inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

// Numbers inside bytes of somebody else.
struct NumbersView {
  NumberType type = NumberType::kFp64;
  std::uint64_t count = 0;
  bool foreign_order = false;  // the bytes of each number stand in the order that this processor does not use
  std::span<const std::byte> bytes;
};

// What stands in front of numbers; no allocation.
struct NumbersHeader {
  std::array<std::byte, 128> bytes{};
  std::size_t size = 0;
  std::span<const std::byte> span() const { return std::span(bytes).first(size); }
};
NumbersHeader numbers_header(NumberType type, std::span<const std::byte> numbers);
// Fails for types that NumPy does not have.
Result<NumbersHeader> npy_header(NumberType type, std::uint64_t count);

// Any of the formats above. Checks magic, version, type, size and checksum; allocates nothing but the text of
// an error, which names no file.
Result<NumbersView> read_numbers(std::span<const std::byte> bytes);
// Bytes without a header.
Result<NumbersView> read_raw_numbers(std::span<const std::byte> bytes, NumberType type);
// What model.bin holds behind its magic.
Result<NumbersView> read_model_numbers(std::span<const std::byte> bytes);
// A file of NumPy.
Result<NumbersView> read_npy(std::span<const std::byte> bytes);

// An error unless the view holds `count` numbers of `type`.
Status check_numbers(const NumbersView& view, NumberType type, std::uint64_t count);
// REQUIRES: check_numbers() is content with them; `to` has as many bytes.
void copy_numbers(const NumbersView& view, std::span<std::byte> to);

template <class T>
std::vector<std::byte> numbers_to_bytes(std::span<const T> x) {
  const auto numbers = std::as_bytes(x);
  const NumbersHeader header = numbers_header(kNumberType<T>, numbers);
  std::vector<std::byte> bytes(header.span().begin(), header.span().end());
  bytes.insert(bytes.end(), numbers.begin(), numbers.end());
  return bytes;
}
// `x` is changed only when all is well: of its type, as many, undamaged.
template <class T>
Status numbers_from_bytes(std::span<const std::byte> bytes, std::span<T> x) {
  const Result<NumbersView> view = read_numbers(bytes);
  if (!view) return view.error();
  if (Status fits = check_numbers(*view, kNumberType<T>, x.size()); !fits) return fits;
  copy_numbers(*view, std::as_writable_bytes(x));
  return Unit{};
}

}  // namespace gradwire
