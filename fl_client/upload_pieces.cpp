#include "fl_client/upload_pieces.h"

#include <algorithm>
#include <iterator>
#include <system_error>

#include "base/crc32c.h"

namespace gradwire {

void UploadPieces::begin(std::uint64_t request_id) {
  const std::lock_guard lock(mutex_);
  closed_ = false;
  request_id_ = request_id;
  payload_ = {};
  ready_.clear();
  sent_.clear();
  trouble_ = Unit{};
}

void UploadPieces::place(std::span<const std::byte> payload) {
  const std::lock_guard lock(mutex_);
  payload_ = payload;
}

void UploadPieces::ready(const PieceRange& range) {
  const std::lock_guard lock(mutex_);
  if (closed_ || range.bytes == 0) return;
  std::size_t begin = range.at, end = range.at + range.bytes;
  const auto after = ready_.lower_bound(begin);
  if (after != ready_.end() && after->first == end) {
    end = after->second;
    ready_.erase(after);
  }
  const auto behind = ready_.lower_bound(begin);
  if (behind != ready_.begin() && std::prev(behind)->second == begin) {
    begin = std::prev(behind)->first;
    std::prev(behind)->second = end;
  } else {
    ready_.emplace(begin, end);
  }
  if (end - begin >= kLeastBytes) changed_.notify_one();
}

// The end of the last run that is long enough: a backward sweep goes on before it.
std::optional<PieceRange> UploadPieces::take_locked() {
  if (closed_) return std::nullopt;
  const auto run = std::find_if(ready_.rbegin(), ready_.rend(),
                                [](const auto& r) { return r.second - r.first >= kLeastBytes; });
  if (run == ready_.rend()) return std::nullopt;
  const std::size_t bytes = std::min(run->second - run->first, kMostBytes);
  run->second -= bytes;
  const PieceRange piece{run->second, bytes};
  if (run->first == run->second) ready_.erase(run->first);
  return piece;
}

std::optional<PieceRange> UploadPieces::take() {
  const std::lock_guard lock(mutex_);
  return take_locked();
}

std::optional<PieceRange> UploadPieces::wait() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (closed_) return std::nullopt;
    if (const auto piece = take_locked()) return piece;
    changed_.wait(lock);
  }
}

bool UploadPieces::send(Link& link, const PieceRange& piece) {
  const auto bytes = payload_.subspan(piece.at, piece.bytes);
  const std::uint32_t crc = crc32c(bytes);
  trouble_ = link.write(encode_piece({request_id_, piece.at, payload_.size()}, bytes, crc));
  if (trouble_) sent_[piece.at] = {piece.bytes, crc};
  return trouble_.has_value();
}

void UploadPieces::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_one();
}

std::span<const PieceRange> UploadPieces::sent_of(const Encoded& answer) {
  ranges_.clear();
  if (sent_.empty() || answer.sections.size() != 1 || answer.sections[0].size() != payload_.size()) return {};
  for (const auto& [at, piece] : sent_) {
    if (crc32c(answer.sections[0].subspan(at, piece.first)) != piece.second) return {};
    ranges_.push_back({at, piece.first});
  }
  return ranges_;
}

PieceSender::PieceSender(Link& link, UploadPieces* pieces) : pieces_(pieces) {
  if (pieces_ == nullptr) return;
  const auto send = [pieces, &link] {
    while (const auto piece = pieces->wait())
      if (!pieces->send(link, *piece)) return;
  };
  try {
    thread_ = std::thread(send);
  } catch (const std::system_error&) {  // no thread can be made: all goes with the answer
  }
}

PieceSender::~PieceSender() {
  if (pieces_ != nullptr) pieces_->close();
  if (thread_.joinable()) thread_.join();
}

}  // namespace gradwire
