#include "storage/cow_snapshot.h"

#include <span>
#include <utility>

#include "base/crc32c.h"

namespace gradwire {

void CowSnapshot::begin(ByteSegments bytes) {
  bytes_ = std::move(bytes);
  for (const std::string_view segment : bytes_.views()) {
    rest_.push_back(segment);
    size_ += segment.size();
    checksum_ = crc32c(std::as_bytes(std::span(segment)), checksum_);
  }
}

std::string_view CowSnapshot::next() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(in_use_, false)) given_back_.notify_all();
  if (rest_.empty()) return {};
  std::string_view& first = rest_.front();
  const std::string_view chunk = first.substr(0, kChunkBytes);
  first.remove_prefix(chunk.size());
  if (first.empty()) rest_.pop_front();
  in_use_ = true;
  return chunk;
}

void CowSnapshot::close() {
  const std::lock_guard lock(mutex_);
  in_use_ = false;
  rest_.clear();
  given_back_.notify_all();
}

void CowSnapshot::own_rest() {
  std::unique_lock lock(mutex_);
  owned_.assign(rest_.begin(), rest_.end());
  rest_.assign(owned_.begin(), owned_.end());
  given_back_.wait(lock, [this] { return !in_use_; });
}

}  // namespace gradwire
