// Helpers of the codec's tests: messages of any kind, a receiver that works like a connection, exact
// comparison.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "proto/wire/codec.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {

using Bytes = std::vector<std::byte>;

inline Bytes flatten(const Encoded& message) {
  Bytes out(message.prefix.begin(), message.prefix.end());
  const auto append = [&](std::span<const std::byte> more) {
    out.insert(out.end(), more.begin(), more.end());
  };
  append(std::as_bytes(std::span(message.header)));
  for (const auto section : message.sections) append(section);
  return out;
}

inline Bytes flatten(std::span<const std::span<const std::byte>> segments) {
  Bytes out;
  for (const auto segment : segments) out.insert(out.end(), segment.begin(), segment.end());
  return out;
}

// Returns the header of a client's reply to request id 1 in round 1, with one plain dense vector.
inline wire::Reply dense_reply_header(std::uint32_t dim) {
  wire::Reply header;
  header.set_request_id(1);
  header.set_round(1);
  header.set_client(0);
  header.set_answer(wire::ANSWER_REPLY);
  header.set_loss(0.5);
  header.set_grad_calls(1);
  wire::Part& part = *header.add_parts();
  part.set_shape(wire::SHAPE_DENSE);
  part.set_packing(wire::PACKING_PLAIN);
  part.set_dim(dim);
  return header;
}

// Packs fields bit by bit.
inline Bytes naive_pack(std::span<const std::uint32_t> fields, std::uint32_t bits) {
  Bytes out((fields.size() * bits + 7) / 8);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    for (std::uint32_t b = 0; b < bits; ++b) {
      const std::size_t at = i * bits + b;
      if ((fields[i] >> b & 1) != 0) out[at / 8] |= static_cast<std::byte>(1 << (at % 8));
    }
  }
  return out;
}

// Reads one frame from memory into a slot, like a connection. Returns the result of `finish`, or an error.
template <class Slot, class Finish>
auto receive_with(Slot& slot, const CodecContext& context, std::size_t real_bytes,
                  std::span<const std::byte> in, Finish finish) -> decltype(finish()) {
  if (in.size() < kPrefixBytes) return Error{"the connection ended inside the prefix"};
  const auto raw = in.first<kPrefixBytes>();
  const auto prefix = read_prefix(raw, max_payload_bytes(context, real_bytes));
  if (!prefix) return prefix.error();
  in = in.subspan(kPrefixBytes);
  if (in.size() < prefix->header_len) return Error{"the connection ended inside the header"};
  const auto header = in.first(prefix->header_len);
  if (auto s = check_header(raw, header); !s) return s.error();
  auto targets = slot.prepare(*prefix, header);
  if (!targets) return targets.error();
  in = in.subspan(prefix->header_len);
  std::uint64_t wanted = 0;
  for (const auto target : *targets) wanted += target.size();
  EXPECT_EQ(wanted, prefix->payload_len);
  for (const auto target : *targets) {
    if (in.size() < target.size()) return Error{"the connection ended inside the payload"};
    std::memcpy(target.data(), in.data(), target.size());
    in = in.subspan(target.size());
  }
  return finish();
}

template <class Real>
Result<UplinkView<Real>> receive(UplinkSlot<Real>& slot, const CodecContext& context, ClientId client,
                                 std::span<const std::byte> in) {
  return receive_with(slot, context, sizeof(Real), in, [&] { return slot.finish(client); });
}
template <class Real>
Result<Request<Real>> receive(RequestSlot<Real>& slot, const CodecContext& context,
                              std::span<const std::byte> in) {
  return receive_with(slot, context, sizeof(Real), in, [&] { return slot.finish(); });
}

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

template <class Real>
void expect_same(const Payload<Real>& got, const Payload<Real>& sent) {
  EXPECT_EQ(got.shape, sent.shape);
  EXPECT_EQ(got.packing, sent.packing);
  ASSERT_EQ(got.key != nullptr, sent.key != nullptr);
  EXPECT_EQ(got.dim, sent.dim);
  EXPECT_EQ(got.first, sent.first);
  EXPECT_TRUE(same_bits(got.indices, sent.indices));
  EXPECT_TRUE(same_bits(got.values, sent.values));
  EXPECT_TRUE(sent.key == nullptr || *got.key == *sent.key);
  EXPECT_EQ(got.rows, sent.rows);
  EXPECT_EQ(got.levels, sent.levels);
  EXPECT_TRUE(sent.values.empty() || got.unit == sent.unit);
  ASSERT_EQ(got.next != nullptr, sent.next != nullptr);
  if (sent.next != nullptr) expect_same(*got.next, *sent.next);
}

template <class Real>
void expect_same(const UplinkView<Real>& got, const Uplink<Real>& sent) {
  EXPECT_EQ(got.request_id, sent.request_id);
  EXPECT_EQ(got.round, sent.round);
  EXPECT_EQ(got.client, sent.client);
  EXPECT_EQ(got.status, sent.status);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(got.loss), std::bit_cast<std::uint64_t>(sent.loss));
  EXPECT_EQ(got.grad_calls, sent.grad_calls);
  EXPECT_EQ(got.correct, sent.correct);
  EXPECT_EQ(got.tested, sent.tested);
  ASSERT_EQ(got.parts.size(), sent.parts.size());
  for (std::size_t k = 0; k < sent.parts.size(); ++k) expect_same(got.parts[k], sent.parts[k]);
}

template <class Real>
void expect_same(const Downlink<Real>& got, const Downlink<Real>& sent) {
  EXPECT_EQ(got.round, sent.round);
  EXPECT_EQ(got.flags, sent.flags);
  ASSERT_EQ(got.parts.size(), sent.parts.size());
  for (std::size_t k = 0; k < sent.parts.size(); ++k) expect_same(got.parts[k], sent.parts[k]);
}

enum class Values { kNoise, kRepetitive, kPowersOfTwo };

// Random payloads of a test, and the buffers that they view.
template <class Real>
struct Material {
  std::mt19937_64 random{7};
  std::vector<std::vector<std::uint32_t>> indices;
  std::vector<Vec<Real>> values;
  std::deque<RngKey> keys;

  Material() {
    indices.reserve(64);  // payloads view the inner vectors, which must not move
    values.reserve(64);
  }

  Real value(Values kind) {
    switch (kind) {
      case Values::kRepetitive: return static_cast<Real>(random() % 4) - 1;
      case Values::kPowersOfTwo: {
        // The number of exponents of normal values. An exponent of 0 stands for the value 0.
        const int exponents = sizeof(Real) == 4 ? 254 : 2046;
        const int e = static_cast<int>(random() % static_cast<unsigned>(exponents + 1));
        const Real magnitude = e == 0 ? Real{0} : std::ldexp(Real{1}, e - exponents / 2);
        return random() % 2 == 0 ? magnitude : -magnitude;
      }
      case Values::kNoise: break;
    }
    const auto x = static_cast<Real>(static_cast<double>(random() >> 11) * 0x1p-53 - 0.5);
    return random() % 16 == 0 ? Real{-0.0} : x;
  }
  View<Real> vector(std::size_t n, Values kind) {
    auto& v = values.emplace_back(n);
    for (Real& x : v) x = value(kind);
    return v;
  }
  std::span<const std::uint32_t> subset(std::uint32_t k, std::uint32_t d) {
    auto& s = indices.emplace_back();
    for (std::uint32_t j = 0; s.size() < k; ++j) {
      if (random() % (d - j) < k - s.size()) s.push_back(j);
    }
    return s;
  }

  Payload<Real> payload(Shape shape, std::uint32_t k, std::uint32_t d, Values kind) {
    Payload<Real> p;
    p.shape = shape;
    p.packing = kind == Values::kPowersOfTwo ? Packing::kNatural : Packing::kPlain;
    p.dim = d;
    if (shape == Shape::kDense) p.values = vector(d, kind);
    if (shape == Shape::kSparse || shape == Shape::kRange) p.values = vector(k, kind);
    if (shape == Shape::kSparse) p.indices = subset(k, d);
    if (shape == Shape::kRange) p.first = static_cast<std::uint32_t>(random() % d);
    return p;
  }
  // Returns `p` with a support that is drawn from a key which the codec can derive.
  Payload<Real> seeded(Payload<Real> p, const CodecContext& context, ClientId client, std::uint32_t round,
                       std::uint32_t part) {
    p.key = &keys.emplace_back(RngKey{context.seed, client, round, RngDomain::kCompressor + part});
    auto& s = indices.emplace_back();
    EXPECT_TRUE(redraw_support(context.compressor, p.shape, p.values.size(), p.dim, *p.key, s, p.first));
    if (p.shape == Shape::kSparse) p.indices = s;
    return p;
  }
};

}  // namespace gradwire
