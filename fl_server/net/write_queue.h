// A queue of messages for one socket. It writes them with scatter-gather I/O, without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fl_server/net/server_metrics.h"
#include "fl_server/net/socket_layer.h"

namespace gradwire {

// The body that all messages of one request share. It is written with each message, but is only once in
// memory.
struct SharedBody {
  std::vector<std::span<const std::byte>> sections;
  std::shared_ptr<const void> keep;  // owns the sections that are not borrowed
  bool borrowed = false;             // true if the sections may view the sender's vectors

  // Copies borrowed sections.
  void own();
};

// A frame to write: the head, the sections of the body, and its own sections. The own sections may view the
// sender's vectors (`borrowed`) until WriteQueue::own().
struct Outgoing {
  std::string head;        // prefix and header
  std::string short_head;  // replaces head and body if this body was the last one written; may be empty
  std::shared_ptr<SharedBody> body;  // may be null
  std::vector<std::span<const std::byte>> sections;
  std::shared_ptr<const void> keep;  // owns the sections that are not borrowed
  bool borrowed = false;
  // The request that this message belongs to, or 0. While the message waits, a message of a newer request
  // discards it, whatever its channel. A message for the same channel replaces it.
  std::uint64_t request = 0;
  std::uint32_t channel = 0;
  bool alone = false;  // the request is to one client; it discards nothing of other channels
  bool last = false;   // the final message; the client confirms it and disconnects

  static Outgoing control(std::string frame) {
    Outgoing message;
    message.head = std::move(frame);
    return message;
  }
};

class WriteQueue {
 public:
  WriteQueue() = default;
  // Counts the messages that were written completely in `sent`.
  explicit WriteQueue(FrameCounts& sent) : sent_(&sent) {}

  void push(Outgoing message);
  // Discards the messages whose writing has not begun.
  void drop_waiting();
  void clear();

  bool empty() const { return messages_ == 0; }
  // Returns the bytes in the queue, without shared bodies.
  std::uint64_t bytes() const;
  std::uint64_t taken() const { return taken_; }  // bytes written to the socket so far
  bool borrowing() const { return borrowing_ > 0; }
  void own();

  enum class WriteProgress { kAll, kSome, kNothing, kFailed };
  // Performs one write. Returns kAll if the queue is empty now, kFailed if the socket failed.
  WriteProgress write_once(Socket& socket);

 private:
  using Position = std::list<Outgoing>::iterator;
  void append(Outgoing message);
  void put(Position place, Outgoing message);
  void make_void(Position place);
  void make_requests_void();
  bool is_body_known(const Outgoing& message) const;
  void begin();
  void end_front();

  FrameCounts* sent_ = nullptr;
  std::list<Outgoing> queue_;                  // includes void entries, which keep a channel's position
  std::map<std::uint32_t, Position> waiting_;  // by channel: requests not yet begun, and void entries
  std::weak_ptr<SharedBody> last_body_;        // the last body written in full; the peer remembers it
  std::uint64_t newest_ = 0;                   // newest request
  std::size_t messages_ = 0, borrowing_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t written_ = 0;  // bytes written of the first message
  std::uint64_t taken_ = 0;
};

}  // namespace gradwire
