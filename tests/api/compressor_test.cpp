// NamedCompressor and Compressed: the compressors of the library for vectors of a program.
#include "gradwire/compressor.h"

#include <cmath>
#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

#include "compressors/compressor.h"

namespace gradwire {
namespace {

std::vector<double> numbers(std::size_t d) {
  std::vector<double> v(d);
  for (std::size_t j = 0; j < d; ++j) v[j] = std::sin(static_cast<double>(j * j + 1));
  return v;
}

TEST(NamedCompressor, SendsTheLargestEntries) {
  const NamedCompressor top("topk:k=2", 5);
  const std::vector<double> v = {1, -7, 0, 3, 2};
  const Compressed<double> sent = top.compress<double>(v);
  EXPECT_EQ(sent.dim(), 5u);
  EXPECT_EQ(sent.indices(), (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(sent.values(), (std::vector<double>{-7, 3}));
  EXPECT_EQ(sent.to_vector(), (std::vector<double>{0, -7, 0, 3, 0}));
  EXPECT_EQ(sent.paper_bits(), 64);
  EXPECT_EQ(top.constants().alpha, 0.4);
  std::vector<double> sum = {1, 1, 1, 1, 1};
  sent.add_to(sum, 0.5);
  EXPECT_EQ(sum, (std::vector<double>{1, -2.5, 1, 2.5, 1}));
  EXPECT_THROW(sent.add_to(std::span(sum).first(4)), std::logic_error);
}

TEST(NamedCompressor, HasTheBitsOfTheLibrarysCompressors) {
  constexpr std::size_t d = 45;  // a triangle
  for (const char* spec :
       {"identity", "topk:k=5", "randk:k=5", "randseqk:k=7", "natural", "sign", "terngrad", "qsgd:s=4",
        "bernoulli:p=0.5", "rankr:r=2", "natural(randk:k=9)", "induced(topk:k=2,randk:k=3)", "permk"}) {
    SCOPED_TRACE(spec);
    const NamedCompressor named(spec, d, 3);
    for (std::uint32_t round = 0; round < 5; ++round) {
      const CompressorDraw draw{.seed = 9, .round = round, .client = 2, .part = 1};
      const std::vector<double> v = numbers(d);
      const Compressed<double> sent = named.compress<double>(v, draw);
      Vec<double> work = v;
      Scratch<double> scratch;
      PayloadBuffer<double> buffer;
      const Payload<double>& payload = compress<double>(
          parse_compressor(spec, d, 3), work, {9, 2, round, RngDomain::kCompressor + 1}, scratch, buffer);
      Vec<double> expected(d);
      add_decoded<double>(payload, 1, expected);
      EXPECT_EQ(sent.to_vector(), expected);
      EXPECT_EQ(sent.bits(), wire_bits(payload));
      // Indices and values together are the vector, where indices are sent.
      if (const auto indices = sent.indices(); !indices.empty()) {
        Vec<double> rebuilt(d);
        for (std::size_t k = 0; k < indices.size(); ++k) rebuilt[indices[k]] = sent.values()[k];
        EXPECT_EQ(rebuilt, expected);
      }
    }
  }
}

TEST(NamedCompressor, RejectsUnknownNamesAndOtherLengths) {
  try {
    NamedCompressor("topq:k=3", 10);
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'topk'"), std::string::npos) << error.what();
  }
  EXPECT_THROW(NamedCompressor("topk:k=3", 0), std::logic_error);
  const NamedCompressor top("topk:k=3", 10);
  EXPECT_THROW(top.compress<double>(numbers(9)), std::logic_error);
}

TEST(Compressed, ChecksItsIndices) {
  using Sent = Compressed<float>;
  EXPECT_EQ(Sent::entries(4, {0, 3}, {1, 2}).to_vector(), (std::vector<float>{1, 0, 0, 2}));
  EXPECT_EQ(Sent::entries(4, {}, {}).to_vector(), std::vector<float>(4));
  EXPECT_EQ(Sent::whole({1, 2, 3}).values(), (std::vector<float>{1, 2, 3}));
  EXPECT_THROW(Sent::entries(4, {0, 4}, {1, 2}), std::logic_error);
  EXPECT_THROW(Sent::entries(4, {2, 2}, {1, 2}), std::logic_error);
  EXPECT_THROW(Sent::entries(4, {3, 2}, {1, 2}), std::logic_error);
  EXPECT_THROW(Sent::entries(4, {3}, {1, 2}), std::logic_error);
}

}  // namespace
}  // namespace gradwire
