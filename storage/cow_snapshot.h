// Bytes that a thread writes while the memory that holds them may soon change: by then they are copied, but
// only those that are not written yet.
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

  // Takes what is to be written, and computes its size and checksum.
  void begin(ByteSegments bytes);
  std::uint64_t size() const { return size_; }
  std::uint32_t checksum() const { return checksum_; }  // CRC32C

  // The writing thread: the next chunk, at most kChunkBytes; it stays until the following call. Empty: all
  // bytes were given.
  std::string_view next();
  // The writing thread, in the end, also where it has not taken all.
  void close();

  // Another thread, once: from the return on, the memory may change. Throws std::bad_alloc; then it may not.
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
