#include "fl_server/results.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "proto/frame.h"
#include "proto/little_endian.h"

namespace gradwire {
namespace {

constexpr std::array<char, 8> kModelMagic = {'G', 'W', 'M', 'O', 'D', 'E', 'L', '1'};
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

void write_whole(const std::filesystem::path& file, std::string_view bytes) {
  const std::filesystem::path draft = file.string() + ".new";
  std::ofstream out(draft, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) fail(file, "cannot be written; is the folder there, and is there space?");
  std::filesystem::rename(draft, file);
}

MetricsFile::MetricsFile(const std::filesystem::path& file, std::uint32_t first_round) {
  std::string kept = std::string(kMetricsHeader) + '\n';
  std::ifstream in(file, std::ios::binary);
  std::string line;
  std::getline(in, line);
  // Up to the first line that is torn, or that will be written again.
  for (std::uint32_t round = 0; line == kMetricsHeader && std::getline(in, line) && !in.eof();
       line = kMetricsHeader) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), round);
    if (error != std::errc() || end == line.data() + line.size() || *end != ',' || round >= first_round)
      break;
    kept += line + '\n';
  }
  write_whole(file, kept);
  out_.open(file, std::ios::binary | std::ios::app);
  if (!out_) fail(file, "cannot be written; is the folder there, and is there space?");
}

MetricsFile::MetricsFile(const std::filesystem::path& file) : out_(file, std::ios::binary | std::ios::trunc) {
  out_ << kMetricsHeader << '\n' << std::flush;
  if (!out_) fail(file, "cannot be written; is the folder there, and is there space?");
}

void MetricsFile::write(const RoundRecord& record) {
  // One write per line, so that a reader never sees half of one.
  const std::string line = metrics_line(record) + '\n';
  out_.write(line.data(), static_cast<std::streamsize>(line.size())).flush();
  if (!out_) throw std::runtime_error("metrics.csv cannot be written; is the disk full?");
}

std::string metrics_line(const RoundRecord& r) {
  std::array<char, 32> accuracy{};
  if (r.accuracy) std::snprintf(accuracy.data(), accuracy.size(), "%.17g", *r.accuracy);
  std::array<char, 400> line;
  const int size = std::snprintf(
      line.data(), line.size(), "%u,%.17g,%.17g,%s,%.17g,%.17g,%llu,%llu,%.17g,%u,%.17g,%.17g,%.17g", r.round,
      r.loss, r.grad_norm_sq, accuracy.data(), r.bits_up, r.bits_down,
      static_cast<unsigned long long>(r.bytes_up), static_cast<unsigned long long>(r.bytes_down),
      r.grad_calls, r.replies, r.seconds, r.bits_up_paper, r.bits_down_paper);
  return std::string(line.data(), static_cast<std::size_t>(size));
}

template <class Real>
void write_model(const std::filesystem::path& file, std::span<const Real> x) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  std::string bytes(kModelMagic.data(), kModelMagic.size());
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
  if (bytes.size() < kModelHeaderBytes + kModelCrcBytes ||
      std::memcmp(bytes.data(), kModelMagic.data(), 8) != 0)
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
