// The messages that a client's session wants to send, in order. Others write their bytes, all at once or a
// few at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proto/wire/codec.h"

namespace gradwire {

class Outbox {
 public:
  // The next step of the session after a message has left.
  enum class Then : std::uint8_t { kNothing, kSaySums, kSayJoined, kPutAnswerAway };

  void put(std::string frame, Then then = Then::kNothing) {
    messages_.push_back({std::move(frame), nullptr, then});
  }
  // Views `message`, which must stay until it has left, or until clear().
  void put(const Encoded& message, Then then) { messages_.push_back({{}, &message, then}); }

  // Returns the bytes of the first message that have not left yet. Empty if there is no message. The view is
  // valid until the next call of another function.
  std::span<const std::span<const std::byte>> outgoing() {
    if (segments_.empty() && !messages_.empty()) begin(messages_.front());
    return segments_;
  }
  // Says that so many of these bytes have left. Returns what to do if they complete the message.
  std::optional<Then> left(std::size_t bytes) {
    std::size_t whole = 0;
    while (whole < segments_.size() && bytes >= segments_[whole].size()) bytes -= segments_[whole++].size();
    segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(whole));
    if (!segments_.empty()) {
      segments_[0] = segments_[0].subspan(bytes);
      return std::nullopt;
    }
    const Then then = messages_.front().then;
    messages_.erase(messages_.begin());
    return then;
  }
  void clear() {
    messages_.clear();
    segments_.clear();
  }

 private:
  struct Message {
    std::string frame;
    const Encoded* encoded;  // null if `frame` is the message
    Then then;
  };

  void begin(const Message& message) {
    if (message.encoded == nullptr) {
      segments_.push_back(std::as_bytes(std::span(message.frame)));
      return;
    }
    segments_.push_back(message.encoded->prefix);
    if (!message.encoded->header.empty())
      segments_.push_back(std::as_bytes(std::span(message.encoded->header)));
    for (const auto section : message.encoded->sections)
      if (!section.empty()) segments_.push_back(section);
  }

  std::vector<Message> messages_;  // few, so that a vector, which keeps its memory, is better than a deque
  // The rest of the first message. Empty until its first byte is asked for.
  std::vector<std::span<const std::byte>> segments_;
};

}  // namespace gradwire
