#include "fl_server/net/write_queue.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gradwire {
namespace {

constexpr std::size_t kMaxSegments = 16;         // per write
constexpr std::uint64_t kBytesOfAMessage = 256;  // approximate memory of a message in addition to its bytes

using Sections = std::vector<std::span<const std::byte>>;

std::uint64_t size_of(const Sections& sections) {
  std::uint64_t size = 0;
  for (const auto section : sections) size += section.size();
  return size;
}

std::uint64_t bytes_held(const Outgoing& message) {
  return kBytesOfAMessage + message.head.size() + message.short_head.size() + size_of(message.sections);
}

bool is_void(const Outgoing& message) { return message.head.empty(); }

std::shared_ptr<const void> copy(Sections& sections) {
  auto copies = std::make_shared<std::vector<std::vector<std::byte>>>();
  copies->reserve(sections.size());
  for (auto& section : sections) section = copies->emplace_back(section.begin(), section.end());
  return copies;
}

}  // namespace

void SharedBody::own() {
  if (!std::exchange(borrowed, false)) return;
  keep = copy(sections);
}

// ---- what waits ----

void WriteQueue::append(Outgoing message) {
  queue_.emplace_back();
  put(std::prev(queue_.end()), std::move(message));
}

// Puts a message into a void entry.
void WriteQueue::put(Position place, Outgoing message) {
  *place = std::move(message);
  messages_ += 1;
  borrowing_ += place->borrowed ? 1 : 0;
  bytes_ += bytes_held(*place);
}

void WriteQueue::make_void(Position place) {
  if (is_void(*place)) return;
  messages_ -= 1;
  borrowing_ -= place->borrowed ? 1 : 0;
  bytes_ -= bytes_held(*place);
  const std::uint32_t channel = place->channel;
  *place = {};
  place->channel = channel;
}

void WriteQueue::make_requests_void() {
  for (const auto& [channel, place] : waiting_) make_void(place);
}

void WriteQueue::push(Outgoing message) {
  if (message.request == 0) return append(std::move(message));
  if (!message.alone && std::exchange(newest_, message.request) != message.request) make_requests_void();
  const std::uint32_t channel = message.channel;
  const auto found = waiting_.find(channel);
  if (found == waiting_.end()) {
    append(std::move(message));
    waiting_[channel] = std::prev(queue_.end());
    return;
  }
  const Position place = found->second;
  make_void(place);
  // A channel keeps its position in the queue; otherwise a slow relay would serve only the channels that are
  // asked first. A message of the connection itself moves to the end, after all messages that it refers to.
  if (channel == 0) queue_.splice(queue_.end(), queue_, place);
  put(place, std::move(message));
}

void WriteQueue::drop_waiting() {
  const auto first = written_ > 0 ? std::next(queue_.begin()) : queue_.begin();
  for (auto place = first; place != queue_.end(); ++place) make_void(place);
  queue_.erase(first, queue_.end());
  waiting_.clear();
}

void WriteQueue::clear() {
  written_ = 0;
  drop_waiting();
}

std::uint64_t WriteQueue::bytes() const {
  return queue_.empty() ? 0 : bytes_ - std::min(written_, bytes_held(queue_.front()));
}

void WriteQueue::own() {
  if (borrowing_ == 0) return;
  for (Outgoing& message : queue_)
    if (std::exchange(message.borrowed, false)) message.keep = copy(message.sections);
  borrowing_ = 0;
}

// ---- writing ----

bool WriteQueue::is_body_known(const Outgoing& message) const {
  return !message.short_head.empty() && message.body != nullptr && message.body == last_body_.lock();
}

// Notes that the writing of the first message has begun. From now on no other message replaces it.
void WriteQueue::begin() {
  Outgoing& first = queue_.front();
  if (const auto found = waiting_.find(first.channel);
      first.request != 0 && found != waiting_.end() && found->second == queue_.begin())
    waiting_.erase(found);
  if (first.short_head.empty()) return;
  bytes_ -= bytes_held(first);
  if (is_body_known(first)) {
    first.head = std::move(first.short_head);
    first.body = nullptr;
  } else {
    last_body_ = first.body;
  }
  first.short_head.clear();
  bytes_ += bytes_held(first);
}

void WriteQueue::end_front() {
  if (sent_ != nullptr) sent_->add_all(std::as_bytes(std::span(queue_.front().head)));
  make_void(queue_.begin());
  queue_.pop_front();
  written_ = 0;
  if (messages_ > 0) return;
  queue_.clear();
  waiting_.clear();
}

WriteQueue::WriteProgress WriteQueue::write_once(Socket& socket) {
  if (empty()) return WriteProgress::kAll;
  for (; is_void(queue_.front()); queue_.pop_front()) waiting_.erase(queue_.front().channel);
  const Outgoing& first = queue_.front();
  const bool is_short = is_body_known(first);
  std::array<std::span<const std::byte>, kMaxSegments> segments;
  std::size_t count = 0, most = kMaxSegments;
  std::uint64_t size = 0;
  // The owner of the first segment if that is sent alone, without a copy; else null.
  const std::shared_ptr<const void>* zero_copy_owner = nullptr;
  const auto add = [&](std::span<const std::byte> segment, const std::shared_ptr<const void>* owner) {
    const std::uint64_t end = size + segment.size();
    const auto gone = static_cast<std::size_t>(written_ > size ? std::min(written_, end) - size : 0);
    size = end;
    if (segment.size() == gone || count >= most) return;
    if (owner != nullptr && *owner != nullptr && segment.size() - gone >= socket.zero_copy_from()) {
      most = std::max<std::size_t>(count, 1);
      if (count > 0) return;
      zero_copy_owner = owner;
    }
    segments[count++] = segment.subspan(gone);
  };
  add(std::as_bytes(std::span(is_short ? first.short_head : first.head)), nullptr);
  if (first.body != nullptr && !is_short)
    for (const auto section : first.body->sections)
      add(section, first.body->borrowed ? nullptr : &first.body->keep);
  for (const auto section : first.sections) add(section, first.borrowed ? nullptr : &first.keep);
  const Socket::Moved moved = zero_copy_owner != nullptr
                                  ? socket.send_zero_copy(segments[0], *zero_copy_owner)
                                  : socket.write(std::span(segments).first(count));
  if (moved.got == Socket::Got::kNothing) return WriteProgress::kNothing;
  if (moved.got != Socket::Got::kSome) return WriteProgress::kFailed;
  if (written_ == 0) begin();
  written_ += moved.bytes;
  taken_ += moved.bytes;
  if (written_ == size) end_front();
  return empty() ? WriteProgress::kAll : WriteProgress::kSome;
}

}  // namespace gradwire
