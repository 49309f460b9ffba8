#include "fl_client/upload_chunks.h"

#include <algorithm>
#include <iterator>
#include <system_error>

#include "base/crc32c.h"

namespace gradwire {

void UploadChunks::begin(std::uint64_t request_id) {
  const std::lock_guard lock(mutex_);
  closed_ = false;
  request_id_ = request_id;
  payload_ = {};
  ready_.clear();
  sent_.clear();
  trouble_ = Unit{};
}

void UploadChunks::place(std::span<const std::byte> payload) {
  const std::lock_guard lock(mutex_);
  payload_ = payload;
}

void UploadChunks::ready(const ChunkRange& range) {
  const std::lock_guard lock(mutex_);
  if (closed_ || range.bytes == 0) return;
  std::size_t begin = range.at, end = range.at + range.bytes;
  const auto after = ready_.lower_bound(begin);
  if (after != ready_.end() && after->first == end) {
    end = after->second;
    ready_.erase(after);
  }
  const auto next = ready_.lower_bound(begin);
  if (next != ready_.begin() && std::prev(next)->second == begin) {
    begin = std::prev(next)->first;
    std::prev(next)->second = end;
  } else {
    ready_.emplace(begin, end);
  }
  if (end - begin >= kLeastBytes) changed_.notify_one();
}

// Takes the end of the last run that is long enough, because a backward pass continues before it.
std::optional<ChunkRange> UploadChunks::take_locked() {
  if (closed_) return std::nullopt;
  const auto run = std::find_if(ready_.rbegin(), ready_.rend(),
                                [](const auto& r) { return r.second - r.first >= kLeastBytes; });
  if (run == ready_.rend()) return std::nullopt;
  const std::size_t bytes = std::min(run->second - run->first, kMostBytes);
  run->second -= bytes;
  const ChunkRange chunk{run->second, bytes};
  if (run->first == run->second) ready_.erase(run->first);
  return chunk;
}

std::optional<ChunkRange> UploadChunks::take() {
  const std::lock_guard lock(mutex_);
  return take_locked();
}

std::optional<ChunkRange> UploadChunks::wait() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (closed_) return std::nullopt;
    if (const auto chunk = take_locked()) return chunk;
    changed_.wait(lock);
  }
}

bool UploadChunks::send(const Write& write, const ChunkRange& chunk) {
  const auto bytes = payload_.subspan(chunk.at, chunk.bytes);
  const std::uint32_t crc = crc32c(bytes);
  trouble_ = write(encode_chunk({request_id_, chunk.at, payload_.size()}, bytes, crc));
  if (trouble_) sent_[chunk.at] = {chunk.bytes, crc};
  return trouble_.has_value();
}

void UploadChunks::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_one();
}

std::span<const ChunkRange> UploadChunks::sent_of(const Encoded& answer) {
  ranges_.clear();
  if (sent_.empty() || answer.sections.size() != 1 || answer.sections[0].size() != payload_.size()) return {};
  for (const auto& [at, chunk] : sent_) {
    if (crc32c(answer.sections[0].subspan(at, chunk.first)) != chunk.second) return {};
    ranges_.push_back({at, chunk.first});
  }
  return ranges_;
}

ChunkSender::ChunkSender(UploadChunks::Write write, UploadChunks* chunks) : chunks_(chunks) {
  if (chunks_ == nullptr) return;
  const auto send = [chunks, write = std::move(write)] {
    while (const auto chunk = chunks->wait())
      if (!chunks->send(write, *chunk)) return;
  };
  try {
    thread_ = std::thread(send);
  } catch (const std::system_error&) {  // no thread can be created: all bytes go with the answer
  }
}

ChunkSender::~ChunkSender() {
  if (chunks_ != nullptr) chunks_->close();
  if (thread_.joinable()) thread_.join();
}

}  // namespace gradwire
