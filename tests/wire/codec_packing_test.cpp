// Tests of the packings of values, and of every compressor through the codec.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "proto/wire/bits.h"
#include "proto/wire/codec_body.h"
#include "proto/wire/wire.pb.h"
#include "tests/compressors/compressor_support.h"
#include "tests/wire/codec_support.h"

namespace gradwire {
namespace {

template <class Real>
Bytes packed(const Vec<Real>& values, const Packed<Real>& how) {
  EXPECT_TRUE(fits_packing<Real>(values, how));
  Bytes out(value_section_bytes(how.packing, how.levels, values.size(), sizeof(Real)));
  pack_values<Real>(values, how, out);
  return out;
}

template <class Real>
bool comes_back(const Vec<Real>& values, const Packed<Real>& how) {
  const Bytes bytes = packed(values, how);
  Packed<Real> read = how;
  if (sends_unit(how.packing)) read.unit = -7;
  Vec<Real> back(values.size());
  const Status status = unpack_values<Real>(bytes, read, back);
  EXPECT_TRUE(status) << status.error().message;
  return same_bits<Real>(back, values) && read.unit == how.unit;
}

// Returns the fields of a section, which come after the unit.
template <class Real>
Bytes fields_of(const Bytes& section) {
  return {section.begin() + sizeof(Real), section.end()};
}

template <class Real>
class PackingOf : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(PackingOf, Reals);

TYPED_TEST(PackingOf, PacksNaturalValuesLikeTheNaiveVersion) {
  using Real = TypeParam;
  constexpr std::uint32_t kExponentBits = sizeof(Real) == 4 ? 8 : 11;
  Material<Real> m;
  for (const std::size_t n : {1, 2, 3, 7, 8, 100, 1001}) {
    const auto view = m.vector(n, Values::kPowersOfTwo);
    const Vec<Real> values(view.begin(), view.end());
    std::vector<std::uint32_t> fields;
    for (const Real v : values) {
      const std::uint32_t sign = std::signbit(v) ? 1 : 0;
      const int bias = (1 << (kExponentBits - 1)) - 1;
      const std::uint32_t exponent = v == 0 ? 0 : static_cast<std::uint32_t>(std::ilogb(v) + bias);
      fields.push_back(sign << kExponentBits | exponent);
    }
    EXPECT_EQ(packed<Real>(values, {Packing::kNatural}), naive_pack(fields, kExponentBits + 1));
    EXPECT_TRUE(comes_back<Real>(values, {Packing::kNatural}));
  }
}

TYPED_TEST(PackingOf, NaturalFieldsNeverBecomeInfinityOrNan) {
  using Real = TypeParam;
  const std::uint32_t all_ones = sizeof(Real) == 4 ? 0xFF : 0x7FF, bits = sizeof(Real) == 4 ? 9 : 12;
  Vec<Real> back(1);
  Packed<Real> how{Packing::kNatural};
  EXPECT_FALSE(unpack_values<Real>(naive_pack(std::vector{all_ones}, bits), how, back));
  EXPECT_TRUE(unpack_values<Real>(naive_pack(std::vector{all_ones - 1}, bits), how, back));
  EXPECT_EQ(back[0], std::ldexp(Real{1}, std::numeric_limits<Real>::max_exponent - 1));
}

TYPED_TEST(PackingOf, WritesTheFieldsOfTheDefinition) {
  using Real = TypeParam;
  const Real u = Real(0.7);
  // Ternary: 0, unit and -unit are the digits 0, 1 and 2. A byte holds five digits, the lowest first.
  const Vec<Real> trits = {u, 0, -u, u, 0, -u, -u};
  EXPECT_EQ(fields_of<Real>(packed<Real>(trits, {Packing::kTernary, 1, u})),
            (Bytes{std::byte{1 + 0 + 2 * 9 + 27 + 0}, std::byte{2 + 2 * 3}}));
  const Vec<Real> levels = {3 * u, -u, 0, -5 * u};
  EXPECT_EQ(fields_of<Real>(packed<Real>(levels, {Packing::kLevels, 5, u})),
            naive_pack(std::vector<std::uint32_t>{3, 8 + 1, 0, 8 + 5}, 4));
  const Vec<Real> signs = {u, -u, -u};
  EXPECT_EQ(fields_of<Real>(packed<Real>(signs, {Packing::kSigns, 0, u})), (Bytes{std::byte{6}}));
  const Vec<Real> halves = {u, -u / 2, 0, u / 4};
  EXPECT_EQ(fields_of<Real>(packed<Real>(halves, {Packing::kDithered, 3, u})),
            naive_pack(std::vector<std::uint32_t>{1, 4 + 2, 0, 3}, 3));
  for (const auto& [values, how] : {std::pair{trits, Packed<Real>{Packing::kTernary, 1, u}},
                                    {levels, {Packing::kLevels, 5, u}},
                                    {signs, {Packing::kSigns, 0, u}},
                                    {halves, {Packing::kDithered, 3, u}},
                                    {{Real(-0.0), u, Real(0)}, {Packing::kLevels, 1, u}},
                                    {{Real(-0.0), Real(0)}, {Packing::kSigns, 0, 0}},
                                    {{Real(-0.0), -u}, {Packing::kDithered, 100, u}},
                                    {{u * 4, -u / 8, Real(-0.0)}, {Packing::kNatural, 0, u}}})
    EXPECT_TRUE(comes_back<Real>(values, how)) << static_cast<int>(how.packing);
}

TYPED_TEST(PackingOf, FitsOnlyMembersOfTheSet) {
  using Real = TypeParam;
  const Real u = Real(0.7), inf = std::numeric_limits<Real>::infinity(),
             nan = std::numeric_limits<Real>::quiet_NaN();
  const auto fits = [&](Real v, Packing packing, std::uint16_t levels) {
    return fits_packing<Real>(Vec<Real>{u, v}, {packing, levels, u});
  };
  for (const Packing p :
       {Packing::kTernary, Packing::kLevels, Packing::kSigns, Packing::kDithered, Packing::kNatural}) {
    EXPECT_TRUE(fits(-u, p, 3));
    for (const Real odd : {std::nextafter(u, inf), inf, nan, std::numeric_limits<Real>::denorm_min()})
      EXPECT_FALSE(fits(odd, p, 3)) << static_cast<int>(p) << " " << odd;
  }
  EXPECT_FALSE(fits(Real(-0.0), Packing::kTernary, 1));
  EXPECT_FALSE(fits(0, Packing::kSigns, 0));
  EXPECT_FALSE(fits(4 * u, Packing::kLevels, 3));
  EXPECT_FALSE(fits(u / 8, Packing::kDithered, 3));
  EXPECT_FALSE(fits(2 * u, Packing::kDithered, 3));
}

TYPED_TEST(PackingOf, RejectsSectionsThatEncodeNothing) {
  using Real = TypeParam;
  const auto refused = [](Packing packing, std::uint16_t levels, Real unit, Bytes fields, std::size_t count) {
    Bytes section(sizeof(Real));
    std::memcpy(section.data(), &unit, sizeof unit);
    section.insert(section.end(), fields.begin(), fields.end());
    Packed<Real> how{packing, levels};
    Vec<Real> back(count);
    EXPECT_EQ(value_section_bytes(packing, levels, count, sizeof(Real)), section.size());
    return !unpack_values<Real>(section, how, back);
  };
  const auto byte = [](int b) { return Bytes{static_cast<std::byte>(b)}; };
  EXPECT_FALSE(refused(Packing::kTernary, 1, 1, byte(242), 5));
  EXPECT_TRUE(refused(Packing::kTernary, 1, 1, byte(243), 5));
  EXPECT_FALSE(refused(Packing::kTernary, 1, 1, byte(8), 2));
  EXPECT_TRUE(refused(Packing::kTernary, 1, 1, byte(9), 2));
  EXPECT_FALSE(refused(Packing::kLevels, 5, 1, byte(5), 1));
  EXPECT_TRUE(refused(Packing::kLevels, 5, 1, byte(6), 1));
  EXPECT_TRUE(refused(Packing::kLevels, 5, 1, byte(16), 1));
  EXPECT_FALSE(refused(Packing::kDithered, 2, 1, byte(2), 1));
  EXPECT_TRUE(refused(Packing::kDithered, 2, 1, byte(3), 1));
  EXPECT_FALSE(refused(Packing::kSigns, 0, 1, byte(1), 1));
  EXPECT_TRUE(refused(Packing::kSigns, 0, 1, byte(2), 1));
  for (const Real unit :
       {Real(-1), Real(-0.0), std::numeric_limits<Real>::infinity(), std::numeric_limits<Real>::quiet_NaN()})
    EXPECT_TRUE(refused(Packing::kSigns, 0, unit, byte(1), 1)) << unit;
}

template <class Real>
std::uint64_t section_bytes(const Encoded& message) {
  std::uint64_t bytes = 0;
  for (const auto section : message.sections) bytes += section.size();
  return bytes;
}

template <class Real>
bool all_finite(const Payload<Real>& p) {
  bool finite = true;
  for (const Real v : p.values) finite &= std::isfinite(v);
  return finite && (p.next == nullptr || all_finite(*p.next));
}

template <class Real>
void expect_through_codec(const Compressor& c, const Input<Real>& input, bool exact_size) {
  CodecContext context{.seed = 5, .dim = static_cast<std::uint32_t>(input.x.size()), .clients = 3};
  context.zstd.kind = ZstdMode::Kind::kOff;
  context.compressor = c;
  Codec<Real> codec(context);
  UplinkSlot<Real> slot(context);
  Scratch<Real> scratch;
  PayloadBuffer<Real> buffer;
  for (std::uint32_t round = 0; round < 2; ++round) {
    Vec<Real> v = input.x;
    const Payload<Real>& p = compress(c, v, {5, 2, round, RngDomain::kCompressor + 1}, scratch, buffer);
    if (!all_finite(p)) return;
    Uplink<Real> sent;
    sent.round = round;
    sent.client = 2;
    sent.parts = {Payload<Real>{}, p};
    const Encoded& encoded = codec.encode(sent);
    ASSERT_EQ(codec.encoded_bytes(sent), encoded.bytes);
    const double bits = 8.0 * static_cast<double>(section_bytes<Real>(encoded));
    ASSERT_GE(bits, wire_bits(p));
    if (exact_size) {
      ASSERT_LE(bits, wire_bits(p) + (p.next != nullptr ? 32 : 16));
    }
    const auto got = receive(slot, context, 2, flatten(encoded));
    ASSERT_TRUE(got) << got.error().message;
    expect_same(*got, sent);
    ASSERT_EQ(wire_bits(got->parts[1]), wire_bits(p));
  }
}

TYPED_TEST(PackingOf, EveryCompressorPassesTheCodecBitForBitInTheBitsOfTheTable) {
  for (const std::size_t d : {1, 2, 7, 65, 1000}) {
    const std::size_t ordinary = ordinary_inputs<TypeParam>(d).size();
    const auto inputs = all_inputs<TypeParam>(d);
    for (const Compressor& c : variants(d)) {
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        SCOPED_TRACE(to_spec(c) + ", d = " + std::to_string(d) + ", " + inputs[i].name);
        expect_through_codec<TypeParam>(c, inputs[i], i < ordinary);
        if (this->HasFailure()) return;
      }
    }
  }
}

struct DownlinkCompression : ::testing::Test {
  CodecContext context{.seed = 5, .dim = 100, .clients = 3};
  Scratch<double> scratch;
  PayloadBuffer<double> buffer;
  const Payload<double>& drawn(const Compressor& c, const RngKey& key) {
    Vec<double> v(100, 0.3);
    return compress(c, v, key, scratch, buffer);
  }
  Result<Request<double>> through(const CodecContext& to, RequestSlot<double>& slot,
                                  const Payload<double>& p) {
    Codec<double> codec(context);
    const Downlink<double> body{9, 0, {p}};
    const auto encoded = codec.encode_body(body);
    EXPECT_EQ(codec.body_bytes(body), encoded->header.size() + 2 + encoded->payload_len);
    return receive(slot, to, flatten(codec.encode({RequestKind::kRound, 2, 1}, encoded.get(), nullptr)));
  }
};

TEST_F(DownlinkCompression, ClientsDrawSeededPartsOfABodyAgain) {
  for (const char* spec :
       {"randk:k=10", "randseqk:k=10", "natural(randk:k=10)", "induced(topk:k=3,randk:k=10)"}) {
    context.compressor_down = parse_compressor(spec, 100);
    RequestSlot<double> slot(context);
    const auto& p = drawn(*context.compressor_down, {5, kServerClient, 9, RngDomain::kCompressor});
    const auto got = through(context, slot, p);
    ASSERT_TRUE(got) << got.error().message;
    expect_same(got->body->parts[0], p);
  }
}

TEST_F(DownlinkCompression, SendsOtherKeysInFullAndRejectsUnknownSeededParts) {
  const Compressor c = parse_compressor("randk:k=10", 100);
  const RngKey key{5, kServerClient, 9, RngDomain::kCompressor};
  RequestSlot<double> plain_slot(context);
  // Without compressor_down, the receiver draws no support again.
  auto got = through(context, plain_slot, drawn(c, key));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->body->parts[0].key, nullptr);
  const CodecContext plain = context;
  context.compressor_down = c;
  RequestSlot<double> slot(context);
  for (const RngKey& other :
       {RngKey{6, kServerClient, 9, key.domain}, RngKey{5, 1, 9, key.domain},
        RngKey{5, kServerClient, 8, key.domain}, RngKey{5, kServerClient, 9, key.domain + 1}}) {
    got = through(context, slot, drawn(c, other));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->body->parts[0].key, nullptr);
    EXPECT_TRUE(same_bits(got->body->parts[0].indices, buffer.view().indices));
  }
  EXPECT_FALSE(through(plain, plain_slot, drawn(c, key)));
}

TEST(CodecDimensions, AllowPartsLongerThanModelsIfTheContextDoes) {
  CodecContext context{.seed = 5, .dim = 10, .clients = 3};
  const Vec<double> values(55, 0.5);
  Uplink<double> sent;
  sent.parts = {Payload<double>::dense(values)};
  const Bytes bytes = flatten(Codec<double>(context).encode(sent));
  UplinkSlot<double> strict(context);
  EXPECT_FALSE(receive(strict, context, 0, bytes));
  context.max_dim = 55;
  UplinkSlot<double> slot(context);
  const auto got = receive(slot, context, 0, bytes);
  ASSERT_TRUE(got) << got.error().message;
  expect_same(*got, sent);
  // Models still have length d.
  Codec<double> codec(context);
  RequestSlot<double> requests(context);
  for (const std::size_t d : {std::size_t{10}, std::size_t{55}}) {
    const auto body = codec.encode_body({1, 0, {Payload<double>::dense(View<double>(values).first(d))}});
    const Bytes frame = flatten(codec.encode({RequestKind::kEvaluate, 8, 7}, body.get(), nullptr));
    EXPECT_EQ(static_cast<bool>(receive(requests, context, frame)), d == 10);
  }
}

// ---- hostile headers of parts ----

struct HostileParts : ::testing::Test {
  CodecContext context{.seed = 5, .dim = 12, .clients = 3};
  Vec<double> values = std::vector<double>(12, 0.5);

  Payload<double> part(Packing packing, std::uint32_t levels) {
    auto p = Payload<double>::dense(values);
    p.packing = packing;
    p.levels = levels;
    p.unit = 0.5;
    return p;
  }
  Payload<double> low_rank() {
    Payload<double> p;
    p.shape = Shape::kLowRank;
    p.dim = 12;
    p.rows = 3;
    p.values = View<double>(values).first(7);
    return p;
  }
  Payload<double> symmetric() {
    Payload<double> p;
    p.shape = Shape::kSymmetric;
    p.dim = 10;
    p.values = View<double>(values).first(10);  // rank 2 of a 4 x 4 matrix
    return p;
  }
  // Returns whether the parts are refused after a change of the header. The checksums are correct.
  template <class Change>
  bool refused(Parts<double> parts, Change change) {
    Uplink<double> u;
    u.parts = parts;
    const Bytes good = flatten(Codec<double>(context).encode(u));
    UplinkSlot<double> slot(context);
    EXPECT_TRUE(receive(slot, context, 0, good));
    std::uint32_t length;
    std::memcpy(&length, &good[8], 4);
    wire::Reply reply;
    EXPECT_TRUE(reply.ParseFromString({reinterpret_cast<const char*>(&good[kPrefixBytes]), length}));
    change(reply);
    const std::string header = reply.SerializeAsString();
    const auto payload = std::span(good).subspan(kPrefixBytes + length);
    const auto prefix =
        write_prefix(FrameType::kReply, std::as_bytes(std::span(header)), payload.size(), crc32c(payload, 0));
    Bytes bad(prefix.begin(), prefix.end());
    const auto raw = std::as_bytes(std::span(header));
    bad.insert(bad.end(), raw.begin(), raw.end());
    bad.insert(bad.end(), payload.begin(), payload.end());
    return !receive(slot, context, 0, bad);
  }
};

TEST_F(HostileParts, UnitsLevelsAndRowsMustMatchThePacking) {
  const auto levels = [&](auto change) {
    return refused({part(Packing::kLevels, 5)}, [&](wire::Reply& r) { change(*r.mutable_parts(0)); });
  };
  EXPECT_FALSE(levels([](wire::Part&) {}));
  EXPECT_TRUE(levels([](wire::Part& p) { p.clear_levels(); }));
  EXPECT_TRUE(levels([](wire::Part& p) { p.set_levels(0); }));
  EXPECT_TRUE(levels([](wire::Part& p) { p.set_levels(65536); }));
  EXPECT_TRUE(levels([](wire::Part& p) { p.set_levels(0xFFFFFFFF); }));
  EXPECT_TRUE(levels([](wire::Part& p) { p.set_levels(100); }));  // wider fields than were sent
  EXPECT_TRUE(levels([](wire::Part& p) { p.set_unit(0.5); }));
  EXPECT_TRUE(levels([](wire::Part& p) { p.set_rows(3); }));
  EXPECT_TRUE(levels([](wire::Part& p) { p.set_packing(wire::PACKING_SIGNS); }));
  EXPECT_TRUE(
      refused({part(Packing::kDithered, 3)}, [](wire::Reply& r) { r.mutable_parts(0)->set_levels(101); }));
  const auto natural = [&](double unit) {
    return refused({part(Packing::kNatural, 0)}, [&](wire::Reply& r) { r.mutable_parts(0)->set_unit(unit); });
  };
  EXPECT_FALSE(natural(0.25));
  for (const double unit : {0.0, 1.0, -0.5, std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_TRUE(natural(unit)) << unit;
}

TEST_F(HostileParts, FactorsMustFitAMatrix) {
  const auto changed = [&](auto change) {
    return refused({low_rank()}, [&](wire::Reply& r) { change(*r.mutable_parts(0)); });
  };
  EXPECT_FALSE(changed([](wire::Part&) {}));
  EXPECT_FALSE(changed([](wire::Part& p) { p.set_rows(4); }));  // 4 x 3 also has 4 + 3 values
  for (const std::uint32_t rows : {0u, 1u, 2u, 5u, 6u, 12u, 13u, 0xFFFFFFFFu})
    EXPECT_TRUE(changed([&](wire::Part& p) { p.set_rows(rows); })) << rows;
  EXPECT_TRUE(changed([](wire::Part& p) { p.clear_rows(); }));
  EXPECT_TRUE(changed([](wire::Part& p) { p.set_count(28); }));  // rank 4 of a matrix with 3 rows
  EXPECT_TRUE(changed([](wire::Part& p) { p.set_dim(0); }));
  EXPECT_TRUE(changed([](wire::Part& p) { p.set_dim(0xFFFFFFFF); }));
  EXPECT_TRUE(changed([](wire::Part& p) { p.set_seeded(true); }));
  EXPECT_TRUE(changed([](wire::Part& p) { p.set_first(0); }));
}

TEST_F(HostileParts, EigenvectorsMustFitATriangle) {
  const auto changed = [&](auto change) {
    return refused({symmetric()}, [&](wire::Reply& r) { change(*r.mutable_parts(0)); });
  };
  EXPECT_FALSE(changed([](wire::Part&) {}));
  for (const std::uint32_t dim : {0u, 1u, 3u, 6u, 9u, 11u, 12u, 0xFFFFFFFEu, 0xFFFFFFFFu})
    EXPECT_TRUE(changed([&](wire::Part& p) { p.set_dim(dim); })) << dim;
  for (const std::uint32_t count : {0u, 5u, 9u, 11u, 20u, 25u, 0xFFFFFFFFu})
    EXPECT_TRUE(changed([&](wire::Part& p) { p.set_count(count); })) << count;
  EXPECT_TRUE(changed([](wire::Part& p) { p.clear_count(); }));
  EXPECT_TRUE(changed([](wire::Part& p) { p.set_rows(4); }));
  EXPECT_TRUE(changed([](wire::Part& p) { p.set_seeded(true); }));
  EXPECT_TRUE(changed([](wire::Part& p) { p.set_first(0); }));
  EXPECT_TRUE(changed([](wire::Part& p) { p.set_shape(wire::SHAPE_LOW_RANK); }));
}

TEST_F(HostileParts, SecondSummandsMustBePresentAndAtMostOne) {
  const auto plain = Payload<double>::dense(values);
  auto chain = plain;
  const auto other = low_rank();
  chain.next = &other;
  EXPECT_FALSE(refused({chain, plain}, [](wire::Reply&) {}));
  EXPECT_TRUE(refused({chain, plain}, [](wire::Reply& r) { r.mutable_parts(1)->set_continued(true); }));
  EXPECT_TRUE(refused({chain, plain}, [](wire::Reply& r) { r.mutable_parts(2)->set_continued(true); }));
  EXPECT_FALSE(refused({plain, plain}, [](wire::Reply& r) { r.mutable_parts(0)->set_continued(true); }));
  EXPECT_TRUE(refused({plain, Payload<double>{}},
                      [](wire::Reply& r) { r.mutable_parts(0)->set_continued(true); }));  // dim 12 and 0
  EXPECT_TRUE(refused({chain, chain, chain, chain}, [](wire::Reply& r) {
    r.mutable_parts(0)->set_continued(false), r.mutable_parts(2)->set_continued(false);
  }));
}

}  // namespace
}  // namespace gradwire
