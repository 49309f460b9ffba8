// Replies whose clients work at something else already: copies, close together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "algorithms/support/message.h"

namespace gradwire {

// Memory that is given out piece by piece and taken back all at once.
class Arena {
 public:
  // Aligned for any number.
  std::byte* take(std::size_t bytes) {
    bytes = (bytes + kAlign - 1) / kAlign * kAlign;
    while (chunk_ < chunks_.size() && used_ + bytes > chunks_[chunk_].size) ++chunk_, used_ = 0;
    if (chunk_ == chunks_.size()) {
      const std::size_t size = std::max(bytes, kChunkBytes);
      chunks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
    }
    std::byte* const piece = chunks_[chunk_].bytes.get() + used_;
    used_ += bytes;
    return piece;
  }
  // Keeps what was used since the last call, for the next pieces; frees what was not.
  void clear() {
    if (chunk_ + 1 < chunks_.size()) chunks_.resize(chunk_ + 1);
    chunk_ = used_ = 0;
  }

 private:
  static constexpr std::size_t kAlign = 16, kChunkBytes = 256 << 10;
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size;
  };
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0, used_ = 0;  // the next piece begins here
};

// An Uplink with as many payloads as it has, and the values that they view behind it.
template <class Real>
class KeptReply {
 public:
  static KeptReply* copy(const Uplink<Real>& up, std::uint64_t bytes, Arena& arena) {
    auto* const kept = new (arena.take(sizeof(KeptReply))) KeptReply;
    kept->bytes_ = bytes;
    kept->round_ = up.round;
    kept->answer_ = up.answer;
    kept->loss_ = up.loss;
    kept->grad_calls_ = up.grad_calls;
    kept->correct_ = up.correct;
    kept->tested_ = up.tested;
    kept->count_ = static_cast<std::uint8_t>(up.parts.size());
    kept->parts_ = reinterpret_cast<Payload<Real>*>(arena.take(up.parts.size() * sizeof(Payload<Real>)));
    for (std::size_t k = 0; k < up.parts.size(); ++k) copy_links(up.parts[k], &kept->parts_[k], arena);
    return kept;
  }

  std::uint64_t bytes() const { return bytes_; }  // encoded
  // Views the arena.
  Uplink<Real> reply(ClientId client, std::uint64_t ticket) const {
    Uplink<Real> up;
    up.ticket = ticket;
    up.client = client;
    up.round = round_;
    up.answer = answer_;
    up.loss = loss_;
    up.grad_calls = grad_calls_;
    up.correct = correct_;
    up.tested = tested_;
    for (std::size_t k = 0; k < count_; ++k) up.parts.push_back(parts_[k]);
    return up;
  }

 private:
  template <class T>
  static std::span<const T> copy_of(std::span<const T> from, Arena& arena) {
    if (from.empty()) return {};
    T* const to = reinterpret_cast<T*>(arena.take(from.size_bytes()));
    std::memcpy(to, from.data(), from.size_bytes());
    return {to, from.size()};
  }
  static void copy_links(const Payload<Real>& from, Payload<Real>* to, Arena& arena) {
    new (to) Payload<Real>(from);
    to->indices = copy_of(from.indices, arena);
    to->values = copy_of(from.values, arena);
    if (from.next == nullptr) return;
    auto* const next = reinterpret_cast<Payload<Real>*>(arena.take(sizeof(Payload<Real>)));
    copy_links(*from.next, next, arena);
    to->next = next;
  }

  Payload<Real>* parts_ = nullptr;
  double loss_ = 0;
  std::uint64_t bytes_ = 0, grad_calls_ = 0, correct_ = 0, tested_ = 0;
  std::uint32_t round_ = 0;
  Answer answer_ = Answer::kReply;
  std::uint8_t count_ = 0;  // of parts_
};

}  // namespace gradwire
