// Bytes that wait: received ones for the TLS library, or its own for the peer.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gradwire {

class ByteQueue {
 public:
  // An empty queue keeps at most `most_kept` bytes of memory.
  explicit ByteQueue(std::size_t most_kept) : most_kept_(most_kept) {}

  void add(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  std::span<const std::byte> bytes() const { return std::span(bytes_).subspan(at_); }
  // Removes the first `count` bytes. REQUIRES: there are so many.
  void drop(std::size_t count) {
    at_ += count;
    if (at_ == bytes_.size()) clear();
  }
  void clear() {
    bytes_.clear();
    at_ = 0;
    if (bytes_.capacity() > most_kept_) std::vector<std::byte>().swap(bytes_);
  }

 private:
  const std::size_t most_kept_;
  std::vector<std::byte> bytes_;
  std::size_t at_ = 0;  // bytes that were dropped
};

}  // namespace gradwire
