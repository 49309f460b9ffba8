// Bytes of data files: plain or gzipped, told apart by their first two bytes, never without a bound. Files of
// other compressors are refused with the command that unpacks them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace gradwire {

// The limit for one data file after inflation. A gzip stream may grow a thousandfold, so its own size is no
// bound.
inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << (sizeof(std::size_t) > 4 ? 33 : 30);

// Bytes from first to last.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills the front of `to`, which is not empty; returns how many bytes, at least one but at the end. Throws
  // DataError when they cannot be read or are damaged.
  virtual std::size_t read(std::span<char> to) = 0;
};

// The bytes of `path`, never all of them in memory. Throws DataError when it cannot be opened; so does
// reading beyond `max_bytes`.
std::unique_ptr<ByteStream> stream_file_bytes(const std::filesystem::path& path,
                                              std::size_t max_bytes = kMaxFileBytes);

// All bytes of `path`. Throws DataError when it cannot be read, is damaged, or holds more than `max_bytes`.
std::string read_file_bytes(const std::filesystem::path& path, std::size_t max_bytes = kMaxFileBytes);

// Return the same for a text: without a byte-order mark in front. Throw DataError for UTF-16 as well.
std::unique_ptr<ByteStream> stream_text_file(const std::filesystem::path& path);
std::string read_text_file(const std::filesystem::path& path);

// The first `count` bytes of `path`, fewer only when it ends earlier; the rest is neither inflated nor
// checked.
std::string read_file_prefix(const std::filesystem::path& path, std::size_t count);

// The first `max_bytes` bytes of the gzip stream `gzipped`, fewer when it ends earlier. `name` is for the
// error's text.
std::string inflate_prefix(std::string_view gzipped, const std::string& name, std::size_t max_bytes);

}  // namespace gradwire
