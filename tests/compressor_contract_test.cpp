// What every compressor must keep. The list of types comes from the variant, their parameters from fields():
// a new compressor is tested without a new test.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "compressors/compressor.h"
#include "tests/count_allocations.h"

namespace gradwire {
namespace {

struct Setter {
  std::uint32_t k;
  bool flag;
  void operator()(std::string_view, Count& count) const { count = {k, 0}; }
  void operator()(std::string_view, Clients& n) const { n = {k}; }
  void operator()(std::string_view, bool& value) const { value = flag; }
};

template <class C>
void add_variants(std::size_t d, std::vector<Compressor>& all) {
  for (const std::size_t k : {std::size_t{1}, (d + 2) / 3, d / 2 + 1, d}) {
    for (const bool flag : {true, false}) {
      C c;
      C::fields(c, Setter{static_cast<std::uint32_t>(k), flag});
      if (k <= d && std::find(all.begin(), all.end(), Compressor(c)) == all.end()) all.push_back(c);
    }
  }
}
template <std::size_t... I>
std::vector<Compressor> variants(std::size_t d, std::index_sequence<I...>) {
  std::vector<Compressor> all;
  (add_variants<std::variant_alternative_t<I, Compressor>>(d, all), ...);
  return all;
}
// Every compressor with every parameter, for vectors of length d.
std::vector<Compressor> variants(std::size_t d) {
  return variants(d, std::make_index_sequence<std::variant_size_v<Compressor>>{});
}

template <class Real>
struct Input {
  std::string name;
  Vec<Real> x;
};

// Vectors on which the bounds of theory hold up to rounding.
template <class Real>
std::vector<Input<Real>> ordinary_inputs(std::size_t d) {
  Stream stream({.seed = 77});
  Vec<Real> random(d), hot(d), huge(d), tiny(d);
  for (Real& t : random) t = static_cast<Real>(stream.uniform() + stream.uniform() - 1);
  hot[d / 2] = Real(-3);
  const auto far = static_cast<Real>(sizeof(Real) == 4 ? 1e30 : 1e200);
  for (std::size_t j = 0; j < d; ++j) {
    huge[j] = random[j] * far;
    tiny[j] = random[j] / far;
  }
  return {{"random", random}, {"zero", Vec<Real>(d)}, {"constant", Vec<Real>(d, Real(-0.7))},
          {"one-hot", hot},   {"huge", huge},         {"tiny", tiny}};
}
// And those on which only the form of the payload is promised.
template <class Real>
std::vector<Input<Real>> all_inputs(std::size_t d) {
  using Limits = std::numeric_limits<Real>;
  const Real edge[] = {Real(-0.0),         Real(0),       Limits::denorm_min(),
                       -Limits::min() / 2, Limits::max(), -Limits::min()};
  Vec<Real> edges(d);
  for (std::size_t j = 0; j < d; ++j) edges[j] = edge[j % std::size(edge)];
  std::vector<Input<Real>> inputs = ordinary_inputs<Real>(d);
  inputs.push_back({"edges", edges});
  inputs.push_back({"minus zero", Vec<Real>(d, Real(-0.0))});
  return inputs;
}

template <class Real>
Vec<Real> decode(const Payload<Real>& p) {
  Vec<Real> out(p.dim);
  add_decoded<Real>(p, 1, out);
  return out;
}

template <class Real>
void expect_same_bits(View<Real> a, View<Real> b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t j = 0; j < a.size(); ++j) {
    EXPECT_EQ(a[j], b[j]);
    EXPECT_EQ(std::signbit(a[j]), std::signbit(b[j]));
  }
}

template <class Real>
void expect_same_payload(const Payload<Real>& a, const Payload<Real>& b) {
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.packing, b.packing);
  EXPECT_EQ(a.seeded, b.seeded);
  EXPECT_EQ(a.dim, b.dim);
  EXPECT_EQ(a.first, b.first);
  EXPECT_EQ(a.key, b.key);
  EXPECT_TRUE(std::equal(a.indices.begin(), a.indices.end(), b.indices.begin(), b.indices.end()));
  expect_same_bits<Real>(a.values, b.values);
}

template <class Real>
class CompressorContract : public testing::Test {
 protected:
  const Payload<Real>& compressed(const Compressor& c, const Vec<Real>& x, const StreamKey& key) {
    v_ = x;
    return compress(c, v_, key, scratch_, store_);
  }
  // Calls check(compressor, input) for all of them, and says which when a check fails.
  template <class Check>
  void each(const std::vector<std::size_t>& dims, bool ordinary, Check check) {
    for (const std::size_t d : dims) {
      const auto inputs = ordinary ? ordinary_inputs<Real>(d) : all_inputs<Real>(d);
      for (const Compressor& c : variants(d)) {
        for (const Input<Real>& input : inputs) {
          SCOPED_TRACE(to_spec(c) + ", d = " + std::to_string(d) + ", " + input.name);
          check(c, input.x);
          if (this->HasFatalFailure()) return;
        }
      }
    }
  }

  Vec<Real> v_;
  Scratch<Real> scratch_;
  Store<Real> store_;
};

const std::vector<std::size_t> kDims = {1, 2, 7, 64, 65, 123, 1000};
const std::vector<std::size_t> kSmallDims = {1, 2, 7, 65};

using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(CompressorContract, Reals);

TYPED_TEST(CompressorContract, PayloadIsWellFormed) {
  this->each(kDims, false, [&](const Compressor& c, const Vec<TypeParam>& x) {
    const auto& p = this->compressed(c, x, {.seed = 3, .client = 1});
    ASSERT_EQ(p.dim, x.size());
    ASSERT_LE(p.values.size(), x.size());
    ASSERT_EQ(p.indices.size(), p.shape == Shape::kSparse ? p.values.size() : 0);
    for (std::size_t i = 1; i < p.indices.size(); ++i) ASSERT_LT(p.indices[i - 1], p.indices[i]);
    if (!p.indices.empty()) {
      ASSERT_LT(p.indices.back(), p.dim);
    }
    if (p.shape == Shape::kDense) {
      ASSERT_EQ(p.values.size(), x.size());
    }
    if (p.shape == Shape::kRange) {
      ASSERT_LT(p.first, p.dim);
    }
    if (p.seeded) {
      ASSERT_EQ(p.key, (StreamKey{.seed = 3, .client = 1}));
    }
    if (p.packing == Packing::kNatural) {
      int exponent = 0;
      for (const TypeParam t : p.values)
        ASSERT_TRUE(t == 0 || std::abs(std::frexp(t, &exponent)) == TypeParam(0.5));
    }
  });
}

TYPED_TEST(CompressorContract, SameKeyGivesTheSamePayloadWhateverWasInTheBuffers) {
  this->each(kDims, false, [&](const Compressor& c, const Vec<TypeParam>& x) {
    Vec<TypeParam> fresh = x;
    Scratch<TypeParam> scratch;
    Store<TypeParam> store;
    const StreamKey key{.seed = 5, .client = 6, .round = 7, .purpose = Purpose::kCompressor + 1};
    expect_same_payload(compress(c, fresh, key, scratch, store), this->compressed(c, x, key));
  });
}

TYPED_TEST(CompressorContract, EveryPartOfTheKeyCountsWhereTheCompressorIsRandom) {
  const std::size_t d = 65;
  const Vec<TypeParam> x = ordinary_inputs<TypeParam>(d)[0].x;
  for (const Compressor& c : variants(d)) {
    SCOPED_TRACE(to_spec(c));
    const Payload<TypeParam>& first = this->compressed(c, x, {});
    const Quality q = quality(c, d);
    const bool is_random = (q.unbiased && q.omega > 0) || (first.seeded && first.values.size() < d);
    const Vec<TypeParam> reference = decode(first);
    int differ[4] = {};
    for (std::uint32_t i = 1; i <= 50; ++i) {
      const StreamKey keys[4] = {
          {.seed = i}, {.client = i}, {.round = i}, {.purpose = Purpose::kCompressor + i}};
      for (int part = 0; part < 4; ++part)
        differ[part] += decode(this->compressed(c, x, keys[part])) != reference;
    }
    for (const int count : differ) {
      if (is_random) {
        EXPECT_GT(count, 15);  // of two clients of PermK, every other draw is the same
      }
      if (!is_random) {
        EXPECT_EQ(count, 0);
      }
    }
  }
}

TYPED_TEST(CompressorContract, DecodingSplitRangesIsDecodingTheWhole) {
  this->each({1, 2, 7, 65, 123}, true, [&](const Compressor& c, const Vec<TypeParam>& x) {
    const auto& p = this->compressed(c, x, {.seed = 11, .round = static_cast<std::uint32_t>(x.size())});
    const Vec<TypeParam> start(x.size(), TypeParam(0.25));
    Vec<TypeParam> whole = start;
    add_decoded<TypeParam>(p, TypeParam(0.3), whole);
    for (std::size_t cut = 0; cut <= x.size(); ++cut) {
      Vec<TypeParam> split = start;
      const std::size_t middle = cut + (x.size() - cut) / 2;
      add_decoded<TypeParam>(p, TypeParam(0.3), split, middle, x.size());
      add_decoded<TypeParam>(p, TypeParam(0.3), split, 0, cut);
      add_decoded<TypeParam>(p, TypeParam(0.3), split, cut, middle);
      ASSERT_EQ(split, whole);
    }
  });
}

// Mean and its standard error of what is added.
struct Mean {
  long double sum = 0, sum_sq = 0;
  int n = 0;
  void add(long double t) {
    sum += t;
    sum_sq += t * t;
    ++n;
  }
  long double value() const { return sum / n; }
  long double error() const { return std::sqrt(std::max(0.0L, sum_sq / n - value() * value()) / n); }
};

constexpr int kDraws = 4000;
constexpr long double kZ = 5.5;

TYPED_TEST(CompressorContract, UnbiasedOnesAreRightOnAverage) {
  constexpr long double kRounding = 4 * std::numeric_limits<TypeParam>::epsilon();
  this->each(kSmallDims, true, [&](const Compressor& c, const Vec<TypeParam>& x) {
    if (!quality(c, x.size()).unbiased) return;
    const TypeParam scale = std::max(std::abs(*std::max_element(x.begin(), x.end())),
                                     std::abs(*std::min_element(x.begin(), x.end())));
    if (scale == 0) {
      ASSERT_EQ(decode(this->compressed(c, x, {})), x);
      return;
    }
    std::vector<Mean> mean(x.size());
    for (std::uint32_t t = 0; t < kDraws; ++t) {
      const Vec<TypeParam> decoded = decode(this->compressed(c, x, {.seed = 21, .round = t}));
      for (std::size_t j = 0; j < x.size(); ++j) mean[j].add(decoded[j] / static_cast<long double>(scale));
    }
    for (std::size_t j = 0; j < x.size(); ++j)
      ASSERT_NEAR(mean[j].value(), x[j] / static_cast<long double>(scale), kZ * mean[j].error() + kRounding)
          << j;
  });
}

TYPED_TEST(CompressorContract, MeanSquaredErrorAndNumberOfValuesAreWhatQualitySays) {
  constexpr long double kRounding = 64 * std::numeric_limits<TypeParam>::epsilon();
  this->each(kSmallDims, true, [&](const Compressor& c, const Vec<TypeParam>& x) {
    const Quality q = quality(c, x.size());
    ASSERT_TRUE(q.unbiased || q.alpha > 0);
    long double norm_sq = 0;
    for (const long double t : x) norm_sq += t * t;
    Mean error, sent;
    for (std::uint32_t t = 0; t < kDraws / 2; ++t) {
      const auto& p = this->compressed(c, x, {.seed = 22, .round = t});
      sent.add(static_cast<long double>(p.values.size()));
      const Vec<TypeParam> decoded = decode(p);
      long double error_sq = 0;
      for (std::size_t j = 0; j < x.size(); ++j)
        error_sq +=
            (static_cast<long double>(decoded[j]) - x[j]) * (static_cast<long double>(decoded[j]) - x[j]);
      error.add(norm_sq > 0 ? error_sq / norm_sq : error_sq);
    }
    ASSERT_NEAR(sent.value(), q.zeta, kZ * sent.error() + 1e-9);
    const long double slack = kZ * error.error() + kRounding * (1 + q.omega);
    if (q.unbiased) {
      ASSERT_LE(error.value(), q.omega + slack);
    }
    if (q.alpha > 0) {
      ASSERT_LE(error.value(), 1 - q.alpha + slack);
    }
  });
}

TYPED_TEST(CompressorContract, WireBitsFollowTheTable) {
  this->each(kDims, false, [&](const Compressor& c, const Vec<TypeParam>& x) {
    const auto& p = this->compressed(c, x, {.seed = 1});
    double index = 0;  // ceil(log2 d), the slow way
    while (std::ldexp(1.0, static_cast<int>(index)) < static_cast<double>(x.size())) ++index;
    const double count = static_cast<double>(p.values.size()), d = static_cast<double>(x.size());
    double bits = count * 8 * sizeof(TypeParam);
    if (p.packing == Packing::kNatural) bits = count * (sizeof(TypeParam) == 4 ? 9 : 12);
    if (p.shape == Shape::kSparse && !p.seeded) bits += std::min(count * index, d);
    if (p.shape == Shape::kRange && !p.seeded) bits += index;
    ASSERT_EQ(wire_bits(p), bits);
  });
}

TYPED_TEST(CompressorContract, SeededSupportsAreRedrawnAndOthersRefused) {
  const Shape shapes[] = {Shape::kNothing, Shape::kDense, Shape::kSparse, Shape::kRange};
  this->each(kDims, true, [&](const Compressor& c, const Vec<TypeParam>& x) {
    const auto& p = this->compressed(c, x, {.seed = 4, .client = 9, .round = 2});
    std::vector<std::uint32_t> indices = {1, 2, 3};
    std::uint32_t first = 0;
    const std::size_t count = p.values.size();
    for (const Shape shape : shapes) {
      const bool mine = p.seeded && shape == p.shape;
      ASSERT_EQ(redraw_support(c, shape, count, p.dim, p.key, indices, first), mine);
      ASSERT_FALSE(redraw_support(c, shape, count + 1, p.dim, p.key, indices, first));
      ASSERT_FALSE(redraw_support(c, shape, count - 1, p.dim, p.key, indices, first));
      ASSERT_FALSE(redraw_support(c, shape, count, p.dim - 1, p.key, indices, first) && count == p.dim);
      ASSERT_FALSE(redraw_support(c, shape, 0, 0, p.key, indices, first));
    }
    if (!p.seeded) return;
    indices.assign(5, 0);
    ASSERT_TRUE(redraw_support(c, p.shape, count, p.dim, p.key, indices, first));
    if (p.shape == Shape::kSparse) {
      ASSERT_TRUE(std::equal(indices.begin(), indices.end(), p.indices.begin(), p.indices.end()));
    }
    if (p.shape == Shape::kRange) {
      ASSERT_EQ(first, p.first);
    }
  });
}

TYPED_TEST(CompressorContract, DenseResultTakesTheBufferAndLeavesOneOfTheSameSize) {
  this->each(kDims, false, [&](const Compressor& c, const Vec<TypeParam>& x) {
    this->v_ = x;
    const TypeParam* buffer = this->v_.data();
    const auto& p = compress(c, this->v_, {}, this->scratch_, this->store_);
    ASSERT_EQ(this->v_.size(), x.size());
    if (p.shape == Shape::kDense) {
      ASSERT_EQ(p.values.data(), buffer);
    }
    if (p.shape != Shape::kDense) {
      ASSERT_EQ(this->v_.data(), buffer);
    }
  });
}

TYPED_TEST(CompressorContract, NothingIsAllocatedAfterWarmUp) {
  for (const std::size_t d : {std::size_t{7}, std::size_t{1000}, std::size_t{40000}}) {
    const Vec<TypeParam> x = ordinary_inputs<TypeParam>(d)[0].x;
    for (const Compressor& c : variants(d)) {
      SCOPED_TRACE(to_spec(c) + ", d = " + std::to_string(d));
      Vec<TypeParam> v(d);
      Scratch<TypeParam> scratch;
      Store<TypeParam> store;
      std::vector<std::uint32_t> indices;
      std::uint32_t first = 0;
      for (std::uint32_t round = 0; round < 10; ++round) {
        if (round == 3) allocations::reset();
        std::copy(x.begin(), x.end(), v.begin());
        const auto& p = compress(c, v, {.round = round}, scratch, store);
        redraw_support(c, p.shape, p.values.size(), p.dim, p.key, indices, first);
      }
      EXPECT_EQ(allocations::count, 0u);
    }
  }
}

TYPED_TEST(CompressorContract, CountThatWasNotResolvedForThisLengthIsAProgrammingError) {
  Vec<TypeParam> v(3, TypeParam(1));
  for (const char* name : {"topk", "randk", "randseqk"}) {
    for (const char* k : {":k=4", ":k=50%"}) {
      const Compressor c = parse_compressor(std::string(name) + k, 0);
      EXPECT_THROW(compress(c, v, {}, this->scratch_, this->store_), std::logic_error);
      EXPECT_THROW(quality(c, 3), std::logic_error);
    }
  }
}

TEST(CompressorList, EveryVariantIsReadBackFromItsSpec) {
  for (const std::size_t d : {std::size_t{1}, std::size_t{2}, std::size_t{123}}) {
    for (const Compressor& c : variants(d)) EXPECT_EQ(parse_compressor(to_spec(c), d), c) << to_spec(c);
  }
}

TEST(CompressorList, HelpNamesEveryCompressorOnce) {
  const auto help = compressor_help();
  ASSERT_EQ(help.size(), std::variant_size_v<Compressor>);
  for (const auto& h : help) {
    EXPECT_FALSE(h.summary.empty());
    EXPECT_FALSE(h.quality.empty());
    const std::string spec = h.parameters.empty() ? h.name : h.name + ":" + h.parameters;
    EXPECT_EQ(parse_compressor(h.name, 9), parse_compressor(spec, 9));
    EXPECT_EQ(
        std::count_if(help.begin(), help.end(), [&](const auto& other) { return other.name == h.name; }), 1);
  }
}

}  // namespace
}  // namespace gradwire
