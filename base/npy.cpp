// NumPy files: magic, two bytes of version, the length of the header (u16 in version 1, u32 later), and a
// Python literal, {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }, padded with blanks.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <optional>

#include "base/array_format.h"
#include "base/half.h"

namespace gradwire {
namespace {

constexpr std::size_t kVersionAt = 6, kLongestHeader = std::size_t{1} << 16, kAlignment = 64;
constexpr bool kLittle = std::endian::native == std::endian::little;

// Parses the literal from front to back. Once it meets unexpected text, it stays failed.
class Literal {
 public:
  explicit Literal(std::string_view text) : rest_(text) {}

  bool failed() const { return failed_; }
  bool take(char c) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) { failed_ = !take(c) || failed_; }
  std::string_view string() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"') expect(quote);
    const std::string_view text = rest_.substr(0, rest_.find(quote));
    rest_.remove_prefix(text.size());
    expect(quote);
    // NumPy writes plain ASCII. Messages quote this text, so reject all else.
    const auto strange = [](char c) { return c < 0x20 || c > 0x7e; };
    failed_ = failed_ || std::any_of(text.begin(), text.end(), strange);
    return text;
  }
  bool boolean() {
    skip_blanks();
    for (const std::string_view word : {std::string_view("True"), std::string_view("False")})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return word.size() == 4;
      }
    failed_ = true;
    return false;
  }
  std::uint64_t integer() {
    skip_blanks();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    failed_ = failed_ || error != std::errc();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }

 private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }

  std::string_view rest_;
  bool failed_ = false;
};

struct NpyFields {
  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<std::uint64_t> count;
  std::size_t dimensions = 0;
  std::size_t long_dimensions = 0;  // dimensions of size above one
  std::uint64_t rows = 1;           // size of the first dimension
};

// Returns the number of elements, or nullopt if it exceeds 64 bits.
std::optional<std::uint64_t> shape(Literal& text, NpyFields& fields) {
  std::uint64_t count = 1;
  bool zero = false, too_many = false;
  text.expect('(');
  while (!text.failed() && !text.take(')')) {
    const std::uint64_t size = text.integer();
    if (fields.dimensions++ == 0) fields.rows = size;
    fields.long_dimensions += size > 1;
    zero = zero || size == 0;
    too_many = too_many || (size > 0 && count > std::numeric_limits<std::uint64_t>::max() / size);
    if (size > 0 && !too_many) count *= size;
    if (text.take(')')) break;
    text.expect(',');
  }
  if (zero) return 0;
  return too_many ? std::nullopt : std::optional(count);
}

std::optional<NpyFields> fields_of(std::string_view header) {
  Literal text(header);
  NpyFields fields;
  text.expect('{');
  while (!text.failed() && !text.take('}')) {
    const std::string_view key = text.string();
    text.expect(':');
    if (key == "descr" && !fields.descr) {
      fields.descr = text.string();
    } else if (key == "fortran_order" && !fields.fortran_order) {
      fields.fortran_order = text.boolean();
    } else if (key == "shape" && !fields.count) {
      fields.count = shape(text, fields);
      if (!fields.count) return std::nullopt;
    } else {
      return std::nullopt;
    }
    if (text.take('}')) break;
    text.expect(',');
  }
  if (text.failed() || !text.at_end() || !fields.descr || !fields.fortran_order || !fields.count)
    return std::nullopt;
  return fields;
}

std::optional<NumberType> type_of(std::string_view code) {
  if (code == "f2") return NumberType::kFp16;
  if (code == "f4") return NumberType::kFp32;
  if (code == "f8") return NumberType::kFp64;
  return std::nullopt;
}

std::size_t little(std::span<const std::byte> bytes) {
  std::size_t value = 0;
  for (std::size_t k = 0; k < bytes.size(); ++k) value |= static_cast<std::size_t>(bytes[k]) << (8 * k);
  return value;
}

}  // namespace

Result<NumbersHeader> npy_header(NumberType type, std::uint64_t count) {
  std::string_view code = type == NumberType::kFp16 ? "f2" : type == NumberType::kFp32 ? "f4" : "f8";
  if (type_of(code) != type)
    return Error{"cannot store " + std::string(name_of(type)) +
                 ": NumPy lacks this type; convert the numbers, or use another file ending than .npy"};
  NumbersHeader header;
  header.size = header.bytes.size();
  constexpr std::size_t kFront = 10;
  std::string text = "{'descr': '" + std::string(1, kLittle ? '<' : '>') + std::string(code) +
                     "', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }";
  text.resize(header.size - kFront - 1, ' ');
  text += '\n';
  std::memcpy(header.bytes.data(), kNpyMagic.data(), kNpyMagic.size());
  header.bytes[kVersionAt] = std::byte{1};
  header.bytes[8] = static_cast<std::byte>(text.size());
  std::memcpy(&header.bytes[kFront], text.data(), text.size());
  static_assert(sizeof header.bytes % kAlignment == 0 && sizeof header.bytes - kFront < 256);
  return header;
}

namespace {

struct NpyFile {
  NpyFields fields;
  std::span<const std::byte> numbers;

  bool foreign_order() const {
    const char order = fields.descr->front();
    return order != '|' && (order == '<' || (order == '=' && kLittle)) != kLittle;
  }
};

Result<NpyFile> read_npy_file(std::span<const std::byte> bytes) {
  if (bytes.size() < 12) return Error{"is cut short inside its header; copy the file again"};
  const auto version = static_cast<unsigned>(bytes[kVersionAt]);
  if (version < 1 || version > 3 || bytes[kVersionAt + 1] != std::byte{0})
    return Error{"has version " + std::to_string(version) + "." +
                 std::to_string(static_cast<unsigned>(bytes[kVersionAt + 1])) +
                 " of the format .npy; this program reads 1.0 to 3.0"};
  const std::size_t front = version == 1 ? 10 : 12;
  const std::size_t length = little(bytes.subspan(8, front - 8));
  if (length > kLongestHeader)
    return Error{"has a header of " + std::to_string(length) + " bytes; at most " +
                 std::to_string(kLongestHeader) + " are allowed"};
  if (length > bytes.size() - front) return Error{"is cut short inside its header; copy the file again"};
  const auto fields = fields_of({reinterpret_cast<const char*>(bytes.data()) + front, length});
  if (!fields)
    return Error{"has a header that is not of a plain array; save one array of numbers with numpy.save"};
  return NpyFile{*fields, bytes.subspan(front + length)};
}

// Returns an error unless the file has as many bytes as its header says.
Status check_size(const NpyFile& file, std::uint64_t bytes_per_number) {
  if (file.numbers.size() % bytes_per_number == 0 &&
      file.numbers.size() / bytes_per_number == *file.fields.count)
    return Unit{};
  return Error{"has " + std::to_string(file.numbers.size()) + " bytes of numbers, but its header says " +
               std::to_string(*file.fields.count) + " of " + std::string(*file.fields.descr) +
               "; copy the file again"};
}

template <class T>
double number_at(const std::byte* at, bool foreign_order) {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), at, sizeof(T));
  if (foreign_order) std::reverse(bytes.begin(), bytes.end());
  return static_cast<double>(std::bit_cast<T>(bytes));
}

}  // namespace

Result<NumbersView> read_npy(std::span<const std::byte> bytes) {
  const Result<NpyFile> file = read_npy_file(bytes);
  if (!file) return file.error();
  const std::string_view descr = *file->fields.descr;
  const auto type = type_of(descr.substr(descr.empty() ? 0 : 1));
  if (!type || std::string_view("<>=").find(descr.front()) == std::string_view::npos)
    return Error{"holds numbers of type '" + std::string(descr.substr(0, 16)) +
                 "'; this program reads f2, f4 and f8: save x.astype('f8')"};
  if (*file->fields.fortran_order && file->fields.long_dimensions > 1)
    return Error{"holds an array in Fortran order; save numpy.ascontiguousarray(x)"};
  if (Status fits = check_size(*file, bytes_per_number(*type)); !fits) return fits.error();
  return NumbersView{*type, *file->fields.count, file->foreign_order(), file->numbers};
}

Result<NpyArray> read_npy_array(std::span<const std::byte> bytes) {
  const Result<NpyFile> file = read_npy_file(bytes);
  if (!file) return file.error();
  const std::string_view descr = *file->fields.descr, code = descr.substr(descr.empty() ? 0 : 1);
  constexpr auto kCodes = std::to_array<std::string_view>(
      {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"});
  if (std::find(kCodes.begin(), kCodes.end(), code) == kCodes.end() ||
      std::string_view("<>=|").find(descr.front()) == std::string_view::npos)
    return Error{"holds values of type '" + std::string(descr.substr(0, 16)) +
                 "'; this program reads numbers: save x.astype('f8')"};
  NpyArray array;
  array.kind = code[0];
  array.bytes_per_number = static_cast<std::size_t>(code[1] - '0');
  if (Status fits = check_size(*file, array.bytes_per_number); !fits) return fits.error();
  array.foreign_order = file->foreign_order();
  array.fortran_order = *file->fields.fortran_order && file->fields.long_dimensions > 1;
  array.dimensions = file->fields.dimensions;
  array.rows = file->fields.rows;
  array.count = *file->fields.count;
  array.bytes = file->numbers;
  return array;
}

double NpyArray::number(std::uint64_t place) const {
  const std::byte* const at = bytes.data() + place * bytes_per_number;
  switch (kind) {
    case 'f':
      if (bytes_per_number == 2) return number_at<Float16>(at, foreign_order);
      return bytes_per_number == 4 ? number_at<float>(at, foreign_order)
                                   : number_at<double>(at, foreign_order);
    case 'i':
      if (bytes_per_number == 1) return number_at<std::int8_t>(at, false);
      if (bytes_per_number == 2) return number_at<std::int16_t>(at, foreign_order);
      return bytes_per_number == 4 ? number_at<std::int32_t>(at, foreign_order)
                                   : number_at<std::int64_t>(at, foreign_order);
    case 'u':
      if (bytes_per_number == 1) return number_at<std::uint8_t>(at, false);
      if (bytes_per_number == 2) return number_at<std::uint16_t>(at, foreign_order);
      return bytes_per_number == 4 ? number_at<std::uint32_t>(at, foreign_order)
                                   : number_at<std::uint64_t>(at, foreign_order);
    default: return bytes[place] != std::byte{0} ? 1 : 0;
  }
}

}  // namespace gradwire
