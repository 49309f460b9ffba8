// What one socket has still to be sent, written by scatter-gather from where it lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fl_server/socket_layer.h"

namespace gradwire {

// A frame to be written. Sections may view the sender's vectors (`borrowed`) until WriteQueue::own() was
// called.
struct Outgoing {
  std::string head;  // prefix and header
  std::vector<std::span<const std::byte>> sections;
  std::shared_ptr<const void> keep;  // owns sections that are not borrowed
  std::shared_ptr<const void> body;  // the message is this and fields of its own; null: do not ask
  bool borrowed = false;
  std::uint64_t request = 0;  // not 0: a round message; a newer one takes its place while it waits
  bool last = false;          // nothing follows; the client hears it and hangs up

  static Outgoing control(std::string frame) {
    Outgoing message;
    message.head = std::move(frame);
    return message;
  }
};

// Copies of borrowed sections, shared by all queues that still hold them.
using OwnedSections =
    std::map<std::pair<const std::byte*, std::size_t>, std::shared_ptr<const std::vector<std::byte>>>;

class WriteQueue {
 public:
  void push(Outgoing message);
  // Drops what was not begun.
  void drop_waiting();
  void clear();

  bool empty() const { return queue_.empty(); }
  std::uint64_t bytes() const;                    // waiting
  std::uint64_t taken() const { return taken_; }  // ever, by the socket
  bool borrowing() const;
  void own(OwnedSections& copies);

  enum class Progress { kAll, kSome, kNothing, kFailed };
  // One write of a socket. kAll: the queue is empty now. kFailed: the socket says why.
  Progress write_once(Socket& socket);

 private:
  std::deque<Outgoing> queue_;
  std::uint64_t written_ = 0;  // bytes of the first
  std::uint64_t taken_ = 0;
};

}  // namespace gradwire
