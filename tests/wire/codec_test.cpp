#include "proto/wire/codec.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "base/byte_buffer.h"
#include "proto/wire/bits.h"
#include "tests/wire/codec_support.h"

namespace gradwire {
namespace {

// ---- bit packing, compared with a bit-by-bit version ----

Bytes naive_pack_indices(std::span<const std::uint32_t> indices, std::uint32_t dim) {
  std::uint32_t bits = 0;
  while ((std::uint64_t{1} << bits) < dim) ++bits;
  Bytes packed = naive_pack(indices, bits);
  std::vector<std::uint32_t> bitmap(dim, 0);
  for (const std::uint32_t i : indices) bitmap[i] = 1;
  Bytes map = naive_pack(bitmap, 1);
  return map.size() < packed.size() ? map : packed;
}

TEST(BitPacking, PacksIndicesLikeTheNaiveVersionAndUnpacksThem) {
  Material<double> m;
  for (const std::uint32_t d : {1u, 2u, 3u, 7u, 8u, 9u, 64u, 123u, 128u, 129u, 1000u, 65536u}) {
    for (const std::uint32_t k : {0u, 1u, 2u, 5u, d / 16, d / 3, d - 1, d}) {
      if (k > d) continue;
      m.indices.clear();
      const auto indices = m.subset(k, d);
      const Bytes expected = naive_pack_indices(indices, d);
      ASSERT_EQ(index_section_bytes(d, k), expected.size()) << k << " of " << d;
      Bytes packed(expected.size());
      pack_indices(indices, d, packed);
      ASSERT_EQ(packed, expected) << k << " of " << d;
      std::vector<std::uint32_t> back(k);
      ASSERT_TRUE(unpack_indices(packed, d, back)) << k << " of " << d;
      ASSERT_TRUE(same_bits<std::uint32_t>(back, indices)) << k << " of " << d;
    }
  }
}

TEST(BitPacking, HoldsTheLargestIndices) {
  const std::vector<std::uint32_t> indices = {0, 1, 0x7FFFFFFF, 0x80000000, kMaxDim - 1};
  Bytes packed(index_section_bytes(kMaxDim, indices.size()));
  EXPECT_EQ(packed.size(), 20u);
  pack_indices(indices, kMaxDim, packed);
  EXPECT_EQ(packed, naive_pack(indices, 32));
  std::vector<std::uint32_t> back(indices.size());
  ASSERT_TRUE(unpack_indices(packed, kMaxDim, back));
  EXPECT_EQ(back, indices);
  EXPECT_FALSE(unpack_indices(packed, kMaxDim - 1, back));
}

TEST(BitPacking, RejectsUnsortedRepeatedAndOutsideIndicesAndSetTails) {
  std::vector<std::uint32_t> out(2);
  const auto refused = [&](std::vector<std::uint32_t> fields, std::uint32_t dim) {
    return !unpack_indices(naive_pack(fields, index_bits(dim)), dim, out);
  };
  EXPECT_FALSE(refused({3, 99}, 100));
  EXPECT_TRUE(refused({99, 3}, 100));
  EXPECT_TRUE(refused({3, 3}, 100));
  EXPECT_TRUE(refused({3, 100}, 100));
  Bytes tail = naive_pack(std::vector<std::uint32_t>{3, 99}, 7);
  tail.back() |= std::byte{0x40};
  EXPECT_FALSE(unpack_indices(tail, 100, out));
  out.resize(60);  // a bitmap: 13 bytes instead of 53
  Bytes bitmap(13);
  for (std::size_t i = 0; i < 60; ++i) bitmap[i / 8] |= static_cast<std::byte>(1 << (i % 8));
  EXPECT_TRUE(unpack_indices(bitmap, 100, out));
  bitmap[12] |= std::byte{0x10};  // bit 100
  EXPECT_FALSE(unpack_indices(bitmap, 100, out));
  bitmap[12] = std::byte{0x08};  // 61 of 60 indices
  EXPECT_FALSE(unpack_indices(bitmap, 100, out));
  bitmap[12] = std::byte{0};
  bitmap[0] = std::byte{0};  // 52 of 60
  EXPECT_FALSE(unpack_indices(bitmap, 100, out));
}

template <class Real>
class CodecOf : public ::testing::Test {
 public:
  CodecContext context;
  Material<Real> m;

  CodecOf() {
    context.seed = 42;
    context.dim = 5000;
    context.clients = 20;
    context.compressor = parse_compressor("randk:k=7", context.dim);
  }

  Uplink<Real> uplink(Parts<Real> parts) {
    Uplink<Real> u;
    u.request_id = 0x1122334455667788;
    u.round = 17;
    u.client = 3;
    u.loss = 0.25;
    u.grad_calls = 1000;
    u.parts = parts;
    return u;
  }
  void expect_round_trip(Codec<Real>& codec, UplinkSlot<Real>& slot, const Uplink<Real>& sent) {
    const std::uint64_t predicted = codec.encoded_bytes(sent);
    const Encoded& encoded = codec.encode(sent);
    const Bytes bytes = flatten(encoded);
    EXPECT_EQ(encoded.bytes, bytes.size());
    EXPECT_EQ(predicted, bytes.size());
    const auto got = receive(slot, context, sent.client, bytes);
    ASSERT_TRUE(got) << got.error().message;
    expect_same(*got, sent);
    UplinkSlot<Real> keeper(context, true);
    ASSERT_TRUE(receive(keeper, context, sent.client, bytes));
    if (keeper.frame().empty())
      EXPECT_GT(bytes.size(), ByteBuffer::kKeptBytes) << "it is not kept";
    else
      EXPECT_TRUE(same_bits<std::byte>(flatten(keeper.frame()), bytes)) << "it is not kept as it came";
    keeper.release();
    EXPECT_TRUE(keeper.frame().empty());
  }
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CodecOf, Reals);

const ZstdMode kModes[] = {{ZstdMode::Kind::kOff}, {ZstdMode::Kind::kAuto}, {ZstdMode::Kind::kLevel, 5}};

TYPED_TEST(CodecOf, UplinksOfEveryKindComeBackBitForBit) {
  for (const ZstdMode& mode : kModes) {
    this->context.zstd = mode;
    Codec<TypeParam> codec(this->context);
    UplinkSlot<TypeParam> slot(this->context);
    for (const Shape shape : {Shape::kNothing, Shape::kDense, Shape::kSparse, Shape::kRange}) {
      for (const Values kind : {Values::kNoise, Values::kRepetitive, Values::kPowersOfTwo}) {
        for (const std::uint32_t d : {1u, 2u, 8u, 123u, 128u, 1024u, 5000u}) {
          for (const std::uint32_t k : {0u, 1u, d / 3, d - 1, d}) {
            this->m.indices.clear();
            this->m.values.clear();
            const auto sent = this->uplink({this->m.payload(shape, k, d, kind)});
            this->expect_round_trip(codec, slot, sent);
            if (this->HasFailure()) FAIL() << "shape " << int(shape) << ", k " << k << ", d " << d;
          }
        }
      }
    }
  }
}

TYPED_TEST(CodecOf, ManyPartsAndAnswersComeBackBitForBit) {
  Codec<TypeParam> codec(this->context);
  UplinkSlot<TypeParam> slot(this->context);
  auto& m = this->m;
  auto sent = this->uplink({m.payload(Shape::kDense, 0, 5000, Values::kRepetitive),
                            m.payload(Shape::kSparse, 300, 5000, Values::kPowersOfTwo),
                            m.payload(Shape::kRange, 40, 50, Values::kNoise),
                            m.payload(Shape::kDense, 0, 1, Values::kNoise)});
  this->expect_round_trip(codec, slot, sent);
  sent.correct = 30;
  sent.tested = 40;
  this->expect_round_trip(codec, slot, sent);
  for (const ReplyStatus status : {ReplyStatus::kNeedsState, ReplyStatus::kNeedsBroadcast}) {
    auto empty = this->uplink({});
    empty.status = status;
    this->expect_round_trip(codec, slot, empty);
  }
}

TYPED_TEST(CodecOf, DrawsSeededSupportsAgainInsteadOfSendingThem) {
  for (const char* spec : {"randk:k=7", "randseqk:k=7", "randk:k=5000", "randseqk:k=4999"}) {
    this->context.compressor = parse_compressor(spec, 5000);
    Codec<TypeParam> codec(this->context);
    UplinkSlot<TypeParam> slot(this->context);
    const Shape shape = std::string(spec).starts_with("randk") ? Shape::kSparse : Shape::kRange;
    const auto k =
        static_cast<std::uint32_t>(std::stoul(std::string(spec).substr(std::string(spec).find('=') + 1)));
    for (const Values kind : {Values::kNoise, Values::kPowersOfTwo}) {
      auto explicit_part = this->m.payload(shape, k, 5000, kind);
      const auto sent = this->uplink({this->m.seeded(explicit_part, this->context, 3, 17, 0),
                                      this->m.seeded(explicit_part, this->context, 3, 17, 1)});
      this->expect_round_trip(codec, slot, sent);
      const auto seeded = this->uplink({sent.parts[0]}), in_full = this->uplink({explicit_part});
      EXPECT_LT(codec.encoded_bytes(seeded), codec.encoded_bytes(in_full));
      if (shape == Shape::kSparse && k < 5000) {
        EXPECT_FALSE(same_bits(sent.parts[0].indices, sent.parts[1].indices));
      }
    }
  }
}

TYPED_TEST(CodecOf, SendsASupportFromAnotherKeyInFull) {
  Codec<TypeParam> codec(this->context);
  UplinkSlot<TypeParam> slot(this->context);
  const auto part = this->m.payload(Shape::kSparse, 7, 5000, Values::kNoise);
  // These keys have a round, client, part or seed that the receiver would not use.
  auto other = this->context;
  other.seed = 43;
  for (const auto& seeded :
       {this->m.seeded(part, this->context, 3, 16, 0), this->m.seeded(part, this->context, 4, 17, 0),
        this->m.seeded(part, this->context, 3, 17, 1), this->m.seeded(part, other, 3, 17, 0)}) {
    const auto sent = this->uplink({seeded});
    const Encoded& encoded = codec.encode(sent);
    EXPECT_EQ(codec.encoded_bytes(sent), encoded.bytes);
    const auto got = receive(slot, this->context, 3, flatten(encoded));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->parts[0].key, nullptr);
    EXPECT_TRUE(same_bits(got->parts[0].indices, seeded.indices));
    EXPECT_TRUE(same_bits(got->parts[0].values, seeded.values));
  }
}

TYPED_TEST(CodecOf, SendsNonNaturalValuesPlainlyUnderTheSameName) {
  using Real = TypeParam;
  Codec<Real> codec(this->context);
  UplinkSlot<Real> slot(this->context);
  for (const Real odd :
       {Real{0.75}, std::numeric_limits<Real>::denorm_min(), std::numeric_limits<Real>::min() / 2}) {
    Vec<Real> values = {Real{1}, Real{-0.0}, odd, Real{0.5}};
    auto part = Payload<Real>::dense(values);
    part.packing = Packing::kNatural;
    this->expect_round_trip(codec, slot, this->uplink({part}));
  }
}

TYPED_TEST(CodecOf, SendsDenseValuesFromTheCallersVector) {
  Codec<TypeParam> codec(this->context);
  const auto values = this->m.vector(100, Values::kNoise);
  const auto up = this->uplink({Payload<TypeParam>::dense(values)});
  const Encoded& encoded = codec.encode(up);
  ASSERT_EQ(encoded.sections.size(), 1u);
  EXPECT_EQ(static_cast<const void*>(encoded.sections[0].data()), static_cast<const void*>(values.data()));
}

TYPED_TEST(CodecOf, UsesZstdIfItGains) {
  const auto size = [&](ZstdMode mode, Values kind, std::uint32_t d) {
    this->context.dim = d;
    this->context.zstd = mode;
    Codec<TypeParam> codec(this->context);
    UplinkSlot<TypeParam> slot(this->context);
    const auto sent = this->uplink({this->m.payload(Shape::kDense, 0, d, kind)});
    this->expect_round_trip(codec, slot, sent);
    return codec.encoded_bytes(sent);
  };
  const std::uint64_t raw = 100000 * sizeof(TypeParam), header = 100;
  EXPECT_LT(size({}, Values::kRepetitive, 100000), raw / 4);
  EXPECT_GE(size({}, Values::kNoise, 100000), raw * 3 / 4);
  EXPECT_GE(size({ZstdMode::Kind::kOff}, Values::kRepetitive, 100000), raw);
  EXPECT_LT(size({ZstdMode::Kind::kLevel, 19}, Values::kRepetitive, 10000), raw / 40);
  EXPECT_LE(size({ZstdMode::Kind::kLevel, 1}, Values::kNoise, 100000), raw + header);
  // Below kZstdMinBytes the codec does not try zstd.
  const std::uint32_t small = 1016 / sizeof(TypeParam);
  EXPECT_GE(size({ZstdMode::Kind::kLevel, 19}, Values::kRepetitive, small), 1016u);
}

// Counts the bytes of a message that are neither payload nor the value of a header field.
TYPED_TEST(CodecOf, FramingTakesAtMost64BytesOfAMessage) {
  constexpr std::uint64_t kMost = 64;
  Codec<TypeParam> codec(this->context);
  const auto part = this->m.payload(Shape::kDense, 0, 200, Values::kNoise);
  const std::uint64_t payload = 200 * sizeof(TypeParam);
  const auto reply = this->uplink({part});
  EXPECT_EQ(codec.encode(reply).bytes, payload + 82);
  const std::uint64_t of_part = 1 + 1 + 4;  // shape, packing, dim
  const std::uint64_t of_reply =
      8 + 4 + 4 + 1 + 8 + 8;  // request id, round, client, answer, loss, grad_calls
  EXPECT_LE(codec.encode(reply).bytes - payload - of_part - of_reply, kMost);
  const auto body = codec.encode_body({9, 1, {part}});
  const std::uint64_t of_round = 1 + 8 + 8 + 4 + 4;  // request, request id, committed, round, flags
  const Encoded request = codec.encode({.request_id = 1, .committed = 2}, body.get(), nullptr);
  EXPECT_EQ(request.bytes, payload + 75);
  EXPECT_LE(request.bytes - payload - of_part - of_round, kMost);
}

// A server would otherwise hold such a reply twice.
TYPED_TEST(CodecOf, DropsTheFrameOfALongVectorThatHardlyCompressed) {
  constexpr std::uint32_t kDim = 400'000;
  const auto is_kept = [&](ZstdMode::Kind mode, Values kind) {
    this->context.dim = kDim;
    this->context.zstd = {mode, 1};
    Codec<TypeParam> codec(this->context);
    const auto sent = this->uplink({this->m.payload(Shape::kDense, 0, kDim, kind)});
    UplinkSlot<TypeParam> slot(this->context, true);
    const auto got = receive(slot, this->context, sent.client, flatten(codec.encode(sent)));
    EXPECT_TRUE(got);
    if (got) expect_same(*got, sent);
    return !slot.frame().empty();
  };
  EXPECT_TRUE(is_kept(ZstdMode::Kind::kOff, Values::kNoise));
  EXPECT_TRUE(is_kept(ZstdMode::Kind::kAuto, Values::kRepetitive));
  EXPECT_FALSE(is_kept(ZstdMode::Kind::kLevel, Values::kNoise));
}

TYPED_TEST(CodecOf, RequestsComeBackBitForBit) {
  using Real = TypeParam;
  for (const ZstdMode& mode : kModes) {
    this->context.zstd = mode;
    this->m = {};
    auto& m = this->m;
    Codec<Real> codec(this->context);
    RequestSlot<Real> slot(this->context);
    auto dense = m.payload(Shape::kDense, 0, 5000, Values::kRepetitive);
    const auto sparse = m.payload(Shape::kSparse, 700, 5000, Values::kNoise);
    const auto natural = m.payload(Shape::kDense, 0, 5000, Values::kPowersOfTwo);
    const Downlink<Real> x{9, 1, {dense}}, many{10, 0xFFFFFFFF, {dense, sparse, natural, sparse}},
        none{11, 0, {}};
    for (const Downlink<Real>* body : {&x, &many, &none}) {
      for (const Downlink<Real>* resync : {static_cast<const Downlink<Real>*>(nullptr), &x, &many, &none}) {
        const auto b = codec.encode_body(*body);
        const auto r = resync != nullptr ? codec.encode_body(*resync) : nullptr;
        const Request<Real> sent{RequestKind::kRound, 5, 4, body, resync};
        const Encoded encoded = codec.encode(sent, b.get(), r.get());
        const Bytes bytes = flatten(encoded);
        EXPECT_EQ(encoded.bytes, bytes.size());
        EXPECT_EQ(codec.request_bytes(codec.body_bytes(*body), resync ? codec.body_bytes(*resync) : 0),
                  bytes.size());
        const auto got = receive(slot, this->context, bytes);
        ASSERT_TRUE(got) << got.error().message;
        EXPECT_EQ(got->kind, RequestKind::kRound);
        EXPECT_EQ(got->request_id, 5u);
        EXPECT_EQ(got->committed, 4u);
        ASSERT_NE(got->body, nullptr);
        expect_same(*got->body, *body);
        ASSERT_EQ(got->resync != nullptr, resync != nullptr);
        if (resync != nullptr) expect_same(*got->resync, *resync);
      }
    }
  }
}

TYPED_TEST(CodecOf, ShutdownHasNoBodyAndAnEvaluationOneDenseVector) {
  using Real = TypeParam;
  Codec<Real> codec(this->context);
  RequestSlot<Real> slot(this->context);
  const Request<Real> shutdown{RequestKind::kShutdown, 7, 6};
  const Bytes bytes = flatten(codec.encode(shutdown, nullptr, nullptr));
  EXPECT_EQ(bytes.size(), codec.request_bytes(0, 0));
  const auto got = receive(slot, this->context, bytes);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->kind, RequestKind::kShutdown);
  EXPECT_EQ(got->body, nullptr);

  const auto ask = [&](RequestKind kind, Parts<Real> parts) {
    const auto body = codec.encode_body({1, 0, parts});
    return receive(slot, this->context, flatten(codec.encode({kind, 8, 7}, body.get(), nullptr)));
  };
  const auto x = this->m.payload(Shape::kDense, 0, 5000, Values::kNoise);
  EXPECT_TRUE(ask(RequestKind::kEvaluate, {x}));
  EXPECT_FALSE(ask(RequestKind::kEvaluate, {x, x}));
  EXPECT_FALSE(ask(RequestKind::kEvaluate, {this->m.payload(Shape::kDense, 0, 4999, Values::kNoise)}));
  EXPECT_FALSE(ask(RequestKind::kEvaluate, {this->m.payload(Shape::kRange, 5000, 5000, Values::kNoise)}));
  EXPECT_TRUE(ask(RequestKind::kMeasure, {x}));
  EXPECT_FALSE(ask(RequestKind::kMeasure, {}));
  EXPECT_FALSE(ask(RequestKind::kMeasure, {this->m.payload(Shape::kDense, 0, 4999, Values::kNoise)}));
  EXPECT_FALSE(ask(RequestKind::kShutdown, {x}));
  EXPECT_FALSE(
      receive(slot, this->context, flatten(codec.encode({RequestKind::kRound, 8, 7}, nullptr, nullptr))));
}

TYPED_TEST(CodecOf, LargeAndSmallMessagesShareASlot) {
  this->context.dim = 1 << 20;
  Codec<TypeParam> codec(this->context);
  UplinkSlot<TypeParam> slot(this->context);
  const auto large = this->uplink({this->m.payload(Shape::kDense, 0, 1 << 20, Values::kRepetitive)});
  const auto small = this->uplink({this->m.payload(Shape::kSparse, 1, 1 << 20, Values::kNoise)});
  for (int i = 0; i < 2; ++i) {
    this->expect_round_trip(codec, slot, large);
    this->expect_round_trip(codec, slot, small);
  }
}

TEST(Codec, WritesASmallUplinkInTheseBytes) {
  CodecContext context;
  context.dim = 123;
  Codec<double> codec(context);
  const std::vector<std::uint32_t> indices = {100};
  const std::vector<double> values = {-1.5};
  Payload<double> top1;
  top1.shape = Shape::kSparse;
  top1.dim = 123;
  top1.indices = indices;
  top1.values = values;
  const Uplink<double> u{
      {.request_id = 0x0807060504030201, .round = 17, .client = 3, .loss = 0.5, .grad_calls = 1628}, {top1}};
  std::string hex;
  for (const std::byte b : flatten(codec.encode(u))) {
    const char* digits = "0123456789abcdef";
    hex += {digits[static_cast<int>(b) >> 4], digits[static_cast<int>(b) & 15]};
  }
  EXPECT_EQ(hex,
            "475752310206000037000000"          // prefix: a header of 55 bytes,
            "c43001e5"                          // its checksum,
            "09000000000000008817776b00000000"  // 9 bytes of payload and their checksum
            "090102030405060708"                // request id
            "1511000000"                        // round
            "1d03000000"                        // client
            "2000"                              // answer
            "29000000000000e03f"                // loss
            "315c06000000000000"                // grad_calls
            "4a0e"                              // one part of 14 bytes:
            "08021000257b0000002d01000000"      // sparse, plain, dim 123, count 1
            "64"                                // payload: index 100 in 7 bits
            "000000000000f8bf");                // -1.5
}

TEST(Codec, ReadsTheZstdOption) {
  EXPECT_EQ(parse_zstd_mode("auto")->kind, ZstdMode::Kind::kAuto);
  EXPECT_EQ(parse_zstd_mode("off")->kind, ZstdMode::Kind::kOff);
  EXPECT_EQ(parse_zstd_mode("19")->level, 19);
  for (const char* bad : {"", "on", "0", "20", "-1", "3x", "99999999999999999999"}) {
    ASSERT_FALSE(parse_zstd_mode(bad)) << bad;
    EXPECT_NE(parse_zstd_mode(bad).error().message.find(std::string("'") + bad + "'"), std::string::npos);
  }
}

TEST(Codec, RefusesToSendAPayloadThatContradictsItself) {
  CodecContext context;
  context.dim = 10;
  Codec<double> codec(context);
  const std::vector<double> values = {1, 2};
  auto wrong = Payload<double>::dense(values);
  wrong.dim = 3;
  Uplink<double> u;
  u.parts = {wrong};
  EXPECT_THROW(codec.encode(u), std::logic_error);
  EXPECT_THROW(codec.encoded_bytes(u), std::logic_error);
}

}  // namespace
}  // namespace gradwire
