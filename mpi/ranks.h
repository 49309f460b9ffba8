// The processes of one job, which MPI calls ranks, and the bytes that they exchange.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gradwire {

// The bytes received from each rank, one after the other.
class RankBytes {
 public:
  // Makes room for the bytes of sizes.size() ranks.
  void resize(std::span<const std::size_t> sizes) {
    start_.assign(1, 0);
    for (const std::size_t size : sizes) start_.push_back(start_.back() + size);
    bytes_.resize(start_.back());
  }
  std::span<const std::byte> of(unsigned rank) const {
    return std::span(bytes_).subspan(start_[rank], start_[rank + 1] - start_[rank]);
  }
  std::span<std::byte> of(unsigned rank) {
    return std::span(bytes_).subspan(start_[rank], start_[rank + 1] - start_[rank]);
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::size_t> start_ = {0};
};

// All functions are collective: every rank calls the same ones in the same order, from one thread. A rank
// that does not makes all others wait. A rank that dies ends the job.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual unsigned rank() const = 0;   // the rank of this process
  virtual unsigned count() const = 0;  // at least 1
  // Gives every rank the bytes of all ranks. Sizes may differ.
  virtual void all_gather(std::span<const std::byte> mine, RankBytes& all) = 0;
  // Sends to[r] to rank r, and receives from.of(r) from it.
  virtual void exchange(std::span<const std::vector<std::byte>> to, RankBytes& from) = 0;
};

}  // namespace gradwire
