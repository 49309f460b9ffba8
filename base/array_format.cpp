#include "base/array_format.h"

#include <algorithm>
#include <limits>

#include "base/crc32c.h"

namespace gradwire {
namespace {

static_assert(std::endian::native == std::endian::little || std::endian::native == std::endian::big);

constexpr std::size_t kHeaderBytes = 64, kCrcAt = 12, kCountAt = 16, kReservedAt = 24;
constexpr std::uint8_t kVersion = 1, kLowestFirst = 1, kHighestFirst = 2;
constexpr std::uint8_t kNativeOrder =
    std::endian::native == std::endian::little ? kLowestFirst : kHighestFirst;
constexpr std::size_t kModelHeaderBytes = 24, kModelCrcBytes = 4;

template <class T>
T get(std::span<const std::byte> from, std::size_t at, bool lowest_first) {
  T value = 0;
  for (std::size_t k = 0; k < sizeof value; ++k) {
    const std::size_t byte = lowest_first ? k : sizeof value - 1 - k;
    value |= static_cast<T>(static_cast<T>(from[at + byte]) << (8 * k));
  }
  return value;
}

bool is_type(std::uint8_t type) { return type >= 1 && type <= static_cast<std::uint8_t>(NumberType::kFp128); }

bool starts_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

// Returns an error unless exactly `count` numbers follow the header.
Status check_size(std::uint64_t there, std::uint64_t count, NumberType type) {
  const std::uint64_t size = bytes_per_number(type);
  if (count <= std::numeric_limits<std::uint64_t>::max() / size && there == count * size) return Unit{};
  const bool short_of = count > there / size;
  return Error{std::string(short_of ? "is cut short" : "has bytes after its numbers") + ": its header says " +
               std::to_string(count) + " numbers of " + std::string(name_of(type)) + ", and " +
               std::to_string(there) + " bytes follow; copy the file again"};
}

Error damaged() { return {"is damaged: its checksum is wrong; copy the file again"}; }

Result<NumbersView> read_own(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes) return Error{"is cut short inside its header; copy the file again"};
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); };
  if (byte(8) != kVersion)
    return Error{"has version " + std::to_string(byte(8)) + " of the format; this program reads version " +
                 std::to_string(kVersion)};
  if (!is_type(byte(9)) || (byte(10) != kLowestFirst && byte(10) != kHighestFirst) || byte(11) != 0)
    return Error{"has an unknown number type or byte order; check for a newer version of gradwire"};
  const bool lowest_first = byte(10) == kLowestFirst;
  NumbersView view;
  view.type = static_cast<NumberType>(byte(9));
  view.count = get<std::uint64_t>(bytes, kCountAt, lowest_first);
  view.foreign_order = byte(10) != kNativeOrder;
  view.bytes = bytes.subspan(kHeaderBytes);
  for (std::size_t at = kReservedAt; at < kHeaderBytes; ++at)
    if (byte(at) != 0) return Error{"has an unknown header; check for a newer version of gradwire"};
  if (Status fits = check_size(view.bytes.size(), view.count, view.type); !fits) return fits.error();
  std::array<std::byte, kHeaderBytes> header;
  std::copy_n(bytes.begin(), kHeaderBytes, header.begin());
  std::fill_n(header.begin() + kCrcAt, 4, std::byte{0});
  if (crc32c(view.bytes, crc32c(header)) != get<std::uint32_t>(bytes, kCrcAt, lowest_first)) return damaged();
  return view;
}

}  // namespace

std::size_t bytes_per_number(NumberType type) {
  switch (type) {
    case NumberType::kFp32: return 4;
    case NumberType::kFp64: return 8;
    case NumberType::kFp16:
    case NumberType::kBf16: return 2;
    case NumberType::kFp128: break;
  }
  return 16;
}

std::string_view name_of(NumberType type) {
  switch (type) {
    case NumberType::kFp32: return "fp32";
    case NumberType::kFp64: return "fp64";
    case NumberType::kFp16: return "fp16";
    case NumberType::kBf16: return "bfloat16";
    case NumberType::kFp128: break;
  }
  return "fp128";
}

NumbersHeader numbers_header(NumberType type, std::span<const std::byte> numbers) {
  NumbersHeader header;
  header.size = kHeaderBytes;
  std::memcpy(header.bytes.data(), kNumbersMagic.data(), kNumbersMagic.size());
  header.bytes[8] = std::byte{kVersion};
  header.bytes[9] = static_cast<std::byte>(type);
  header.bytes[10] = std::byte{kNativeOrder};
  const std::uint64_t count = numbers.size() / bytes_per_number(type);
  std::memcpy(&header.bytes[kCountAt], &count, sizeof count);
  const std::uint32_t crc = crc32c(numbers, crc32c(header.span()));
  std::memcpy(&header.bytes[kCrcAt], &crc, sizeof crc);
  return header;
}

Result<NumbersView> read_model_numbers(std::span<const std::byte> bytes) {
  if (bytes.size() < kModelHeaderBytes + kModelCrcBytes || !starts_with(bytes, kModelMagic))
    return Error{"is not a model.bin of gradwire"};
  const auto width = get<std::uint32_t>(bytes, 8, true);
  NumbersView view;
  view.type = width == 4 ? NumberType::kFp32 : NumberType::kFp64;
  view.count = get<std::uint64_t>(bytes, 16, true);
  view.foreign_order = std::endian::native != std::endian::little;
  const auto checked = bytes.first(bytes.size() - kModelCrcBytes);
  view.bytes = checked.subspan(kModelHeaderBytes);
  if ((width != 4 && width != 8) || get<std::uint32_t>(bytes, 12, true) != 0 ||
      !check_size(view.bytes.size(), view.count, view.type))
    return Error{"is cut short or damaged: its header does not match its size"};
  if (crc32c(checked) != get<std::uint32_t>(bytes, checked.size(), true)) return damaged();
  return view;
}

Result<NumbersView> read_numbers(std::span<const std::byte> bytes) {
  if (starts_with(bytes, kNumbersMagic)) return read_own(bytes);
  if (starts_with(bytes, kModelMagic)) return read_model_numbers(bytes);
  if (starts_with(bytes, kNpyMagic)) return read_npy(bytes);
  return Error{"is not a file of numbers: it begins neither like a file of gradwire nor like one of NumPy"};
}

Result<NumbersView> read_raw_numbers(std::span<const std::byte> bytes, NumberType type) {
  const std::size_t size = bytes_per_number(type);
  if (bytes.size() % size != 0)
    return Error{"has " + std::to_string(bytes.size()) + " bytes, which is not a multiple of the size of " +
                 std::string(name_of(type))};
  return NumbersView{type, bytes.size() / size, false, bytes};
}

Status check_numbers(const NumbersView& view, NumberType type, std::uint64_t count) {
  if (view.type == type && view.count == count) return Unit{};
  return Error{"holds " + std::to_string(view.count) + " numbers of " + std::string(name_of(view.type)) +
               ", but " + std::to_string(count) + " of " + std::string(name_of(type)) + " are expected"};
}

void copy_numbers(const NumbersView& view, std::span<std::byte> to) {
  if (!view.bytes.empty()) std::memcpy(to.data(), view.bytes.data(), view.bytes.size());
  if (!view.foreign_order) return;
  const std::size_t size = bytes_per_number(view.type);
  for (std::size_t at = 0; at < to.size(); at += size) std::reverse(&to[at], &to[at] + size);
}

}  // namespace gradwire
