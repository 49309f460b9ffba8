#include "proto/store/model_file.h"

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "base/crc32c.h"
#include "base/numbers.h"
#include "engine/files/number_file.h"
#include "proto/store/whole_file.h"
#include "proto/wire/little_endian.h"

namespace gradwire {
namespace {

constexpr std::size_t kModelHeaderBytes = 24;  // magic, bytes per number, zero, d
constexpr std::size_t kModelCrcBytes = 4;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

template <class Real>
std::vector<double> converted(const NumbersView& view) {
  std::vector<Real> x(view.count);
  copy_numbers(view, std::as_writable_bytes(std::span(x)));
  return {x.begin(), x.end()};
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
  const Result<FileBytes> bytes = FileBytes::open(file);
  if (!bytes) throw std::runtime_error(bytes.error().message);
  const Result<NumbersView> view = read_numbers(bytes->bytes());
  if (!view) throw std::runtime_error(file_error(file, view.error()).message);
  switch (view->type) {
    case NumberType::kFp32: return converted<float>(*view);
    case NumberType::kFp64: return converted<double>(*view);
    default: break;
  }
  throw std::runtime_error(file.string() + ": holds numbers of " + std::string(name_of(view->type)) +
                           "; a model is read from fp32 or fp64");
}

}  // namespace gradwire
