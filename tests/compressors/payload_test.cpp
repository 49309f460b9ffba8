#include "compressors/payload.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

namespace gradwire {
namespace {

using Indices = std::vector<std::uint32_t>;

Payload<float> part(Shape shape, std::uint32_t dim, const Vec<float>& values, const Indices& indices = {},
                    std::uint32_t first = 0) {
  Payload<float> p;
  p.shape = shape;
  p.dim = dim;
  p.first = first;
  p.indices = indices;
  p.values = values;
  return p;
}

TEST(IndexBits, IsTheLogarithmRoundedUp) {
  const std::pair<std::uint64_t, std::uint32_t> cases[] = {
      {0, 0},  {1, 0},  {2, 1},     {3, 2},         {4, 2},        {5, 3},
      {64, 6}, {65, 7}, {1000, 10}, {1u << 20, 20}, {kMaxDim, 32}, {(1ull << 32) + 1, 33}};
  for (const auto& [d, bits] : cases) EXPECT_EQ(index_bits(d), bits) << d;
}

TEST(WireBits, MatchTheTableForEveryShapeAndPacking) {
  const Vec<float> values = {1, 2, 4};
  const Indices indices = {3, 5, 90};
  EXPECT_EQ(wire_bits(Payload<float>{}), 0);
  EXPECT_EQ(wire_bits(part(Shape::kDense, 3, values)), 3 * 32);
  EXPECT_EQ(wire_bits(part(Shape::kSparse, 100, values, indices)), 3 * 32 + 3 * 7);
  EXPECT_EQ(wire_bits(part(Shape::kRange, 100, values)), 3 * 32 + 7);
  const Vec<double> doubles = {1, 2, 4};
  EXPECT_EQ(wire_bits(Payload<double>::dense(doubles)), 3 * 64);
  Payload<double> natural = Payload<double>::dense(doubles);
  natural.packing = Packing::kNatural;
  EXPECT_EQ(wire_bits(natural), 3 * 12);
  Payload<float> packed = part(Shape::kSparse, 100, values, indices);
  packed.packing = Packing::kNatural;
  EXPECT_EQ(wire_bits(packed), 3 * 9 + 3 * 7);
}

TEST(WireBits, IndicesCostAtMostABitmap) {
  const Vec<float> values(3, 1);
  const Indices indices = {0, 1, 2};
  EXPECT_EQ(wire_bits(part(Shape::kSparse, 12, values, indices)), 3 * 32 + 12);  // 3 indices of 4 bits: a tie
  EXPECT_EQ(wire_bits(part(Shape::kSparse, 11, values, indices)), 3 * 32 + 11);
  EXPECT_EQ(wire_bits(part(Shape::kSparse, 16, values, indices)), 3 * 32 + 12);
}

TEST(WireBits, SeededSupportsAreFree) {
  const Vec<float> values(3, 1);
  const Indices indices = {0, 1, 2};
  for (Payload<float> p : {part(Shape::kSparse, 1000, values, indices), part(Shape::kRange, 1000, values)}) {
    const RngKey key;
    p.key = &key;
    EXPECT_EQ(wire_bits(p), 3 * 32);
  }
}

// Decodes each range [lo, hi), and compares the result with `decoded` entry by entry.
void expect_decodes_to(const Payload<float>& p, const Vec<float>& decoded) {
  const std::size_t d = decoded.size();
  for (std::size_t lo = 0; lo <= d; ++lo) {
    for (std::size_t hi = lo; hi <= d; ++hi) {
      Vec<float> out(d, 100);
      add_decoded<float>(p, 2, out, lo, hi);
      for (std::size_t j = 0; j < d; ++j)
        ASSERT_EQ(out[j], 100 + (lo <= j && j < hi ? 2 * decoded[j] : 0)) << lo << ' ' << hi << ' ' << j;
    }
  }
}

TEST(AddDecoded, DecodesEveryShapeOnEveryRange) {
  const Vec<float> values = {1, 2, 3};
  const Indices indices = {0, 3, 5};
  expect_decodes_to({}, {0, 0, 0});
  expect_decodes_to(part(Shape::kDense, 3, values), {1, 2, 3});
  expect_decodes_to(part(Shape::kSparse, 6, values, indices), {1, 0, 0, 2, 0, 3});
  expect_decodes_to(part(Shape::kSparse, 6, {}), {0, 0, 0, 0, 0, 0});
  expect_decodes_to(part(Shape::kRange, 6, values, {}, 0), {1, 2, 3, 0, 0, 0});
  expect_decodes_to(part(Shape::kRange, 6, values, {}, 2), {0, 0, 1, 2, 3, 0});
  expect_decodes_to(part(Shape::kRange, 6, values, {}, 3), {0, 0, 0, 1, 2, 3});
  expect_decodes_to(part(Shape::kRange, 6, values, {}, 4), {3, 0, 0, 0, 1, 2});
  expect_decodes_to(part(Shape::kRange, 6, values, {}, 5), {2, 3, 0, 0, 0, 1});
  expect_decodes_to(part(Shape::kRange, 3, values, {}, 2), {2, 3, 1});
}

TEST(StoreOf, TakesTheBufferOfAWholeVectorAndLeavesOneOfThatSize) {
  PayloadBuffer<double> payload_buffer;
  payload_buffer.values().assign(2, 7.0);
  Vec<double> v = {1, 2, 3};
  const double* buffer = v.data();
  const Payload<double>& p = payload_buffer.whole(v);
  EXPECT_EQ(p.values.data(), buffer);
  EXPECT_EQ(p.dim, 3u);
  ASSERT_EQ(v.size(), 3u);
  EXPECT_NE(v.data(), buffer);
  payload_buffer.whole(v);
  EXPECT_EQ(v.data(), buffer);  // the two buffers alternate
}

TEST(StoreOf, ViewSurvivesAMove) {
  PayloadBuffer<float> payload_buffer;
  payload_buffer.indices() = {1, 4};
  payload_buffer.values() = {5, 6};
  payload_buffer.sparse(9);
  const PayloadBuffer<float> moved = std::move(payload_buffer);
  ASSERT_EQ(moved.view().values.size(), 2u);
  EXPECT_EQ(moved.view().values[1], 6);
  EXPECT_EQ(moved.view().indices[1], 4u);
}

TEST(StoreOf, PublishingResetsTheMarksOfTheLastPayload) {
  PayloadBuffer<float> payload_buffer;
  Vec<float> v = {1, 2};
  payload_buffer.whole(v);
  payload_buffer.set_packing({Packing::kNatural});
  payload_buffer.set_seeded({.seed = 3});
  payload_buffer.values().assign(1, 1.0f);
  const Payload<float>& p = payload_buffer.range(5, 4);
  EXPECT_EQ(p.packing, Packing::kPlain);
  EXPECT_EQ(p.key, nullptr);
  payload_buffer.clear();
  EXPECT_EQ(payload_buffer.view().shape, Shape::kNothing);
}

TEST(ScratchOf, WorkVectorsKeepTheirAddressesWhenMoreAreAdded) {
  Scratch<float> scratch;
  Vec<float>& first = scratch.vec(0, 3);
  first = {1, 2, 3};
  for (std::size_t k = 1; k < 20; ++k) EXPECT_EQ(scratch.vec(k, 5).size(), 5u);
  EXPECT_EQ(first, (Vec<float>{1, 2, 3}));
  EXPECT_EQ(&scratch.vec(0, 3), &first);
}

}  // namespace
}  // namespace gradwire
