// The messages that one socket has still to send, written by scatter-gather, without a copy.
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

// The part that all messages of one request share: written with each of them, kept once.
struct SharedBody {
  std::vector<std::span<const std::byte>> sections;
  std::shared_ptr<const void> keep;  // owns sections that are not borrowed
  bool borrowed = false;             // sections may view the sender's vectors

  // Copies what is borrowed.
  void own();
};

// A frame to be written: head, then the sections of the body, then its own. Its own may view the sender's
// vectors (`borrowed`) until WriteQueue::own() was called.
struct Outgoing {
  std::string head;        // prefix and header
  std::string short_head;  // replaces head and body if this body was the last one written; empty: none
  std::shared_ptr<SharedBody> body;  // may be null
  std::vector<std::span<const std::byte>> sections;
  std::shared_ptr<const void> keep;  // owns sections that are not borrowed
  bool borrowed = false;
  // Not 0: a message of this request. While it waits, a message of a newer request, for any channel, discards
  // it, and a message for the same channel replaces it.
  std::uint64_t request = 0;
  std::uint32_t channel = 0;
  bool alone = false;  // its request is to one client: it discards nothing of other channels
  bool last = false;   // nothing follows; the client confirms it and disconnects

  static Outgoing control(std::string frame) {
    Outgoing message;
    message.head = std::move(frame);
    return message;
  }
};

class WriteQueue {
 public:
  WriteQueue() = default;
  // `sent`: where to count the messages that were written whole.
  explicit WriteQueue(FrameCounts& sent) : sent_(&sent) {}

  void push(Outgoing message);
  // Discards the messages of which nothing was written yet.
  void drop_waiting();
  void clear();

  bool empty() const { return messages_ == 0; }
  // How many the queue holds, without shared bodies.
  std::uint64_t bytes() const;
  std::uint64_t taken() const { return taken_; }  // so far, by the socket
  bool borrowing() const { return borrowing_ > 0; }
  void own();

  enum class WriteProgress { kAll, kSome, kNothing, kFailed };
  // One write of a socket. kAll: the queue is empty now. kFailed: the socket says why.
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
  std::list<Outgoing> queue_;                  // with empty (void) places, which keep a channel's position
  std::map<std::uint32_t, Position> waiting_;  // by channel: requests not begun yet, and void places
  std::weak_ptr<SharedBody> last_body_;        // written in full, and remembered by the peer
  std::uint64_t newest_ = 0;                   // request
  std::size_t messages_ = 0, borrowing_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t written_ = 0;  // bytes of the first message
  std::uint64_t taken_ = 0;
};

}  // namespace gradwire
