// States of clients that are not at work.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "algorithms/core/client_server.h"

namespace gradwire {

// The memory of a client is its vectors and numbers, 24 bytes for each vector, and 1 byte. It is only 1/8
// byte until one of the 64 clients in its block is asked.
template <class Real>
class StateCache {
 public:
  // Takes the initial state from `fresh`, an algorithm that has seen no request.
  StateCache(std::uint32_t clients, ClientAlgorithm<Real>& fresh)
      : shape_(fresh.state_shape()),
        fresh_vectors_(shape_.vectors),
        fresh_numbers_(shape_.number_bytes),
        blocks_(has_state() ? clients / kBlock + 1 : 0) {
    if (has_state()) fresh.swap_state({fresh_vectors_, fresh_numbers_});
  }

  bool has_state() const { return shape_.vectors + shape_.number_bytes > 0; }
  // Returns true if settled() was called for the client.
  bool holds(ClientId client) const {
    return has_state() && blocks_[client / kBlock].get() != nullptr &&
           blocks_[client / kBlock].get()->holds[client % kBlock];
  }
  // Allocates memory for the client, if it has none. Several threads may call this at the same time, and the
  // functions below for different clients. REQUIRES, here and below: has_state().
  void reserve(ClientId client) {
    BlockPointer& place = blocks_[client / kBlock];
    if (place.get() != nullptr) return;
    auto block = std::make_unique<Block>();
    block->holds.resize(kBlock);
    block->vectors.resize(kBlock * shape_.vectors);
    block->numbers.resize(kBlock * shape_.number_bytes);
    place.set(std::move(block));
  }
  // Writes the state of a client that has seen no request. REQUIRES: reserve() was called.
  void begin(ClientId client) {
    const KeptState<Real> kept = of(client);
    for (std::size_t k = 0; k < kept.vectors.size(); ++k) kept.vectors[k] = fresh_vectors_[k];
    std::copy(fresh_numbers_.begin(), fresh_numbers_.end(), kept.numbers.begin());
  }
  // Records that the kept state is the one after a reply that was used.
  void settled(ClientId client) {
    if (has_state()) blocks_[client / kBlock].get()->holds[client % kBlock] = 1;
  }
  // REQUIRES: reserve() was called.
  KeptState<Real> of(ClientId client) {
    Block& block = *blocks_[client / kBlock].get();
    const std::size_t place = client % kBlock;
    return {std::span(block.vectors).subspan(place * shape_.vectors, shape_.vectors),
            std::span(block.numbers).subspan(place * shape_.number_bytes, shape_.number_bytes)};
  }

 private:
  static constexpr std::size_t kBlock = 64;  // clients per block
  struct Block {
    std::vector<char> holds;  // by client; char, because threads share a block
    std::vector<Vec<Real>> vectors;
    std::vector<std::byte> numbers;
  };
  // A block that one of several threads allocates.
  class BlockPointer {
   public:
    BlockPointer() = default;
    BlockPointer(const BlockPointer&) = delete;
    BlockPointer& operator=(const BlockPointer&) = delete;
    ~BlockPointer() { delete get(); }
    Block* get() const { return block_.load(std::memory_order_acquire); }
    // Takes the block, unless another thread was faster.
    void set(std::unique_ptr<Block> block) {
      Block* none = nullptr;
      if (block_.compare_exchange_strong(none, block.get())) block.release();
    }

   private:
    std::atomic<Block*> block_ = nullptr;
  };

  StateShape shape_;
  std::vector<Vec<Real>> fresh_vectors_;
  std::vector<std::byte> fresh_numbers_;
  std::vector<BlockPointer> blocks_;
};

}  // namespace gradwire
