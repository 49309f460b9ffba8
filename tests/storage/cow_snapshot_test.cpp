#include "storage/cow_snapshot.h"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/crc32c.h"
#include "storage/journal.h"
#include "tests/storage/simulated_disk.h"

namespace gradwire {
namespace {

constexpr std::size_t kChunk = CowSnapshot::kChunkBytes;

// Returns parts with sizes around those at which they are copied, viewed, and split into chunks.
std::vector<std::string> some_parts() {
  std::vector<std::string> parts;
  for (const std::size_t size :
       {std::size_t{5}, kChunk, std::size_t{0}, 3 * kChunk + 1, ByteSegments::kLeastViewed}) {
    parts.emplace_back(size, static_cast<char>('a' + parts.size()));
    if (size > 1) parts.back()[size / 2] = '!';
  }
  return parts;
}

std::string sum_of(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

void begin(CowSnapshot& cow_snapshot, const std::vector<std::string>& parts) {
  ByteSegments segments;
  for (const std::string& part : parts) segments.view(part);
  cow_snapshot.begin(std::move(segments));
}

void overwrite(std::vector<std::string>& parts) {
  for (std::string& part : parts) std::ranges::fill(part, '?');
}

TEST(CowSnapshot, GivesTheFirstContentsWheneverTheMemoryChanges) {
  const std::string all = sum_of(some_parts());
  const std::size_t chunks = 8;  // approximate number
  for (std::size_t before = 0; before <= chunks; ++before) {
    std::vector<std::string> parts = some_parts();
    CowSnapshot cow_snapshot;
    begin(cow_snapshot, parts);
    EXPECT_EQ(cow_snapshot.size(), all.size());
    EXPECT_EQ(cow_snapshot.checksum(), crc32c(std::as_bytes(std::span(all))));
    std::string written;
    // This thread allocates now, because other tests of this program count the allocations of a thread.
    written.reserve(all.size());
    const auto take = [&] {
      const std::string_view chunk = cow_snapshot.next();
      EXPECT_LE(chunk.size(), kChunk);
      written += chunk;
      return !chunk.empty();
    };
    for (std::size_t k = 0; k < before; ++k) take();
    std::thread writer([&] {
      // The owner gets time to copy; then it waits for the chunk that is in use.
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      while (take()) {
      }
      cow_snapshot.close();
    });
    cow_snapshot.own_rest();
    overwrite(parts);
    writer.join();
    EXPECT_TRUE(written == all) << before;
  }
}

TEST(CowSnapshot, CopiesNothingForAFasterWriter) {
  std::vector<std::string> parts = some_parts();
  CowSnapshot cow_snapshot;
  begin(cow_snapshot, parts);
  const auto lies_in_parts = [&](std::string_view chunk) {
    return std::ranges::any_of(parts, [&](const std::string& part) {
      return chunk.data() >= part.data() && chunk.data() < part.data() + part.size();
    });
  };
  std::size_t viewed = 0;
  for (std::string_view chunk = cow_snapshot.next(); !chunk.empty(); chunk = cow_snapshot.next())
    viewed += lies_in_parts(chunk) ? chunk.size() : 0;
  cow_snapshot.own_rest();
  EXPECT_EQ(viewed, 4 * kChunk + 1 + ByteSegments::kLeastViewed);
}

// The first snapshot of a folder is written twice, later ones once.
TEST(CowSnapshot, CanBeASectionOfASnapshot) {
  SimulatedDisk disk(1);
  Journal journal(disk, Durability::kProcess);
  for (int k = 0; k < 2; ++k) {
    const std::vector<std::string> parts = some_parts();
    CowSnapshot cow_snapshot;
    begin(cow_snapshot, parts);
    const Section about{1, "about"};
    const CowSection section{2, &cow_snapshot};
    ASSERT_TRUE(journal.write_snapshot(journal.begin_snapshot(), std::span(&about, 1), &section));
    cow_snapshot.close();
    Journal next(disk, Durability::kProcess);
    const auto found = next.recover({.snapshot =
                                         [&](std::span<const Section> sections) {
                                           EXPECT_EQ(sections.size(), 2u);
                                           EXPECT_EQ(sections[0].bytes, "about");
                                           EXPECT_EQ(sections[1].tag, 2u);
                                           EXPECT_TRUE(sections[1].bytes == sum_of(parts));
                                           return true;
                                         },
                                     .record = [](std::string_view) { return true; }});
    ASSERT_TRUE(found && *found) << k;
    const std::string_view record = "a round";
    ASSERT_TRUE(journal.append(std::span(&record, 1)));
  }
}

TEST(CowSnapshot, ReleasesWaitersIfTheWriterGivesUp) {
  std::vector<std::string> parts = some_parts();
  CowSnapshot cow_snapshot;
  begin(cow_snapshot, parts);
  EXPECT_FALSE(cow_snapshot.next().empty());
  cow_snapshot.close();
  cow_snapshot.own_rest();
  EXPECT_TRUE(cow_snapshot.next().empty());
}

}  // namespace
}  // namespace gradwire
