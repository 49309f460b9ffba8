#include "c_api/caller_memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "base/random.h"

namespace gradwire {
namespace {

TEST(CallerMemory, TakesTheLowestFreeAddressAndKeepsAlignments) {
  alignas(64) std::array<std::byte, 4096> region;
  CallerMemory memory(region.data(), region.size());
  void* const a = memory.allocate(100, 16);
  void* const b = memory.allocate(100, 16);
  EXPECT_LT(a, b);
  const std::size_t peak = memory.peak();
  memory.release(a);
  EXPECT_EQ(memory.allocate(50, 16), a);
  void* const c = memory.allocate(10, 256);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(c) % 256, 0u);
  EXPECT_GE(memory.peak(), peak);
}

TEST(CallerMemory, GivesNothingBeyondItsRegion) {
  for (std::size_t bytes = 0; bytes < 200; ++bytes) {
    std::vector<std::byte> region(bytes + 1);
    CallerMemory memory(region.data() + 1, bytes);
    std::size_t taken = 0;
    while (void* const block = memory.allocate(8, 16)) {
      std::memset(block, 1, 8);
      ++taken;
    }
    EXPECT_LE(taken * 32, bytes);
    EXPECT_EQ(memory.lacking(), 8u);
    EXPECT_EQ(memory.allocate(SIZE_MAX, 16), nullptr);
  }
}

// Random blocks against their own patterns; in the end the region is whole again.
TEST(CallerMemory, KeepsBlocksApart) {
  Random random(7, "blocks");
  std::vector<std::byte> region(100'000);
  CallerMemory memory(region.data(), region.size());
  struct Block {
    unsigned char* at;
    std::size_t bytes;
    unsigned char pattern;
  };
  std::vector<Block> blocks;
  for (int step = 0; step < 20'000; ++step) {
    if (random.below(3) > 0) {
      const std::size_t bytes = random.below(1 + random.below(3000)),
                        alignment = std::size_t{16} << random.below(4);
      auto* const at = static_cast<unsigned char*>(memory.allocate(bytes, alignment));
      if (at == nullptr) continue;
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(at) % alignment, 0u);
      blocks.push_back({at, bytes, static_cast<unsigned char>(step)});
      std::memset(at, blocks.back().pattern, bytes);
    } else if (!blocks.empty()) {
      const std::size_t k = random.below(static_cast<std::uint32_t>(blocks.size()));
      const Block block = blocks[k];
      ASSERT_TRUE(
          std::all_of(block.at, block.at + block.bytes, [&](unsigned char c) { return c == block.pattern; }));
      memory.release(block.at);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
  for (const Block& block : blocks) memory.release(block.at);
  EXPECT_NE(memory.allocate(99'000, 16), nullptr);
}

TEST(CallerMemory, GivesBackToWhereMemoryCameFrom) {
  std::vector<std::byte> region(10'000);
  CallerMemory memory(region.data(), region.size());
  void* const outside = allocate_here(100, 64);
  void* inside = nullptr;
  {
    const UseMemory use(&memory);
    inside = allocate_here(100, 64);
    release_where_allocated(outside);
  }
  EXPECT_GE(inside, region.data());
  EXPECT_LT(inside, region.data() + region.size());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(inside) % 64, 0u);
  release_where_allocated(inside);
  release_where_allocated(nullptr);
}

}  // namespace
}  // namespace gradwire
