// Bytes of data files. The first bytes of a file tell whether it is compressed by gzip, bzip2 or xz. All
// sizes are bounded. Files with another compression are refused with the command that unpacks them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace gradwire {

// The limit for one data file after inflation. A compressed file may grow a thousandfold, so its own size is
// not a bound.
inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << (sizeof(std::size_t) > 4 ? 33 : 30);

// A stream of bytes.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills the front of `to`, which must not be empty. Returns the number of bytes: at least one, or 0 at the
  // end. Throws DataError if they cannot be read or are damaged.
  virtual std::size_t read(std::span<char> to) = 0;
};

// Returns a stream of the bytes of `path`, which does not hold all of them in memory. Throws DataError if the
// file cannot be opened. Reading beyond `max_bytes` also throws.
std::unique_ptr<ByteStream> stream_file_bytes(const std::filesystem::path& path,
                                              std::size_t max_bytes = kMaxFileBytes);

// Returns all bytes of `path`. Throws DataError if it cannot be read, is damaged, or holds more than
// `max_bytes`.
std::string read_file_bytes(const std::filesystem::path& path, std::size_t max_bytes = kMaxFileBytes);

// Returns the same without inflation: the bytes as they are in the file.
std::string read_packed_bytes(const std::filesystem::path& path, std::size_t max_bytes = kMaxFileBytes);

// Return the same as the first two for a text file, without its byte-order mark. Also throw DataError for
// UTF-16.
std::unique_ptr<ByteStream> stream_text_file(const std::filesystem::path& path);
std::string read_text_file(const std::filesystem::path& path);

// Returns the first `count` bytes of `path`, or fewer if it ends earlier. The rest is neither inflated nor
// checked.
std::string read_file_prefix(const std::filesystem::path& path, std::size_t count);

// Returns the first `max_bytes` bytes of the compressed bytes `packed`, or fewer if they end earlier. `name`
// is for errors.
std::string inflate_prefix(std::string_view packed, const std::string& name, std::size_t max_bytes);

}  // namespace gradwire
