// What of an answer can be sent while it is still computed: the computing thread says which bytes of its
// payload are final, another thread sends them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "fl_client/link.h"
#include "proto/wire/chunk.h"

namespace gradwire {

class UploadChunks {
 public:
  // Bytes of one chunk. Shorter runs wait until bytes beside them are final, or go with the answer.
  static constexpr std::size_t kLeastBytes = 16 * 1024, kMostBytes = 64 * 1024;

  // An answer begins. REQUIRES: nobody sends.
  void begin(std::uint64_t request_id);
  // Where its payload will be. To be called once; the bytes stay there until the answer was sent.
  void place(std::span<const std::byte> payload);
  // These bytes are final.
  void ready(const ChunkRange& range);

  // What can be sent now; nothing: there is nothing at the moment.
  std::optional<ChunkRange> take();
  // The same, but waits; nothing: it was closed.
  std::optional<ChunkRange> wait();
  // Sends what was taken. A failure is final (trouble()): part of a frame may be on its way.
  bool send(Link& link, const ChunkRange& chunk);
  // Nothing is sent any more; what is final but not taken goes with the answer.
  void close();

  // After close().
  Status trouble() const { return trouble_; }
  // What was sent of the payload of `answer`, ascending. None: nothing was, or its bytes were others.
  std::span<const ChunkRange> sent_of(const Encoded& answer);

 private:
  std::optional<ChunkRange> take_locked();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = true;
  std::uint64_t request_id_ = 0;
  std::span<const std::byte> payload_;
  std::map<std::size_t, std::size_t>
      ready_;  // not taken: from the first byte of a run to its end; runs do not touch

  // Of the sending thread.
  std::map<std::size_t, std::pair<std::size_t, std::uint32_t>>
      sent_;  // from the first byte to the number and checksum
  Status trouble_ = Unit{};
  std::vector<ChunkRange> ranges_;  // of sent_
};

// A thread that sends the chunks of one answer as long as this lives.
class ChunkSender {
 public:
  // chunks: null where none are sent.
  ChunkSender(Link& link, UploadChunks* chunks);
  ~ChunkSender();
  ChunkSender(const ChunkSender&) = delete;
  ChunkSender& operator=(const ChunkSender&) = delete;

 private:
  UploadChunks* const chunks_;
  std::thread thread_;
};

}  // namespace gradwire
