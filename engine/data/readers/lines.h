// What the readers of text formats share: lines with numbers, numbers, and errors that say where.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/readers/bytes.h"

namespace gradwire {

// Walks over the lines of a text, or of a file that is too large to be in memory.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  explicit Lines(ByteStream& stream) : stream_(&stream) {}
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // Returns the next line without its end (LF, CR LF or CR) and without trailing spaces and tabs; nothing
  // after the last one. The line of a stream lives until the next call.
  std::optional<std::string_view> next();

  std::size_t number() const { return number_; }  // of the line that next() gave, from 1

 private:
  // Reads on where a stream goes on; false at its end.
  bool read_on();

  std::string_view rest_;         // what has been read and not given; of a stream it lies in `buffer_`
  ByteStream* stream_ = nullptr;  // null: `rest_` has all
  std::vector<char> buffer_;
  std::size_t number_ = 0;
};

bool is_blank(char c);  // space or tab
std::string_view trim(std::string_view text);

// The whole of `text` as a correctly rounded double, a leading '+' allowed; not finite for "nan", "inf" and
// what overflows. Nothing when it is not a number.
std::optional<double> parse_number(std::string_view text);

// `text` in quotes for a one-line message: shortened, without control characters.
std::string quoted(std::string_view text);

// "FILE:LINE: what"
DataError error_at(const std::string& file, std::size_t line, const std::string& what);

}  // namespace gradwire
