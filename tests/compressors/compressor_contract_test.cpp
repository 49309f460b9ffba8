// The guarantees of every compressor. The list of types comes from SimpleCompressors, their parameters from
// fields(), so a new compressor is tested without a new test.
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
#include "tests/compressors/compressor_support.h"
#include "tests/support/count_allocations.h"

namespace gradwire {
namespace {

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
  EXPECT_EQ(a.dim, b.dim);
  EXPECT_EQ(a.first, b.first);
  ASSERT_EQ(a.key != nullptr, b.key != nullptr);
  if (a.key != nullptr) {
    EXPECT_EQ(*a.key, *b.key);
  }
  EXPECT_TRUE(std::equal(a.indices.begin(), a.indices.end(), b.indices.begin(), b.indices.end()));
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.levels, b.levels);
  EXPECT_EQ(a.unit, b.unit);
  expect_same_bits<Real>(a.values, b.values);
  ASSERT_EQ(a.next != nullptr, b.next != nullptr);
  if (a.next != nullptr) expect_same_payload(*a.next, *b.next);
}

template <class Real>
class CompressorContract : public ::testing::Test {
 protected:
  const Payload<Real>& compressed(const Compressor& c, const Vec<Real>& x, const RngKey& key) {
    v_ = x;
    return compress(c, v_, key, scratch_, buffer_);
  }
  // Calls check(compressor, input) for all of them, and traces which one fails.
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
  PayloadBuffer<Real> buffer_;
};

// The dimensions of the tested vectors. The triangles that RankR compresses can have 1 or 10 entries.
const std::vector<std::size_t> kDims = {1, 2, 7, 10, 64, 65, 123, 1000};
const std::vector<std::size_t> kSmallDims = {1, 2, 7, 10, 65};

using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CompressorContract, Reals);

TYPED_TEST(CompressorContract, PayloadIsWellFormed) {
  this->each(kDims, false, [&](const Compressor& c, const Vec<TypeParam>& x) {
    const auto& whole = this->compressed(c, x, {.seed = 3, .client = 1});
    each_link(whole, [&](const Payload<TypeParam>& p, std::size_t number) {
      ASSERT_LT(number, kMaxLinks);
      ASSERT_EQ(p.dim, x.size());
      if (p.shape == Shape::kLowRank) {
        ASSERT_EQ(p.dim % p.rows, 0u);
        ASSERT_EQ(p.values.size() % (p.rows + p.dim / p.rows), 0u);
      } else if (p.shape == Shape::kSymmetric) {
        const std::uint32_t m = triangle_side(p.dim);
        ASSERT_EQ(m * (m + 1) / 2, p.dim);
        ASSERT_EQ(p.values.size() % (m + 1), 0u);
      } else {
        ASSERT_LE(p.values.size(), x.size());
      }
      ASSERT_EQ(p.indices.size(), p.shape == Shape::kSparse ? p.values.size() : 0);
      for (std::size_t i = 1; i < p.indices.size(); ++i) ASSERT_LT(p.indices[i - 1], p.indices[i]);
      if (!p.indices.empty()) {
        ASSERT_LT(p.indices.back(), p.dim);
      }
      ASSERT_EQ(p.values.empty(), p.shape == Shape::kNothing || p.values.size() == 0);
      if (p.shape == Shape::kDense) {
        ASSERT_EQ(p.values.size(), x.size());
      }
      if (p.shape == Shape::kRange) {
        ASSERT_LT(p.first, p.dim);
      }
      if (p.key != nullptr) {
        const auto domain = RngDomain::kCoin + (number == 0 ? 0 : kSecondDraw);
        ASSERT_EQ(*p.key, (RngKey{.seed = 3, .client = 1, .domain = domain}));
      }
      check_packing(p);
    });
  });
}

TYPED_TEST(CompressorContract, SameKeyGivesTheSamePayloadForAnyBufferContents) {
  this->each(kDims, false, [&](const Compressor& c, const Vec<TypeParam>& x) {
    Vec<TypeParam> fresh = x;
    Scratch<TypeParam> scratch;
    PayloadBuffer<TypeParam> buffer;
    const RngKey key{.seed = 5, .client = 6, .round = 7, .domain = RngDomain::kCompressor + 1};
    expect_same_payload(compress(c, fresh, key, scratch, buffer), this->compressed(c, x, key));
  });
}

TYPED_TEST(CompressorContract, EveryPartOfTheKeyChangesRandomPayloads) {
  const std::size_t d = 65;
  const Vec<TypeParam> x = ordinary_inputs<TypeParam>(d)[0].x;
  for (const Compressor& c : variants(d)) {
    SCOPED_TRACE(to_spec(c));
    const Payload<TypeParam>& first = this->compressed(c, x, {});
    const CompressorConstants q = constants(c, d);
    const bool must_be_random =
        (q.unbiased && q.omega > 0.3) || (first.key != nullptr && first.values.size() < d);
    const Vec<TypeParam> reference = decode(first);
    int differ[4] = {};
    for (std::uint32_t i = 1; i <= 50; ++i) {
      const RngKey keys[4] = {
          {.seed = i}, {.client = i}, {.round = i}, {.domain = RngDomain::kCompressor + i}};
      for (int part = 0; part < 4; ++part)
        differ[part] += decode(this->compressed(c, x, keys[part])) != reference;
    }
    // Not every key changes the payload: PermK with two clients repeats every other draw, and
    // TopLEK with k = 1 rarely sends another entry.
    const bool is_random = must_be_random || differ[0] > 0;
    for (const int count : differ) {
      if (is_random) {
        EXPECT_GE(count, 3);
      }
      if (!is_random) {
        EXPECT_EQ(count, 0);
      }
    }
  }
}

TYPED_TEST(CompressorContract, DecodingInRangesEqualsDecodingTheWhole) {
  this->each({1, 2, 7, 10, 65, 123}, true, [&](const Compressor& c, const Vec<TypeParam>& x) {
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

// The mean of the added numbers, and its standard error.
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

constexpr int kDraws = 1500;
constexpr long double kZ = 5.5;

TYPED_TEST(CompressorContract, UnbiasedCompressorsHaveTheRightMean) {
  // Allows for the rounding of the unit and its multiples, and for float draws of only 24 bits.
  constexpr long double kRounding = 16 * std::numeric_limits<TypeParam>::epsilon();
  this->each(kSmallDims, true, [&](const Compressor& c, const Vec<TypeParam>& x) {
    if (!constants(c, x.size()).unbiased) return;
    const TypeParam scale = std::max(std::abs(*std::max_element(x.begin(), x.end())),
                                     std::abs(*std::min_element(x.begin(), x.end())));
    if (scale == 0) {
      ASSERT_EQ(decode(this->compressed(c, x, {})), x);
      return;
    }
    std::vector<Mean> mean(x.size());
    long double step = 0;  // between neighbouring levels
    for (std::uint32_t t = 0; t < kDraws; ++t) {
      const auto& p = this->compressed(c, x, {.seed = 21, .round = t});
      if (sends_unit(p.packing)) step = std::max<long double>(step, p.unit / static_cast<long double>(scale));
      if (p.packing == Packing::kNatural) step = std::max<long double>(step, 1);
      const Vec<TypeParam> decoded = decode(p);
      for (std::size_t j = 0; j < x.size(); ++j) mean[j].add(decoded[j] / static_cast<long double>(scale));
    }
    // An improbable step may never occur in the draws. Then the standard error does not show it.
    const long double rare = 12 * step / kDraws;
    for (std::size_t j = 0; j < x.size(); ++j)
      ASSERT_NEAR(mean[j].value(), x[j] / static_cast<long double>(scale),
                  kZ * mean[j].error() + kRounding + rare)
          << j;
  });
}

// Returns the weight of each entry in the norm of alpha's definition: 2 off the diagonal for a Frobenius
// norm.
std::vector<long double> norm_weights(const Compressor& c, std::size_t d) {
  const bool frobenius = std::holds_alternative<RankR>(c);
  std::vector<long double> weights(d, frobenius ? 2 : 1);
  const std::uint32_t m = frobenius ? triangle_side(d) : 0;
  for (std::size_t a = 0, at = 0; a < m; at += m - a++) weights[at] = 1;
  return weights;
}

TYPED_TEST(CompressorContract, MeanSquaredErrorAndNumberOfValuesMatchTheConstants) {
  constexpr long double kRounding = 64 * std::numeric_limits<TypeParam>::epsilon();
  this->each(kSmallDims, true, [&](const Compressor& c, const Vec<TypeParam>& x) {
    const CompressorConstants q = constants(c, x.size());
    ASSERT_TRUE(q.unbiased || q.alpha > 0);
    const std::vector<long double> weights = norm_weights(c, x.size());
    long double norm_sq = 0;
    for (std::size_t j = 0; j < x.size(); ++j) norm_sq += weights[j] * x[j] * x[j];
    Mean error, sent;
    const bool at_most = to_spec(c).find("toplek") != std::string::npos;
    for (std::uint32_t t = 0; t < kDraws / 2; ++t) {
      const auto& p = this->compressed(c, x, {.seed = 22, .round = t});
      std::size_t values = 0;
      each_link(p, [&](const auto& link, std::size_t) { values += link.values.size(); });
      sent.add(static_cast<long double>(values));
      const Vec<TypeParam> decoded = decode(p);
      long double error_sq = 0;
      for (std::size_t j = 0; j < x.size(); ++j)
        error_sq += weights[j] * (static_cast<long double>(decoded[j]) - x[j]) *
                    (static_cast<long double>(decoded[j]) - x[j]);
      error.add(norm_sq > 0 ? error_sq / norm_sq : error_sq);
    }
    ASSERT_LE(sent.value(), q.zeta + kZ * static_cast<double>(sent.error()) + 1e-9);
    if (!at_most) {
      ASSERT_NEAR(sent.value(), q.zeta, kZ * sent.error() + 1e-9);
    }
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
    const auto& whole = this->compressed(c, x, {.seed = 1});
    double index = 0;  // ceil(log2 d) by a loop
    while (std::ldexp(1.0, static_cast<int>(index)) < static_cast<double>(x.size())) ++index;
    double bits = 0, paper = 0;
    each_link(whole, [&](const Payload<TypeParam>& p, std::size_t) {
      const double count = static_cast<double>(p.values.size()), d = static_cast<double>(x.size());
      const double one = 8 * sizeof(TypeParam);
      double level = 0;  // ceil(log2(s + 1))
      while (std::ldexp(1.0, static_cast<int>(level)) < p.levels + 1.0) ++level;
      if (p.shape == Shape::kSparse && p.key == nullptr) bits += std::min(count * index, d);
      if (p.shape == Shape::kRange && p.key == nullptr) bits += index;
      if (count == 0) return;
      switch (p.packing) {
        case Packing::kPlain: bits += count * one, paper += count * 32; return;
        case Packing::kNatural: bits += count * (one == 32 ? 9 : 12), paper += count * 9; return;
        case Packing::kTernary:
          bits += one + 8 * std::ceil(count / 5), paper += 32 + count * std::log2(3.0);
          return;
        case Packing::kLevels:
        case Packing::kDithered: bits += one + count * (1 + level), paper += 32 + count * (1 + level); return;
        case Packing::kSigns: bits += one + count, paper += 32 + count; return;
      }
    });
    ASSERT_EQ(wire_bits(whole), bits);
    ASSERT_DOUBLE_EQ(paper_bits(whole), paper);
  });
}

TYPED_TEST(CompressorContract, RedrawsSeededSupportsAndRefusesOthers) {
  const Shape shapes[] = {Shape::kNothing, Shape::kDense,   Shape::kSparse,
                          Shape::kRange,   Shape::kLowRank, Shape::kSymmetric};
  this->each(kDims, true, [&](const Compressor& c, const Vec<TypeParam>& x) {
    const auto& whole = this->compressed(c, x, {.seed = 4, .client = 9, .round = 2});
    ASSERT_EQ(chain_link(c, 0) != nullptr, true);
    ASSERT_EQ(chain_link(c, 1) != nullptr, whole.next != nullptr);
    ASSERT_EQ(chain_link(c, 2), nullptr);
    each_link(whole, [&](const Payload<TypeParam>& p, std::size_t number) {
      const Compressor& maker = *chain_link(c, number);
      std::vector<std::uint32_t> indices = {1, 2, 3};
      std::uint32_t first = 0;
      const std::size_t count = p.values.size();
      const RngKey key = p.key != nullptr ? *p.key : RngKey{};
      for (const Shape shape : shapes) {
        const bool mine = p.key != nullptr && shape == p.shape;
        ASSERT_EQ(redraw_support(maker, shape, count, p.dim, key, indices, first), mine);
        ASSERT_FALSE(redraw_support(maker, shape, count + 1, p.dim, key, indices, first));
        ASSERT_FALSE(redraw_support(maker, shape, count - 1, p.dim, key, indices, first));
        ASSERT_FALSE(redraw_support(maker, shape, count, p.dim - 1, key, indices, first) && count == p.dim);
        ASSERT_FALSE(redraw_support(maker, shape, 0, 0, key, indices, first));
      }
      if (p.key == nullptr) return;
      indices.assign(5, 0);
      ASSERT_TRUE(redraw_support(maker, p.shape, count, p.dim, key, indices, first));
      if (p.shape == Shape::kSparse) {
        ASSERT_TRUE(std::equal(indices.begin(), indices.end(), p.indices.begin(), p.indices.end()));
      }
      if (p.shape == Shape::kRange) {
        ASSERT_EQ(first, p.first);
      }
    });
  });
}

TYPED_TEST(CompressorContract, NeverHidesAnEntryThatIsNotFinite) {
  using Limits = std::numeric_limits<TypeParam>;
  for (const std::size_t d : kSmallDims) {
    for (const Compressor& c : variants(d)) {
      for (const TypeParam bad : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
        for (std::size_t j = 0; j < d; ++j) {
          SCOPED_TRACE(to_spec(c) + ", d = " + std::to_string(d) + ", entry " + std::to_string(j));
          Vec<TypeParam> x = ordinary_inputs<TypeParam>(d)[0].x;
          x[j] = bad;
          const auto& p = this->compressed(c, x, {.seed = 8, .round = static_cast<std::uint32_t>(j)});
          ASSERT_EQ(p.shape, Shape::kDense);
          ASSERT_EQ(p.next, nullptr);
          ASSERT_FALSE(std::isfinite(p.values[j]));
        }
      }
    }
  }
}

TYPED_TEST(CompressorContract, DenseResultSwapsBuffersOfTheSameSize) {
  this->each(kDims, false, [&](const Compressor& c, const Vec<TypeParam>& x) {
    this->v_ = x;
    const TypeParam* buffer = this->v_.data();
    const auto& p = compress(c, this->v_, {}, this->scratch_, this->buffer_);
    ASSERT_EQ(this->v_.size(), x.size());
    if (p.shape == Shape::kDense) {
      ASSERT_EQ(p.values.data(), buffer);
    }
    if (p.shape != Shape::kDense) {
      ASSERT_EQ(this->v_.data(), buffer);
    }
  });
}

TYPED_TEST(CompressorContract, AllocatesNothingAfterWarmUp) {
  for (const std::size_t d : {std::size_t{7}, std::size_t{66}, std::size_t{1000}, std::size_t{17000}}) {
    const Vec<TypeParam> x = ordinary_inputs<TypeParam>(d)[0].x;
    for (const Compressor& c : variants(d)) {
      SCOPED_TRACE(to_spec(c) + ", d = " + std::to_string(d));
      Vec<TypeParam> v(d);
      Scratch<TypeParam> scratch;
      PayloadBuffer<TypeParam> buffer;
      std::vector<std::uint32_t> indices;
      std::uint32_t first = 0;
      BlockMemo memo;
      for (std::uint32_t round = 0; round < 7; ++round) {
        if (round == 3) allocations::reset();
        std::copy(x.begin(), x.end(), v.begin());
        const auto& whole = compress(c, v, {.round = round}, scratch, buffer);
        each_link(whole, [&](const Payload<TypeParam>& p, std::size_t number) {
          if (p.key != nullptr)
            redraw_support(*chain_link(c, number), p.shape, p.values.size(), p.dim, *p.key, indices, first,
                           memo);
        });
      }
      EXPECT_EQ(allocations::count, 0u);
    }
  }
}

TYPED_TEST(CompressorContract, UnresolvedCountIsALogicError) {
  Vec<TypeParam> v(3, TypeParam(1));
  for (const char* name : {"topk", "randk", "randseqk", "toplek"}) {
    for (const char* k : {":k=4", ":k=50%"}) {
      const Compressor c = parse_compressor(std::string(name) + k, 0);
      EXPECT_THROW(compress(c, v, {}, this->scratch_, this->buffer_), std::logic_error);
      EXPECT_THROW(constants(c, 3), std::logic_error);
    }
  }
  for (const char* spec : {"permk", "rankk", "rankr:r=3", "natural(topk:k=4)"})
    EXPECT_THROW(compress(parse_compressor(spec, 0), v, {}, this->scratch_, this->buffer_), std::logic_error);
}

TEST(CompressorList, ReadsEveryVariantBackFromItsSpec) {
  for (const std::size_t d : {std::size_t{1}, std::size_t{2}, std::size_t{123}}) {
    for (const Compressor& c : variants(d)) EXPECT_EQ(parse_compressor(to_spec(c), d), c) << to_spec(c);
  }
}

TEST(CompressorList, HelpNamesEveryCompressorOnce) {
  const auto help = compressor_help();
  // A custom compressor has no spelling.
  ASSERT_EQ(help.size(), std::variant_size_v<Compressor::Variant> - 1);
  for (const auto& h : help) {
    EXPECT_FALSE(h.summary.empty());
    EXPECT_FALSE(h.constants.empty());
    EXPECT_EQ(
        std::count_if(help.begin(), help.end(), [&](const auto& other) { return other.name == h.name; }), 1);
    if (h.composed) continue;
    const std::string spec = h.parameters.empty() ? h.name : h.name + ":" + h.parameters;
    EXPECT_EQ(parse_compressor(h.name, 10), parse_compressor(spec, 10));
  }
}

}  // namespace
}  // namespace gradwire
