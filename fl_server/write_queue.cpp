#include "fl_server/write_queue.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gradwire {
namespace {

constexpr std::size_t kMaxPieces = 16;  // of one write

std::uint64_t size_of(const Outgoing& message) {
  std::uint64_t size = message.head.size();
  for (const auto section : message.sections) size += section.size();
  return size;
}

}  // namespace

void WriteQueue::push(Outgoing message) {
  if (message.request != 0) {
    const auto waiting = queue_.begin() + (written_ > 0 ? 1 : 0);
    queue_.erase(std::remove_if(waiting, queue_.end(), [](const Outgoing& m) { return m.request != 0; }),
                 queue_.end());
  }
  queue_.push_back(std::move(message));
}

void WriteQueue::drop_waiting() { queue_.erase(queue_.begin() + (written_ > 0 ? 1 : 0), queue_.end()); }

void WriteQueue::clear() {
  queue_.clear();
  written_ = 0;
}

std::uint64_t WriteQueue::bytes() const {
  std::uint64_t bytes = 0;
  for (const Outgoing& message : queue_) bytes += size_of(message);
  return bytes - written_;
}

bool WriteQueue::borrowing() const {
  return std::any_of(queue_.begin(), queue_.end(), [](const Outgoing& m) { return m.borrowed; });
}

void WriteQueue::own(OwnedSections& copies) {
  for (Outgoing& message : queue_) {
    if (!message.borrowed) continue;
    auto kept = std::make_shared<std::vector<std::shared_ptr<const std::vector<std::byte>>>>();
    for (auto& section : message.sections) {
      auto& copy = copies[{section.data(), section.size()}];
      if (!copy) copy = std::make_shared<const std::vector<std::byte>>(section.begin(), section.end());
      section = *copy;
      kept->push_back(copy);
    }
    message.keep = std::move(kept);
    message.borrowed = false;
  }
}

WriteQueue::Progress WriteQueue::write_once(Socket& socket) {
  if (queue_.empty()) return Progress::kAll;
  std::array<std::span<const std::byte>, kMaxPieces> pieces;
  std::size_t count = 0;
  std::uint64_t skip = written_;
  const auto add = [&](std::span<const std::byte> piece) {
    const auto gone = static_cast<std::size_t>(std::min<std::uint64_t>(skip, piece.size()));
    skip -= gone;
    if (piece.size() > gone && count < kMaxPieces) pieces[count++] = piece.subspan(gone);
  };
  add(std::as_bytes(std::span(queue_.front().head)));
  for (const auto section : queue_.front().sections) add(section);
  const Socket::Moved moved = socket.write(std::span(pieces).first(count));
  if (moved.got == Socket::Got::kNothing) return Progress::kNothing;
  if (moved.got != Socket::Got::kSome) return Progress::kFailed;
  written_ += moved.bytes;
  taken_ += moved.bytes;
  if (written_ == size_of(queue_.front())) {
    queue_.pop_front();
    written_ = 0;
  }
  return queue_.empty() ? Progress::kAll : Progress::kSome;
}

}  // namespace gradwire
