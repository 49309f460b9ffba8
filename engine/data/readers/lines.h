// Helpers of the readers of text formats: numbered lines, numbers, and errors with FILE:LINE.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/readers/bytes.h"

namespace gradwire {

// Walks over the lines of a text, or of a file that is too large for memory.
class Lines {
 public:
  // With `keeps_blanks`, lines keep their trailing spaces and tabs.
  explicit Lines(std::string_view text, bool keeps_blanks = false)
      : rest_(text), keeps_blanks_(keeps_blanks) {}
  explicit Lines(ByteStream& stream, bool keeps_blanks = false)
      : stream_(&stream), keeps_blanks_(keeps_blanks) {}
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // Returns the next line without its end (LF, CR LF or CR) and, by default, without trailing spaces and
  // tabs, or nullopt after the last one. The line of a stream is valid until the next call.
  std::optional<std::string_view> next();

  std::size_t number() const { return number_; }  // the number of the line that next() returned, from 1

 private:
  // Reads more of the stream. Returns false at its end.
  bool read_on();

  std::string_view rest_;         // bytes read but not returned; in `buffer_` for a stream
  ByteStream* stream_ = nullptr;  // null if `rest_` holds the whole text
  std::vector<char> buffer_;
  std::size_t number_ = 0;
  bool keeps_blanks_;
};

// Parses the whole text as a correctly rounded double; a leading '+' is allowed. "nan", "inf" and overflow
// give a result that is not finite. Returns nullopt if the text is not a number.
std::optional<double> parse_number(std::string_view text);

// Returns `text` in quotes for a one-line message, shortened and without control characters.
std::string quoted(std::string_view text);

// Returns the error "FILE:LINE: what".
DataError error_at(const std::string& file, std::size_t line, const std::string& what);

}  // namespace gradwire
