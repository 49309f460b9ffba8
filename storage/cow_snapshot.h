// Copy-on-write bytes. One thread writes them to a file. Before another thread changes their memory, it
// copies the bytes that are not written yet.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_segments.h"

namespace gradwire {

class CowSnapshot {
 public:
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

  // Sets the bytes to write, and computes their size and checksum.
  void begin(ByteSegments bytes);
  std::uint64_t size() const { return size_; }
  std::uint32_t checksum() const { return checksum_; }  // CRC32C

  // Returns the next chunk, at most kChunkBytes; it stays valid until the following call. Empty after the
  // last byte. Only the writing thread calls it.
  std::string_view next();
  // Ends the writing, even before the last byte. Only the writing thread calls it.
  void close();

  // Copies the rest, so that the memory may change after the return. Another thread calls it once. Throws
  // std::bad_alloc; then the memory must not change.
  void own_rest();

 private:
  std::mutex mutex_;
  std::condition_variable given_back_;
  ByteSegments bytes_;
  std::deque<std::string_view> rest_;  // not given out yet
  std::vector<std::string> owned_;
  std::uint64_t size_ = 0;
  std::uint32_t checksum_ = 0;
  bool in_use_ = false;  // a chunk of the memory is given out
};

}  // namespace gradwire
