#include "fl_server/results.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "proto/folder_disk.h"
#include "proto/frame.h"
#include "proto/little_endian.h"

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

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t comma = line.find(','); comma != std::string_view::npos; comma = line.find(',')) {
    cells.push_back(line.substr(0, comma));
    line.remove_prefix(comma + 1);
  }
  cells.push_back(line);
  return cells;
}

// For each of our columns: its place in the lines of a file with this header; past the end if it has none.
std::vector<std::size_t> places_of_columns(std::string_view header) {
  const std::vector<std::string_view> theirs = cells_of(header);
  std::vector<std::size_t> places;
  for (const std::string_view name : cells_of(kMetricsHeader))
    places.push_back(
        static_cast<std::size_t>(std::find(theirs.begin(), theirs.end(), name) - theirs.begin()));
  return places;
}

// Converts a line to our columns. What it does not have becomes empty (accuracy) or 0.
std::string in_our_columns(std::string_view line, const std::vector<std::size_t>& places) {
  constexpr std::size_t kAccuracy = 3;
  const std::vector<std::string_view> cells = cells_of(line);
  std::string text;
  for (std::size_t k = 0; k < places.size(); ++k) {
    if (k > 0) text += ',';
    text += places[k] < cells.size() ? cells[places[k]] : k == kAccuracy ? "" : "0";
  }
  return text;
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

// The header and the lines of earlier rounds, up to the first that is torn or that will be written again.
std::string lines_before(std::string_view text, std::uint32_t first_round) {
  std::string kept = std::string(kMetricsHeader) + '\n';
  const std::string_view header = first_line(text);
  if (header.size() == text.size() || !header.starts_with("round,")) return kept;
  const std::vector<std::size_t> places = places_of_columns(header);
  text.remove_prefix(header.size() + 1);
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    std::uint32_t round = 0;
    const auto [after, error] = std::from_chars(text.data(), text.data() + end, round);
    if (error != std::errc() || *after != ',' || round >= first_round) break;
    const std::string_view line = text.substr(0, end);
    kept += header == kMetricsHeader ? std::string(line) : in_our_columns(line, places);
    kept += '\n';
    text.remove_prefix(end + 1);
  }
  return kept;
}

// `lines`: from lines_before().
std::optional<double> loss_of_row_0(std::string_view lines) {
  constexpr std::string_view kRow0 = "0,";
  lines.remove_prefix(kMetricsHeader.size() + 1);
  double loss = 0;
  if (!lines.starts_with(kRow0) ||
      std::from_chars(lines.data() + kRow0.size(), lines.data() + lines.size(), loss).ec != std::errc())
    return std::nullopt;
  return loss;
}

template <class T>
void read_number(std::string_view cell, T& value) {
  std::from_chars(cell.data(), cell.data() + cell.size(), value);
}

// `lines`: from lines_before().
std::optional<RoundRecord> last_row(std::string_view lines) {
  lines.remove_suffix(1);
  const std::size_t newline = lines.rfind('\n');
  if (newline == std::string_view::npos) return std::nullopt;  // the header alone
  const std::vector<std::string_view> cells = cells_of(lines.substr(newline + 1));
  if (cells.size() != cells_of(kMetricsHeader).size()) return std::nullopt;
  RoundRecord r;
  std::size_t k = 0;
  const auto read = [&](auto& value) { read_number(cells[k++], value); };
  read(r.round), read(r.loss), read(r.grad_norm_sq);
  if (const std::string_view accuracy = cells[k++]; !accuracy.empty())
    read_number(accuracy, r.accuracy.emplace());
  read(r.bits_up), read(r.bits_down), read(r.bytes_up), read(r.bytes_down), read(r.grad_calls),
      read(r.replies);
  read(r.seconds), read(r.bits_up_paper), read(r.bits_down_paper);
  return r;
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

void write_whole(Disk& disk, const std::string& name, std::string_view bytes) {
  const std::string draft = name + ".new";
  throw_if_failed(disk.write(draft, std::span(&bytes, 1)));
  throw_if_failed(disk.sync(draft));
  throw_if_failed(disk.rename(draft, name));
  throw_if_failed(disk.sync_folder());
}

void write_whole(const std::filesystem::path& file, std::string_view bytes) {
  FolderDisk disk(folder_of(file));
  write_whole(disk, file.filename().string(), bytes);
}

MetricsFile::MetricsFile(const std::filesystem::path& file, std::uint32_t first_round, Durability durability)
    : MetricsFile(std::make_shared<FolderDisk>(folder_of(file)), file.filename().string(), first_round,
                  durability) {}

MetricsFile::MetricsFile(std::shared_ptr<Disk> disk, std::string name, std::uint32_t first_round,
                         Durability durability)
    : disk_(std::move(disk)), name_(std::move(name)), durability_(durability) {
  const Result<std::string> before = first_round > 0 ? disk_->read(name_) : std::string();
  const std::string_view text = before ? std::string_view(*before) : std::string_view();
  if (text.find('\n') != std::string_view::npos && first_line(text) != kMetricsHeader) {
    set_aside_ = name_ + ".before";
    write_whole(*disk_, set_aside_, text);
  }
  const std::string kept = lines_before(text, first_round);
  write_whole(*disk_, name_, kept);
  loss_at_start_ = loss_of_row_0(kept);
  last_ = last_row(kept);
}

void MetricsFile::write(const RoundRecord& record) {
  if (record.round == 0) loss_at_start_ = record.loss;
  last_ = record;
  // One write per line, so that a reader never sees half of one.
  const std::string line = metrics_line(record) + '\n';
  const std::string_view piece = line;
  throw_if_failed(disk_->append(name_, std::span(&piece, 1)));
  if (durability_ == Durability::kPower) throw_if_failed(disk_->sync(name_));
}

std::optional<std::uint32_t> last_round_of_metrics(const std::filesystem::path& file) {
  constexpr std::streamoff kLongestLine = 4096;
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return std::nullopt;
  const std::streamoff size = in.tellg(), from = std::max<std::streamoff>(0, size - 2 * kLongestLine);
  std::string text(static_cast<std::size_t>(size - from), '\0');
  if (!in.seekg(from).read(text.data(), size - from)) return std::nullopt;
  text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n'));
  const std::size_t start = text.rfind('\n');
  if (start == std::string::npos) return std::nullopt;  // the header
  std::uint32_t round = 0;
  const auto [end, error] = std::from_chars(text.data() + start + 1, text.data() + text.size(), round);
  return error == std::errc() && *end == ',' ? std::optional(round) : std::nullopt;
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
