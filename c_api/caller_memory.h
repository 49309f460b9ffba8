// Memory in a region of the caller. Blocks are taken at the lowest free address, so a region that is as long
// as the highest address that was ever used would have sufficed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace gradwire {

class CallerMemory {
 public:
  // The region must be writable, and outlive this object.
  CallerMemory(void* region, std::size_t bytes);

  // Returns memory of this alignment, a power of two, or null if there is none.
  void* allocate(std::size_t bytes, std::size_t alignment);
  void release(void* memory);

  // Returns the bytes of the region up to the end of the highest block so far.
  std::size_t peak() const { return peak_; }
  // Returns the bytes that the last failed allocate() asked for, or 0.
  std::size_t lacking() const { return lacking_; }

 private:
  // Stands before each block, which ends where the next header begins. All are multiples of kUnit.
  struct Header {
    std::size_t bytes;  // of the block, without this header
    bool is_used;
  };
  static constexpr std::size_t kUnit = 16;
  static_assert(sizeof(Header) <= kUnit);

  Header* first() const { return reinterpret_cast<Header*>(begin_); }
  Header* after(Header* block) const;
  void join_free(Header* block) const;

  std::byte* begin_;  // multiples of kUnit
  std::byte* end_;
  std::size_t unused_front_;  // bytes of the region before begin_
  std::size_t peak_ = 0, lacking_ = 0;
  std::mutex mutex_;
};

// Makes this thread take memory of a region, or of malloc() if it is null, as long as the object exists.
class UseMemory {
 public:
  explicit UseMemory(CallerMemory* region);
  ~UseMemory();
  UseMemory(const UseMemory&) = delete;
  UseMemory& operator=(const UseMemory&) = delete;

 private:
  CallerMemory* const before_;
};

// Between these calls, which may nest, this thread takes memory from malloc(): for what outlives a client.
void begin_shared_memory();
void end_shared_memory();

// Return memory of the current region or of malloc(), or null; and give it back to where it came from.
void* allocate_here(std::size_t bytes, std::size_t alignment);
void release_where_allocated(void* memory);

}  // namespace gradwire
