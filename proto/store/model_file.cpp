#include "proto/store/model_file.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "proto/store/whole_file.h"
#include "proto/wire/frame.h"
#include "proto/wire/little_endian.h"

namespace gradwire {
namespace {

constexpr std::size_t kModelHeaderBytes = 24;  // magic, bytes per number, zero, d
constexpr std::size_t kModelCrcBytes = 4;

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  throw std::runtime_error(file.string() + ": " + what);
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The numbers of a model.bin's body.
template <class Real, class Bits>
std::vector<double> numbers(std::string_view bytes, std::uint64_t d) {
  std::vector<double> x(d);
  for (std::uint64_t j = 0; j < d; ++j) {
    const Bits bits = get<Bits>(bytes, j * sizeof bits);
    Real value;
    std::memcpy(&value, &bits, sizeof value);
    x[j] = static_cast<double>(value);
  }
  return x;
}

std::string read_all(const std::filesystem::path& file) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  std::ifstream in(file, std::ios::binary);
  if (error || !in) fail(file, "cannot be read");
  std::string bytes(size, '\0');
  if (!in.read(bytes.data(), static_cast<std::streamsize>(size))) fail(file, "cannot be read to its end");
  return bytes;
}

}  // namespace

template <class Real>
void write_model(const std::filesystem::path& file, std::span<const Real> x) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  std::string bytes(kModelMagic);
  bytes.reserve(kModelHeaderBytes + x.size() * sizeof(Real) + kModelCrcBytes);
  put<std::uint32_t>(bytes, sizeof(Real));
  put<std::uint32_t>(bytes, 0);
  put<std::uint64_t>(bytes, x.size());
  for (const Real value : x) {
    Bits bits;
    std::memcpy(&bits, &value, sizeof bits);
    put(bytes, bits);
  }
  put(bytes, crc32c(bytes_of(bytes)));
  write_whole(file, bytes);
}

template void write_model(const std::filesystem::path&, std::span<const float>);
template void write_model(const std::filesystem::path&, std::span<const double>);

std::vector<double> read_model(const std::filesystem::path& file) {
  std::string bytes = read_all(file);
  if (bytes.size() < kModelHeaderBytes + kModelCrcBytes || !bytes.starts_with(kModelMagic))
    fail(file, "is no model.bin of gradwire");
  const auto width = get<std::uint32_t>(bytes, 8);
  const auto d = get<std::uint64_t>(bytes, 16);
  const std::uint64_t body = bytes.size() - kModelHeaderBytes - kModelCrcBytes;
  if ((width != 4 && width != 8) || get<std::uint32_t>(bytes, 12) != 0 || body % width != 0 ||
      d != body / width)
    fail(file, "is cut short or damaged: its header and its size do not agree");
  const auto crc = get<std::uint32_t>(bytes, bytes.size() - kModelCrcBytes);
  bytes.resize(bytes.size() - kModelCrcBytes);
  if (crc32c(bytes_of(bytes)) != crc) fail(file, "is damaged: its checksum is wrong");
  const std::string_view body_bytes = std::string_view(bytes).substr(kModelHeaderBytes);
  return width == 4 ? numbers<float, std::uint32_t>(body_bytes, d)
                    : numbers<double, std::uint64_t>(body_bytes, d);
}

}  // namespace gradwire
