// Arrays of numbers in the user's files and messages: a header, then the numbers as they are in memory. This
// file converts bytes to numbers; engine/files/number_file.h reads and writes the files. There are three
// formats; the first bytes of a file tell which one it has.
//
// The format of gradwire has a header of 64 bytes, so mapped numbers begin at a cache line:
//   offset  field          rule
//   0       magic          "GWNUMBER"
//   8       version u8     1
//   9       type u8        a NumberType
//   10      byte order u8  1: lowest byte first, 2: highest byte first; for all fields below and the numbers
//   11      u8             zero
//   12      crc u32        CRC32C over the header, with this field zero, and the numbers
//   16      count u64
//   24      40 bytes       zero
//   64      count numbers, and nothing after them
//
// The format of model.bin, the result of a run, is described in storage/model_file.h.
//
// NumPy's .npy, versions 1.0 to 3.0, with types f2, f4 and f8 (numpy.lib.format in the manual of NumPy). An
// array of several dimensions is read as a list of its numbers in C order.
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

// The type of stored numbers. The values are bytes of the header, so they never change.
enum class NumberType : std::uint8_t { kFp32 = 1, kFp64 = 2, kFp16 = 3, kBf16 = 4, kFp128 = 5 };

std::size_t bytes_per_number(NumberType type);
std::string_view name_of(NumberType type);  // "fp32"

// The NumberType of T, a type that can be saved. base/half.h and engine/tape/float128.h define others.
template <class T>
inline constexpr NumberType kNumberType = T::kNumberType;
template <>
inline constexpr NumberType kNumberType<float> = NumberType::kFp32;
template <>
inline constexpr NumberType kNumberType<double> = NumberType::kFp64;

inline constexpr std::string_view kNumbersMagic = "GWNUMBER";
inline constexpr std::string_view kModelMagic = "GWMODEL1";
inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

// Numbers inside bytes that another object owns.
struct NumbersView {
  NumberType type = NumberType::kFp64;
  std::uint64_t count = 0;
  bool foreign_order = false;  // true if the bytes of each number are not in this processor's order
  std::span<const std::byte> bytes;
};

// The bytes before the numbers, stored without an allocation.
struct NumbersHeader {
  std::array<std::byte, 128> bytes{};
  std::size_t size = 0;
  std::span<const std::byte> span() const { return std::span(bytes).first(size); }
};
NumbersHeader numbers_header(NumberType type, std::span<const std::byte> numbers);
// Returns the header of a .npy file. Fails for types that NumPy does not have.
Result<NumbersHeader> npy_header(NumberType type, std::uint64_t count);

// Reads any of the formats above. Checks magic, version, type, size and checksum. Allocates memory only for
// the text of an error. This text does not name the file.
Result<NumbersView> read_numbers(std::span<const std::byte> bytes);
// Reads bytes without a header.
Result<NumbersView> read_raw_numbers(std::span<const std::byte> bytes, NumberType type);
// Reads the part of model.bin that follows its magic.
Result<NumbersView> read_model_numbers(std::span<const std::byte> bytes);
// Reads a NumPy file.
Result<NumbersView> read_npy(std::span<const std::byte> bytes);

// An array of NumPy inside bytes that another object owns.
struct NpyArray {
  char kind = 'f';  // f: real, i: signed, u: unsigned, b: true or false
  std::size_t bytes_per_number = 8;
  bool foreign_order = false;  // as in NumbersView
  bool fortran_order = false;  // the first index changes fastest
  std::size_t dimensions = 1;
  std::uint64_t rows = 1;   // size of the first dimension; 1 without dimensions
  std::uint64_t count = 0;  // of all numbers
  std::span<const std::byte> bytes;

  // Returns a number of the array, by its place in `bytes`. REQUIRES: place < count.
  double number(std::uint64_t place) const;
};
// Reads a NumPy file of real numbers, integers, or true and false.
Result<NpyArray> read_npy_array(std::span<const std::byte> bytes);

// Returns an error unless the view holds `count` numbers of `type`.
Status check_numbers(const NumbersView& view, NumberType type, std::uint64_t count);
// Copies the numbers in the byte order of this processor. REQUIRES: check_numbers() accepts the view; `to`
// has as many bytes as the numbers.
void copy_numbers(const NumbersView& view, std::span<std::byte> to);

template <class T>
std::vector<std::byte> numbers_to_bytes(std::span<const T> x) {
  const auto numbers = std::as_bytes(x);
  const NumbersHeader header = numbers_header(kNumberType<T>, numbers);
  std::vector<std::byte> bytes(header.span().begin(), header.span().end());
  bytes.insert(bytes.end(), numbers.begin(), numbers.end());
  return bytes;
}
// Reads x.size() numbers of type T. Changes `x` only if the type, the count and the checksum are right.
template <class T>
Status numbers_from_bytes(std::span<const std::byte> bytes, std::span<T> x) {
  const Result<NumbersView> view = read_numbers(bytes);
  if (!view) return view.error();
  if (Status fits = check_numbers(*view, kNumberType<T>, x.size()); !fits) return fits;
  copy_numbers(*view, std::as_writable_bytes(x));
  return Unit{};
}

}  // namespace gradwire
