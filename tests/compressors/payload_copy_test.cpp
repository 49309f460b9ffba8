// copy_payload(): a copy that shares no memory with its source.
#include "compressors/payload_copy.h"

#include <gtest/gtest.h>
#include <vector>

namespace gradwire {
namespace {

struct Chain {
  std::vector<std::uint32_t> indices{1, 4};
  std::vector<double> values{0.5, -2}, rest{1, 2, 3};
  RngKey key{.seed = 7, .client = 2, .round = 3};
  Payload<double> second = Payload<double>::dense(rest);
  Payload<double> first;

  Chain() {
    first.dim = 5;
    first.shape = Shape::kSparse;
    first.indices = indices;
    first.values = values;
    first.key = &key;
    first.next = &second;
  }
};

TEST(PayloadCopy, StaysTheSameWhenItsSourceChanges) {
  Chain chain;
  Arena arena;
  Payload<double> copy = chain.first;
  copy_payload(copy, arena);
  chain.indices = {0, 0};
  chain.values = {9, 9};
  chain.rest = {9, 9, 9};
  chain.key.seed = 0;
  chain.second = {};
  EXPECT_EQ(std::vector(copy.indices.begin(), copy.indices.end()), (std::vector<std::uint32_t>{1, 4}));
  EXPECT_EQ(std::vector(copy.values.begin(), copy.values.end()), (std::vector<double>{0.5, -2}));
  ASSERT_NE(copy.key, nullptr);
  EXPECT_EQ(copy.key->seed, 7u);
  ASSERT_NE(copy.next, nullptr);
  EXPECT_EQ(std::vector(copy.next->values.begin(), copy.next->values.end()), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(copy.next->next, nullptr);
}

TEST(PayloadCopy, ChangesCopiedValuesOnly) {
  Chain chain;
  Arena arena;
  Payload<double> copy = chain.first;
  copy_payload(copy, arena, [](Payload<double>&, std::span<double> values) {
    for (double& v : values) v *= 2;
  });
  EXPECT_EQ(copy.values[1], -4);
  EXPECT_EQ(copy.next->values[2], 6);
  EXPECT_EQ(chain.values[1], -2);
  EXPECT_EQ(chain.rest[2], 3);
}

TEST(ArenaTest, ReusesItsMemory) {
  Arena arena;
  const std::vector<double> small(10, 1.5), large(100'000, 2.5);
  const double* const first = arena.copy(std::span(small)).data();
  EXPECT_EQ(arena.copy(std::span(large))[99'999], 2.5);
  EXPECT_EQ(first[9], 1.5) << "a new chunk moved an old copy";
  arena.clear();
  EXPECT_EQ(arena.copy(std::span(small)).data(), first);
}

}  // namespace
}  // namespace gradwire
