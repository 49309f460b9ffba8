// Decompressors of gzip, bzip2 and xz, step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace gradwire {

// The memory that a decompressor may take, besides the bytes that it reads and writes: more than `xz -9`
// needs.
inline constexpr std::size_t kMaxDecompressorBytes = std::size_t{128} << 20;

class Decompressor {
 public:
  enum class State : std::uint8_t {
    kMore,      // needs more input or more room
    kEnd,       // the stream has ended; another one may follow it in the file
    kDamaged,   // the input is not such a stream
    kTooLarge,  // the stream needs more than kMaxDecompressorBytes
  };
  struct Step {
    State state;
    std::size_t read, written;  // bytes from the front of the input, and to the front of the output
  };

  virtual ~Decompressor() = default;
  virtual std::string_view format() const = 0;  // "gzip"
  // REQUIRES: `to` is not empty; the stream has not ended.
  virtual Step run(std::string_view input, std::span<char> to) = 0;
};

// The first bytes of a file that decide its format: at most this many.
inline constexpr std::size_t kFormatBytes = 10;

// Returns a decompressor of the stream that begins with `start`, or null if no such stream does.
std::unique_ptr<Decompressor> make_decompressor(std::string_view start);

}  // namespace gradwire
