#include "storage/model_file.h"

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "base/half.h"
#include "engine/files/number_file.h"
#include "proto/wire/little_endian.h"
#include "storage/atomic_file.h"

namespace gradwire {
namespace {

template <class T>
std::vector<double> converted(const NumbersView& view) {
  std::vector<T> x(view.count);
  copy_numbers(view, std::as_writable_bytes(std::span(x)));
  std::vector<double> doubles;
  doubles.reserve(x.size());
  for (const T number : x) doubles.push_back(static_cast<double>(number));
  return doubles;
}

}  // namespace

static_assert(std::endian::native == std::endian::little, "numbers of model.bin are written in memory order");

template <class Real>
void write_model(const std::filesystem::path& file, std::span<const Real> x) {
  write_model(*disk_of(file), file.filename().string(), x);
}

template <class Real>
void write_model(Disk& disk, const std::string& name, std::span<const Real> x) {
  std::string header(kModelMagic), end;
  put<std::uint32_t>(header, sizeof(Real));
  put<std::uint32_t>(header, 0);
  put<std::uint64_t>(header, x.size());
  const auto numbers = std::as_bytes(x);
  put(end, crc32c(numbers, crc32c(std::as_bytes(std::span(header)))));
  const std::string_view segments[] = {
      header, {reinterpret_cast<const char*>(numbers.data()), numbers.size()}, end};
  write_whole(disk, name, segments);
}

template void write_model(const std::filesystem::path&, std::span<const float>);
template void write_model(const std::filesystem::path&, std::span<const double>);
template void write_model(Disk&, const std::string&, std::span<const float>);
template void write_model(Disk&, const std::string&, std::span<const double>);

std::vector<double> read_model(const std::filesystem::path& file) {
  const Result<FileBytes> bytes = FileBytes::open(file);
  if (!bytes) throw std::runtime_error(bytes.error().message);
  const Result<NumbersView> view = read_numbers(bytes->bytes());
  if (!view) throw std::runtime_error(file_error(file, view.error()).message);
  Result<std::vector<double>> x = model_numbers(*view);
  if (!x) throw std::runtime_error(file_error(file, x.error()).message);
  return std::move(*x);
}

Result<std::vector<double>> model_numbers(const NumbersView& view) {
  switch (view.type) {
    case NumberType::kFp32: return converted<float>(view);
    case NumberType::kFp64: return converted<double>(view);
    case NumberType::kFp16: return converted<Float16>(view);
    case NumberType::kBf16: return converted<BFloat16>(view);
    case NumberType::kFp128: break;
  }
  return Error{"holds numbers of " + std::string(name_of(view.type)) +
               "; a model is read from fp16, bfloat16, fp32 or fp64"};
}

}  // namespace gradwire
