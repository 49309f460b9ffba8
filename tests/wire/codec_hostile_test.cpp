// Tests of bytes that a correct peer never sends: they cause an error, but no crash, and no allocation beyond
// the limits.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <zstd.h>

#include "base/byte_buffer.h"
#include "base/crc32c.h"
#include "proto/wire/codec.h"
#include "proto/wire/wire.pb.h"
#include "tests/support/count_allocations.h"
#include "tests/wire/codec_support.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kDim = 2000;
constexpr ClientId kClient = 3;

// Returns a frame with correct checksums around any content.
Bytes frame(FrameType type, const std::string& header, std::span<const std::byte> payload) {
  const auto h = std::as_bytes(std::span(header));
  const auto prefix = write_prefix(type, h, payload.size(), crc32c(payload));
  Bytes out(prefix.begin(), prefix.end());
  out.insert(out.end(), h.begin(), h.end());
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

std::string header_of(const Bytes& frame) {
  std::uint32_t length;
  std::memcpy(&length, &frame[8], 4);
  return {reinterpret_cast<const char*>(&frame[kPrefixBytes]), length};
}
Bytes payload_of(const Bytes& frame) {
  return {frame.begin() + static_cast<std::ptrdiff_t>(kPrefixBytes + header_of(frame).size()), frame.end()};
}

class HostileBytes : public ::testing::Test {
 public:
  CodecContext context;
  Material<double> m;
  std::unique_ptr<Codec<double>> codec;
  std::unique_ptr<UplinkSlot<double>> slot;
  std::unique_ptr<RequestSlot<double>> request_slot;

  HostileBytes() {
    context.seed = 42;
    context.dim = kDim;
    context.clients = 20;
    context.compressor = parse_compressor("randk:k=7", kDim);
    codec = std::make_unique<Codec<double>>(context);
    slot = std::make_unique<UplinkSlot<double>>(context);
    request_slot = std::make_unique<RequestSlot<double>>(context);
  }

  Bytes encode(Parts<double> parts, double loss = 0.5) {
    const Uplink<double> u{{.request_id = 99, .round = 17, .client = kClient, .loss = loss, .grad_calls = 5},
                           parts};
    return flatten(codec->encode(u));
  }
  Bytes encode_request(Parts<double> body) {
    const Downlink<double> b{4, 0, body}, r{3, 0, {m.payload(Shape::kRange, 5, 9, Values::kNoise)}};
    const auto encoded = codec->encode_body(b), resync = codec->encode_body(r);
    return flatten(codec->encode({RequestKind::kRound, 8, 7}, encoded.get(), resync.get()));
  }
  // Returns the error, or nothing. For any bytes, no single allocation may be larger than a vector of length
  // d plus 4 KB.
  std::string error_of(std::span<const std::byte> in) {
    allocations::reset();
    const auto got = receive(*slot, context, kClient, in);
    EXPECT_LE(allocations::largest, kDim * sizeof(double) + 4096);
    return got ? "" : got.error().message;
  }
  std::string request_error_of(std::span<const std::byte> in) {
    allocations::reset();
    const auto got = receive(*request_slot, context, in);
    EXPECT_LE(allocations::largest, kDim * sizeof(double) + 4096);
    return got ? "" : got.error().message;
  }
  // Returns one frame of each kind.
  std::vector<Bytes> uplinks() {
    std::vector<Bytes> out;
    for (const Shape shape : {Shape::kDense, Shape::kSparse, Shape::kRange}) {
      for (const Values kind : {Values::kNoise, Values::kPowersOfTwo}) {
        out.push_back(encode({m.payload(shape, 3, 11, kind)}));
        out.push_back(encode({m.payload(shape, 9, 11, kind), m.payload(shape, 2, 40, kind)}));
      }
    }
    out.push_back(
        encode({m.seeded(m.payload(Shape::kSparse, 7, kDim, Values::kNoise), context, kClient, 17, 0)}));
    out.push_back(encode({m.payload(Shape::kDense, 0, kDim, Values::kRepetitive)}));  // zstd
    out.push_back(encode({}));
    return out;
  }
};

// Changes the header of a good frame and corrects the checksums.
template <class Message, class Change>
Bytes with_header(const Bytes& good, Change change) {
  Message header;
  EXPECT_TRUE(header.ParseFromString(header_of(good)));
  change(header);
  return frame(static_cast<FrameType>(good[5]), header.SerializeAsString(), payload_of(good));
}

TEST_F(HostileBytes, RejectsAnUnknownRequest) {
  const Bytes good = encode_request({m.payload(Shape::kDense, 0, kDim, Values::kNoise)});
  ASSERT_EQ(request_error_of(good), "");
  std::string header = header_of(good);
  ASSERT_EQ(header.substr(0, 2), std::string("\x08\x00", 2)) << "the first field is the request";
  for (const char unknown : {'\x04', '\x7f'}) {
    header[1] = unknown;
    EXPECT_NE(request_error_of(frame(FrameType::kRound, header, payload_of(good))), "");
  }
}

TEST_F(HostileBytes, RejectsEveryFlippedBit) {
  for (const Bytes& good : uplinks()) {
    ASSERT_EQ(error_of(good), "");
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
      Bytes bad = good;
      bad[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
      ASSERT_NE(error_of(bad), "") << "bit " << bit;
    }
  }
  const Bytes good = encode_request({m.payload(Shape::kSparse, 3, 11, Values::kPowersOfTwo)});
  ASSERT_EQ(request_error_of(good), "");
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    ASSERT_NE(request_error_of(bad), "") << "bit " << bit;
  }
}

TEST_F(HostileBytes, RejectsEveryTruncation) {
  for (const Bytes& good : uplinks()) {
    for (std::size_t n = 0; n < good.size(); ++n) ASSERT_NE(error_of(std::span(good).first(n)), "") << n;
    // The same truncations, with consistent lengths and checksums.
    const std::string header = header_of(good);
    const Bytes payload = payload_of(good);
    for (std::size_t n = 0; n < payload.size(); ++n) {
      ASSERT_NE(error_of(frame(FrameType::kReply, header, std::span(payload).first(n))), "") << n;
    }
    for (std::size_t n = 0; n < header.size(); ++n) {
      ASSERT_NE(error_of(frame(FrameType::kReply, header.substr(0, n), payload)), "") << n;
    }
    Bytes longer = payload;
    longer.push_back(std::byte{0});
    ASSERT_NE(error_of(frame(FrameType::kReply, header, longer)), "");
  }
}

TEST_F(HostileBytes, ToleratesRepeatedFramesAndCallsOutOfOrder) {
  const Bytes good = encode({m.payload(Shape::kSparse, 3, 11, Values::kNoise)});
  UplinkSlot<double> fresh(context);
  EXPECT_FALSE(fresh.finish(kClient));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(error_of(good), "");
  EXPECT_FALSE(slot->finish(kClient));  // already handed out
  // A message that was announced twice counts once.
  Bytes bad = good;
  bad.back() ^= std::byte{1};
  EXPECT_NE(error_of(bad), "");
  EXPECT_FALSE(slot->finish(kClient));
  EXPECT_EQ(error_of(good), "");
  // The wrong kind of message for the slot, and the answer of another client.
  EXPECT_NE(request_error_of(good), "");
  EXPECT_NE(error_of(encode_request({})), "");
  EXPECT_EQ(receive(*slot, context, 4, good).error().message, "client 4 answered in the name of client 3");
}

TEST_F(HostileBytes, RejectsMissingFields) {
  using wire::Reply;
  const Bytes good = encode({m.payload(Shape::kSparse, 3, 11, Values::kNoise)});
  const auto bad = [&](auto change) { return error_of(with_header<Reply>(good, change)); };
  EXPECT_EQ(bad([](Reply&) {}), "");
  EXPECT_NE(bad([](Reply& h) { h.clear_request_id(); }), "");
  EXPECT_NE(bad([](Reply& h) { h.clear_round(); }), "");
  EXPECT_NE(bad([](Reply& h) { h.clear_client(); }), "");
  EXPECT_NE(bad([](Reply& h) { h.clear_answer(); }), "");
  EXPECT_NE(bad([](Reply& h) { h.clear_loss(); }), "");
  EXPECT_NE(bad([](Reply& h) { h.clear_grad_calls(); }), "");
  EXPECT_NE(bad([](Reply& h) { h.set_correct(1); }), "");
  EXPECT_NE(bad([](Reply& h) { h.set_correct(2), h.set_tested(1); }), "");
  EXPECT_NE(bad([](Reply& h) { h.mutable_parts(0)->clear_shape(); }), "");
  EXPECT_NE(bad([](Reply& h) { h.mutable_parts(0)->clear_packing(); }), "");
  EXPECT_NE(bad([](Reply& h) { h.mutable_parts(0)->clear_dim(); }), "");
  EXPECT_NE(bad([](Reply& h) { h.mutable_parts(0)->clear_count(); }), "");

  using wire::Round;
  const Bytes round = encode_request({m.payload(Shape::kSparse, 3, 11, Values::kNoise)});
  const auto bad_round = [&](auto change) { return request_error_of(with_header<Round>(round, change)); };
  EXPECT_EQ(bad_round([](Round&) {}), "");
  EXPECT_NE(bad_round([](Round& h) { h.clear_request(); }), "");
  EXPECT_NE(bad_round([](Round& h) { h.clear_request_id(); }), "");
  EXPECT_NE(bad_round([](Round& h) { h.clear_committed(); }), "");
  EXPECT_NE(bad_round([](Round& h) { h.clear_body(); }), "");
  EXPECT_NE(bad_round([](Round& h) { h.clear_resync(); }), "");
  EXPECT_NE(bad_round([](Round& h) { h.mutable_body()->clear_round(); }), "");
  EXPECT_NE(bad_round([](Round& h) { h.mutable_body()->clear_flags(); }), "");
  EXPECT_NE(bad_round([](Round& h) { h.mutable_resync()->clear_flags(); }), "");
  EXPECT_NE(bad_round([](Round& h) { h.set_request(wire::REQUEST_GOODBYE); }), "");
  EXPECT_NE(bad_round([](Round& h) { h.mutable_body()->mutable_parts(0)->set_seeded(true); }), "");
}

TEST_F(HostileBytes, RejectsUnknownEnumValues) {
  const Bytes good = encode({m.payload(Shape::kDense, 0, 2, Values::kNoise)});
  std::string header = header_of(good);
  const std::size_t part = header.size() - 9;  // shape, packing, dim
  ASSERT_EQ(header[part], 0x08);
  const auto with = [&](std::size_t at, char value) {
    std::string h = header;
    h[at] = value;
    return error_of(frame(FrameType::kReply, h, payload_of(good)));
  };
  EXPECT_EQ(with(part + 1, 1), "");
  EXPECT_NE(with(part + 1, 4), "");
  EXPECT_NE(with(part + 1, 0x7F), "");
  EXPECT_NE(with(part + 3, 3), "");
  EXPECT_NE(with(header.find(' ', 19) + 1, 4), "");  // answer: tag 0x20 after request id, round and client
}

TEST_F(HostileBytes, RejectsWrongCountsAndDimensions) {
  using wire::Part;
  using wire::Reply;
  const auto bad = [&](const Bytes& good, auto change) {
    return error_of(with_header<Reply>(good, [&](Reply& h) { change(*h.mutable_parts(0)); }));
  };
  const Bytes sparse = encode({m.payload(Shape::kSparse, 3, 11, Values::kNoise)});
  const Bytes range = encode({m.payload(Shape::kRange, 3, 11, Values::kNoise)});
  const Bytes dense = encode({m.payload(Shape::kDense, 0, 11, Values::kNoise)});
  for (const std::uint32_t n : {0u, 2u, 4u, 12u, kDim + 1, 0x80000000u, 0xFFFFFFFFu}) {
    EXPECT_NE(bad(sparse, [&](Part& p) { p.set_count(n); }), "") << n;
    EXPECT_NE(bad(range, [&](Part& p) { p.set_count(n); }), "") << n;
    EXPECT_NE(bad(dense, [&](Part& p) { p.set_dim(n); }), "") << n;
    EXPECT_NE(bad(dense, [&](Part& p) { p.set_count(n); }), "") << n;
  }
  for (const std::uint32_t d : {0u, 2u, kDim + 1, 0xFFFFFFFFu}) {
    EXPECT_NE(bad(sparse, [&](Part& p) { p.set_dim(d); }), "") << d;
    EXPECT_NE(bad(range, [&](Part& p) { p.set_dim(d); }), "") << d;
  }
  EXPECT_NE(bad(range, [&](Part& p) { p.set_first(11); }), "");
  EXPECT_NE(bad(range, [&](Part& p) { p.clear_first(); }), "");
  EXPECT_NE(bad(sparse, [&](Part& p) { p.set_first(1); }), "");
  EXPECT_NE(bad(sparse, [&](Part& p) { p.set_seeded(true); }), "");
  EXPECT_NE(bad(dense, [&](Part& p) { p.set_seeded(true); }), "");
  EXPECT_NE(bad(dense, [&](Part& p) { p.set_value_zstd_bytes(80); }), "");
  EXPECT_NE(bad(sparse, [&](Part& p) { p.set_index_zstd_bytes(1); }), "");
  const auto five = with_header<Reply>(encode({}), [](Reply& h) {
    for (int k = 0; k < 5; ++k) {
      Part* p = h.add_parts();
      p->set_shape(wire::SHAPE_NOTHING), p->set_packing(wire::PACKING_PLAIN), p->set_dim(1);
    }
  });
  EXPECT_EQ(error_of(five), "a message has too many parts");
}

TEST_F(HostileBytes, RejectsSeededPartsThatTheCompressorDoesNotMake) {
  using wire::Reply;
  const Bytes good = encode({m.payload(Shape::kRange, 7, kDim, Values::kNoise)});
  const auto seeded_range = with_header<Reply>(good, [](Reply& h) {
    h.mutable_parts(0)->set_seeded(true);
    h.mutable_parts(0)->clear_first();
  });
  EXPECT_NE(error_of(seeded_range).find("does not make such a seeded support"), std::string::npos);
}

TEST_F(HostileBytes, RejectsBadIndexSections) {
  const Bytes good = encode({m.payload(Shape::kSparse, 3, 100, Values::kNoise)});
  Bytes payload = payload_of(good);
  const auto refused = [&](std::vector<std::uint32_t> fields) {
    std::uint32_t packed = 0;
    for (std::size_t i = 0; i < 3; ++i) packed |= fields[i] << (7 * i);
    std::memcpy(payload.data(), &packed, 3);
    return error_of(frame(FrameType::kReply, header_of(good), payload));
  };
  EXPECT_EQ(refused({0, 50, 99}), "");
  EXPECT_EQ(refused({0, 50, 50}), "part 0: the indices are not strictly ascending");
  EXPECT_EQ(refused({0, 50, 49}), "part 0: the indices are not strictly ascending");
  EXPECT_EQ(refused({0, 50, 100}), "part 0: an index is not below the dimension");
  EXPECT_EQ(refused({0, 50, 99 + 128}), "part 0: unused bits after the indices are set");
}

TEST_F(HostileBytes, RejectsNonFiniteValuesByName) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {inf, -inf, nan, -nan}) {
    Vec<double> values(100, 1.0), more(1900, 2.0);
    values[5] = bad;
    EXPECT_EQ(error_of(encode({Payload<double>::dense(values)})),
              "client 3, round 17: value 5 of part 0 is not finite");
    values[5] = 0;
    more[1800] = bad;
    EXPECT_EQ(error_of(encode({Payload<double>::dense(values), Payload<double>::dense(more)})),
              "client 3, round 17: value 1800 of part 1 is not finite");
    EXPECT_EQ(error_of(encode({}, bad)), "client 3, round 17: the loss is not finite");
  }
  Vec<double> extreme = {std::numeric_limits<double>::max(), -std::numeric_limits<double>::denorm_min()};
  EXPECT_EQ(error_of(encode({Payload<double>::dense(extreme)})), "");
  // The codec does not check the server's model. The client does.
  Vec<double> diverged = {nan};
  EXPECT_EQ(request_error_of(encode_request({Payload<double>::dense(diverged)})), "");
}

TEST_F(HostileBytes, DecompressesOnlyExactlyOneValidZstdFrame) {
  const std::size_t raw = kDim * sizeof(double);
  const auto compressed = [](const std::string& content, bool with_size = true) {
    std::string out(ZSTD_compressBound(content.size()), '\0');
    ZSTD_CCtx* context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, with_size ? 1 : 0);
    out.resize(ZSTD_compress2(context, out.data(), out.size(), content.data(), content.size()));
    ZSTD_freeCCtx(context);
    return out;
  };
  const auto send = [&](const std::string& section) {
    wire::Reply header;
    EXPECT_TRUE(
        header.ParseFromString(header_of(encode({m.payload(Shape::kDense, 0, kDim, Values::kNoise)}))));
    header.mutable_parts(0)->set_value_zstd_bytes(section.size());
    return error_of(frame(FrameType::kReply, header.SerializeAsString(), std::as_bytes(std::span(section))));
  };
  const std::string good = compressed(std::string(raw, '\0'));
  EXPECT_EQ(send(good), "");
  EXPECT_NE(send(compressed(std::string(raw, '\0'), false)), "");  // no size
  EXPECT_NE(send(compressed(std::string(raw - 8, '\0'))), "");     // too short
  EXPECT_NE(send(compressed(std::string(raw + 8, '\0'))), "");     // too long
  EXPECT_NE(send(compressed(std::string(256 << 20, '\0'))), "");   // a bomb
  EXPECT_NE(send(good + '\0'), "");                                // trailing byte
  EXPECT_NE(send(good + compressed("")), "");                      // a second frame
  const std::string skippable = {'\x50', '\x2A', '\x4D', '\x18', 1, 0, 0, 0, 'x'};
  EXPECT_NE(send(skippable + good), "");
  EXPECT_NE(send(good + skippable), "");
  for (std::size_t n = 1; n < good.size(); ++n) EXPECT_NE(send(good.substr(0, n)), "") << n;
  // A bomb that claims the right size in its header, but has the blocks of a larger frame.
  std::string liar = compressed(std::string(raw + 200000, '\0'));
  const std::string valid = compressed(std::string(raw, '\0'));
  const unsigned descriptor = static_cast<unsigned char>(liar[4]),
                 shorter = static_cast<unsigned char>(valid[4]);
  ASSERT_EQ(descriptor >> 6, 2u);  // the size in 4 bytes
  ASSERT_EQ(shorter >> 6, 1u);     // in 2 bytes
  const std::size_t at = 5 + ((descriptor >> 5 & 1) != 0 ? 0 : 1);
  const auto claimed = static_cast<std::uint32_t>(raw);
  std::memcpy(&liar[at], &claimed, 4);
  ASSERT_EQ(ZSTD_getFrameContentSize(liar.data(), liar.size()), raw);
  EXPECT_EQ(send(liar), "part 0: a compressed section is damaged");
}

TEST_F(HostileBytes, SurvivesDamagedZstdFramesUnderACorrectChecksum) {
  const Bytes good = encode({m.payload(Shape::kDense, 0, kDim, Values::kRepetitive)});
  const std::string header = header_of(good);
  const Bytes payload = payload_of(good);
  ASSERT_LT(payload.size(), kDim * sizeof(double));
  std::mt19937 random(5);
  for (int i = 0; i < 5000; ++i) {
    Bytes bad = payload;
    for (int flips = 1 + i % 3; flips > 0; --flips)
      bad[random() % bad.size()] ^= static_cast<std::byte>(1 + random() % 255);
    error_of(frame(FrameType::kReply, header, bad));  // at worst it decodes to other values
  }
  EXPECT_EQ(error_of(good), "");
}

// Tests the header itself: more parts than any message has, unknown fields, deep nesting.
TEST_F(HostileBytes, LimitsTheObjectsThatHeadersCanMake) {
  std::string many;
  while (many.size() < kMaxHeaderBytes - 2) many += std::string("\x4a\x00", 2);  // an empty part
  EXPECT_EQ(error_of(frame(FrameType::kReply, many, {})), "the header is too long for a round message");
  EXPECT_LE(allocations::count, 32u);
  // A part that claims 32 MB, with an unknown field that claims as much.
  const std::string claims = "\x4a\xff\xff\xff\x0f\x7a\xf0\xff\xff\x0f";
  EXPECT_NE(error_of(frame(FrameType::kReply, claims, {})), "");
  const std::string deep(1000, '\x0b');  // nested groups
  EXPECT_NE(error_of(frame(FrameType::kReply, deep, {})), "");
  EXPECT_NE(request_error_of(frame(FrameType::kRound, deep, {})), "");
}

TEST_F(HostileBytes, SurvivesRandomBytes) {
  std::mt19937 random(11);
  const auto noise = [&](std::size_t n) {
    std::string s(n, '\0');
    for (char& c : s) c = static_cast<char>(random());
    return s;
  };
  for (int i = 0; i < 60000; ++i) {
    const std::string all = noise(random() % 100), header = noise(random() % 60),
                      payload = noise(random() % 60);
    EXPECT_NE(error_of(std::as_bytes(std::span(all))), "");
    error_of(frame(FrameType::kReply, header, std::as_bytes(std::span(payload))));
    request_error_of(frame(FrameType::kRound, header, std::as_bytes(std::span(payload))));
  }
}

TEST_F(HostileBytes, SurvivesMutatedHeadersAndPayloadsUnderCorrectChecksums) {
  std::mt19937 random(12);
  std::vector<Bytes> frames = uplinks();
  for (const Shape shape : {Shape::kDense, Shape::kSparse, Shape::kRange}) {
    frames.push_back(encode_request({m.payload(shape, 3, 11, Values::kPowersOfTwo)}));
  }
  for (int i = 0; i < 100000; ++i) {
    const Bytes& good = frames[random() % frames.size()];
    std::string header = header_of(good);
    Bytes payload = payload_of(good);
    for (unsigned changes = random() % 3; changes > 0; --changes)
      header[random() % header.size()] = static_cast<char>(random());
    if (random() % 4 == 0) header.insert(random() % header.size(), 1, static_cast<char>(random()));
    if (random() % 8 == 0) header += header.substr(random() % header.size());
    if (!payload.empty() && random() % 2 == 0)
      payload[random() % payload.size()] ^= static_cast<std::byte>(random());
    const auto type = static_cast<FrameType>(good[5]);
    const Bytes bad = frame(type, header, payload);
    const std::string error = type == FrameType::kReply ? error_of(bad) : request_error_of(bad);
    if (HasFailure()) FAIL() << error;
  }
}

TEST(CodecMemory, AllocatesNothingForSmallMessagesAfterWarmUp) {
  CodecContext context;
  context.dim = 123;
  Codec<double> codec(context);
  UplinkSlot<double> slot(context);
  Material<double> m;
  const Uplink<double> u{
      {.client = 1},
      {m.payload(Shape::kSparse, 9, 123, Values::kNoise), m.payload(Shape::kDense, 0, 100, Values::kNoise)}};
  Bytes bytes = flatten(codec.encode(u));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(receive(slot, context, 1, bytes));
  allocations::reset();
  codec.encode(u);
  codec.encoded_bytes(u);
  EXPECT_EQ(allocations::count, 0u);
  ASSERT_TRUE(receive(slot, context, 1, bytes));
  EXPECT_EQ(allocations::count, 0u);
}

TEST(CodecMemory, HoldsALargeCompressedMessageOnceAfterwards) {
  CodecContext context;
  context.dim = 1 << 20;
  const std::size_t raw = context.dim * sizeof(float), slack = 4 * ByteBuffer::kKeptBytes;
  Material<float> m;
  Uplink<float> u{{.client = 1}, {m.payload(Shape::kDense, 0, context.dim, Values::kRepetitive)}};
  auto codec = std::make_unique<Codec<float>>(context);
  const std::size_t before_codec = allocations::live;
  const Bytes bytes = flatten(codec->encode(u));
  ASSERT_LT(bytes.size(), raw);
  codec->release_uplink();
  EXPECT_LE(allocations::live, before_codec + bytes.capacity() + slack);

  UplinkSlot<float> slot(context);
  const std::size_t before_slot = allocations::live;
  allocations::reset();
  ASSERT_TRUE(receive(slot, context, 1, bytes));
  EXPECT_LE(allocations::peak, before_slot + raw + bytes.size() + slack);
  EXPECT_LE(allocations::live, before_slot + raw + slack);
  // The next small message also frees the vector of the large one.
  u.parts = {m.payload(Shape::kSparse, 1, context.dim, Values::kNoise)};
  ASSERT_TRUE(receive(slot, context, 1, flatten(codec->encode(u))));
  EXPECT_LE(allocations::live, before_slot + slack);
}

}  // namespace
}  // namespace gradwire
