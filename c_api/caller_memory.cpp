#include "c_api/caller_memory.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace gradwire {
namespace {

thread_local CallerMemory* current = nullptr;
thread_local unsigned shared = 0;  // calls of begin_shared_memory() without their end

std::size_t rounded(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Stands before each piece of memory of allocate_here().
struct Origin {
  CallerMemory* region;  // null for malloc()
  void* block;
};
constexpr std::size_t kOriginBytes = 16;
static_assert(sizeof(Origin) <= kOriginBytes);

}  // namespace

CallerMemory::CallerMemory(void* region, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(region);
  unused_front_ = std::min<std::size_t>(rounded(address, kUnit) - address, bytes);
  begin_ = static_cast<std::byte*>(region) + unused_front_;
  const std::size_t usable = (bytes - unused_front_) / kUnit * kUnit;
  end_ = begin_ + usable;
  if (usable >= kUnit) ::new (begin_) Header{usable - kUnit, false};
}

CallerMemory::Header* CallerMemory::after(Header* block) const {
  std::byte* const next = reinterpret_cast<std::byte*>(block) + kUnit + block->bytes;
  return next == end_ ? nullptr : reinterpret_cast<Header*>(next);
}

// Makes one block of a free block and the free blocks that follow it.
void CallerMemory::join_free(Header* block) const {
  for (Header* next = after(block); next != nullptr && !next->is_used; next = after(block))
    block->bytes += kUnit + next->bytes;
}

void* CallerMemory::allocate(std::size_t bytes, std::size_t alignment) {
  const std::lock_guard lock(mutex_);
  if (bytes <= static_cast<std::size_t>(end_ - begin_) && begin_ != end_) {
    const std::size_t size = std::max(rounded(bytes, kUnit), kUnit);
    for (Header* block = first(); block != nullptr; block = after(block)) {
      if (block->is_used) continue;
      join_free(block);
      std::byte* const memory = reinterpret_cast<std::byte*>(block) + kUnit;
      // Leaves room for a free block before memory of a large alignment.
      std::size_t skip = 0;
      while ((reinterpret_cast<std::uintptr_t>(memory) + skip) % alignment != 0) skip += kUnit;
      if (block->bytes < size || block->bytes - size < skip) continue;
      if (skip > 0) {
        Header* const rest = ::new (memory + skip - kUnit) Header{block->bytes - skip, false};
        block->bytes = skip - kUnit;
        block = rest;
      }
      if (block->bytes >= size + kUnit) {
        ::new (memory + skip + size) Header{block->bytes - size - kUnit, false};
        block->bytes = size;
      }
      block->is_used = true;
      const auto used = static_cast<std::size_t>(memory + skip + block->bytes - begin_);
      peak_ = std::max(peak_, unused_front_ + used);
      return memory + skip;
    }
  }
  lacking_ = bytes;
  return nullptr;
}

void CallerMemory::release(void* memory) {
  const std::lock_guard lock(mutex_);
  reinterpret_cast<Header*>(static_cast<std::byte*>(memory) - kUnit)->is_used = false;
}

UseMemory::UseMemory(CallerMemory* region) : before_(current) { current = region; }
UseMemory::~UseMemory() { current = before_; }

void begin_shared_memory() { ++shared; }
void end_shared_memory() { --shared; }

void* allocate_here(std::size_t bytes, std::size_t alignment) {
  alignment = std::max(alignment, kOriginBytes);
  if (bytes > SIZE_MAX - 2 * alignment) return nullptr;
  const std::size_t size = bytes + alignment;
  CallerMemory* const region = shared > 0 ? nullptr : current;
  void* const block = region != nullptr           ? region->allocate(size, alignment)
                      : alignment == kOriginBytes ? std::malloc(size)
                                                  : std::aligned_alloc(alignment, rounded(size, alignment));
  if (block == nullptr) return nullptr;
  std::byte* const memory = static_cast<std::byte*>(block) + alignment;
  ::new (memory - kOriginBytes) Origin{region, block};
  return memory;
}

void release_where_allocated(void* memory) {
  if (memory == nullptr) return;
  const Origin origin = *reinterpret_cast<Origin*>(static_cast<std::byte*>(memory) - kOriginBytes);
  if (origin.region != nullptr)
    origin.region->release(origin.block);
  else
    std::free(origin.block);
}

}  // namespace gradwire
