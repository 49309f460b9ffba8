// The chunks of an answer that are sent while the rest is computed. The computing thread says which bytes of
// the payload are final, and another thread sends them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "proto/wire/chunk.h"

namespace gradwire {

class UploadChunks {
 public:
  // The size of a chunk in bytes. Shorter runs wait until adjacent bytes are final, or go with the answer.
  static constexpr std::size_t kLeastBytes = 16 * 1024, kMostBytes = 64 * 1024;

  // Begins an answer. REQUIRES: no thread sends.
  void begin(std::uint64_t request_id);
  // Sets the memory of the payload. Call it once; the bytes must stay there until the answer is sent.
  void place(std::span<const std::byte> payload);
  // Marks these bytes as final.
  void ready(const ChunkRange& range);

  // Returns the next chunk to send, or nullopt if there is none at the moment.
  std::optional<ChunkRange> take();
  // Waits for the next chunk and returns it, or nullopt after close().
  std::optional<ChunkRange> wait();
  // Writes a chunk. A failure is final (see trouble()), because part of a frame may have been sent.
  using Write = std::function<Status(const Encoded& message)>;
  bool send(const Write& write, const ChunkRange& chunk);
  // Ends the sending of chunks. Bytes that are final but not taken go with the answer.
  void close();

  // Returns the error of send(). REQUIRES: close() was called.
  Status trouble() const { return trouble_; }
  // Returns the sent ranges of the payload of `answer`, ascending. Empty if nothing was sent, or if the bytes
  // have changed since.
  std::span<const ChunkRange> sent_of(const Encoded& answer);

 private:
  std::optional<ChunkRange> take_locked();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = true;
  std::uint64_t request_id_ = 0;
  std::span<const std::byte> payload_;
  // The end of each run of final bytes that are not taken yet, by its first byte. Runs do not touch.
  std::map<std::size_t, std::size_t> ready_;

  // ---- members that only the sending thread uses ----

  // The size and checksum of each sent chunk, by its first byte.
  std::map<std::size_t, std::pair<std::size_t, std::uint32_t>> sent_;
  Status trouble_ = Unit{};
  std::vector<ChunkRange> ranges_;  // ranges of sent_
};

// A thread that sends the chunks of one answer during the lifetime of this object.
class ChunkSender {
 public:
  // `chunks` is null if none are sent.
  ChunkSender(UploadChunks::Write write, UploadChunks* chunks);
  ~ChunkSender();
  ChunkSender(const ChunkSender&) = delete;
  ChunkSender& operator=(const ChunkSender&) = delete;

 private:
  UploadChunks* const chunks_;
  std::thread thread_;
};

}  // namespace gradwire
