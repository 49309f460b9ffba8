// Benchmarks of encoding and decoding messages.
#include <cstring>

#include "benchmarks/benchmarks.h"
#include "benchmarks/workloads.h"
#include "compressors/compressor.h"
#include "engine/problems/problem.h"
#include "proto/wire/codec.h"
#include "simulation/encoded_link.h"

namespace gradwire::bench {
namespace {

constexpr RngKey kFirstKey{1, 0, 0, RngDomain::kCompressor};  // client 0 in round 0 of the run with seed 1

CodecContext context_for(const Compressor& compressor, std::size_t d, ZstdMode::Kind zstd) {
  CodecContext context;
  context.seed = kFirstKey.seed;
  context.dim = static_cast<std::uint32_t>(d);
  context.clients = 1;
  context.compressor = compressor;
  context.zstd.kind = zstd;
  return context;
}

template <class Real>
Uplink<Real> uplink_of(const Payload<Real>& part) {
  Uplink<Real> up;
  up.request_id = 1;
  up.grad_calls = 100;
  up.loss = 0.5;
  up.parts = {part};
  return up;
}

// A sender and a receiver.
template <class Real>
struct WireLine {
  Codec<Real> codec;
  EncodedLink<Real> link;
  explicit WireLine(const CodecContext& context) : codec(context), link(context) {}

  double encode_seconds(const Uplink<Real>& up, std::uint32_t calls) {
    return seconds_of([&] {
      for (std::uint32_t k = 0; k < calls; ++k) bytes = codec.encode(up).bytes;
    });
  }
  double decode_seconds(const Uplink<Real>& up, std::uint32_t calls) {
    const Encoded& message = codec.encode(up);
    return seconds_of([&] {
      for (std::uint32_t k = 0; k < calls; ++k) last = link.up(message, up.client).parts[0].values.back();
    });
  }
  std::uint64_t bytes = 0;
  Real last = 0;
};

// Returns a gradient of a network on the digits at its start point, shape (64 h + h + 10 h + 10). It is
// dense, and some of its numbers are exactly zero.
template <class Real>
std::vector<Real> digits_gradient(std::uint32_t hidden) {
  ProblemSpec spec;
  spec.problem.emplace<Mlp>().shape.hidden = {hidden};
  ClientDataset part;
  part.train = read_source("digits", {}, {});
  const DataSchema schema{part.train.columns, distinct_labels(part.train)};
  const auto oracle = make_oracle<Real>(spec, schema, part, 0);
  const std::vector<double> start = model_start(spec, schema);
  const std::vector<Real> x(start.begin(), start.end());
  std::vector<Real> gradient(x.size());
  oracle->loss_and_gradient(x, {}, gradient);
  return gradient;
}

// Returns a minibatch gradient of a linear model on sparse rows like those of text. Nearly all entries are
// zero.
std::vector<float> mostly_zero_gradient(std::size_t d) {
  std::vector<float> gradient(d);
  const std::vector<float> values = normal_vector<float>(d / 200, 11);
  RngStream stream(kFirstKey);
  for (const float v : values) gradient[stream.below(static_cast<std::uint32_t>(d))] = v;
  return gradient;
}

template <class Real>
void zstd_rows(Bench& bench, const std::string& kind, const std::vector<Real>& gradient,
               const std::string& compressor_spec) {
  const std::size_t d = gradient.size();
  const Compressor compressor = parse_compressor(compressor_spec, d);
  Scratch<Real> scratch;
  PayloadBuffer<Real> buffer;
  Vec<Real> v = gradient;
  const Uplink<Real> up = uplink_of(compress(compressor, v, kFirstKey, scratch, buffer));
  WireLine<Real> plain(context_for(compressor, d, ZstdMode::Kind::kOff));
  WireLine<Real> automatic(context_for(compressor, d, ZstdMode::Kind::kAuto));
  WireLine<Real> always(context_for(compressor, d, ZstdMode::Kind::kLevel));
  const std::uint64_t raw = plain.codec.encode(up).bytes, sent = automatic.codec.encode(up).bytes;
  const std::uint64_t forced = always.codec.encode(up).bytes;
  const std::uint32_t calls = bench.size(4u, 1u);
  const auto series = interleave(
      bench.repeats(9),
      {[&] { return automatic.encode_seconds(up, calls); }, [&] { return plain.encode_seconds(up, calls); },
       [&] { return automatic.decode_seconds(up, calls); }, [&] { return plain.decode_seconds(up, calls); }});
  bench.keep(automatic.last + plain.last);
  const double to_us_per_mb = 1e6 / calls / (static_cast<double>(raw) / 1e6);
  const auto percent = [&](std::uint64_t bytes) {
    return std::to_string(bytes) + " (" + std::to_string((1000 * bytes / raw + 5) / 10) + " %)";
  };
  Row row;
  row.name = "wire/zstd encode " + kind;
  row.unit = "us/MB";
  row.value = series[0].times(to_us_per_mb);
  row.versus = {"zstd off", series[1].times(to_us_per_mb)};
  row.note = "auto " + std::string(sent < raw ? "compresses" : "sends it uncompressed") + ": " +
             std::to_string(raw) + " bytes, sent " + percent(sent) + "; level 1 always: " + percent(forced);
  bench.row(row);
  row.name = "wire/zstd decode " + kind;
  row.value = series[2].times(to_us_per_mb);
  row.versus = {"zstd off", series[3].times(to_us_per_mb)};
  row.note.clear();
  bench.row(row);
}

// Measures a message of EF21 with Top-1: one number and its index.
void small_message_rows(Bench& bench) {
  constexpr std::size_t kDim = 123;
  const std::uint32_t calls = bench.size(20000u, 10u);
  const Compressor compressor = parse_compressor("topk:k=1", kDim);
  Scratch<double> scratch;
  PayloadBuffer<double> buffer;
  Vec<double> v = normal_vector<double>(kDim, 5);
  const Uplink<double> up = uplink_of(compress(compressor, v, kFirstKey, scratch, buffer));
  WireLine<double> line(context_for(compressor, kDim, ZstdMode::Kind::kAuto));
  std::uint64_t counted = 0;
  const auto series = interleave(bench.repeats(15), {[&] { return line.encode_seconds(up, calls); },
                                                     [&] { return line.decode_seconds(up, calls); },
                                                     [&] {
                                                       return seconds_of([&] {
                                                         for (std::uint32_t k = 0; k < calls; ++k)
                                                           counted += line.codec.encoded_bytes(up);
                                                       });
                                                     }});
  bench.keep(static_cast<double>(counted + line.bytes) + line.last);
  const char* what[] = {"encode", "decode", "encoded_bytes"};
  for (std::size_t k = 0; k < std::size(what); ++k) {
    Row row;
    row.name = "wire/codec topk:k=1 " + std::string(what[k]);
    row.value = series[k].times(1e9 / calls);
    row.unit = "ns/message";
    if (k == 0) row.note = std::to_string(line.bytes) + " bytes with prefix and header";
    bench.row(row);
  }
}

// Measures a dense gradient of 1 MB. The codec moves the bytes and computes a checksum.
void dense_message_rows(Bench& bench) {
  const std::size_t d = bench.size<std::size_t>(250000, 500);
  const std::uint32_t calls = bench.size(20u, 1u);
  const std::vector<float> gradient = normal_vector<float>(d, 9);
  std::vector<float> copy(d);
  const Uplink<float> up = uplink_of(Payload<float>::dense(gradient));
  WireLine<float> line(context_for(Identity{}, d, ZstdMode::Kind::kOff));
  const auto series =
      interleave(bench.repeats(15), {[&] { return line.encode_seconds(up, calls); },
                                     [&] { return line.decode_seconds(up, calls); },
                                     [&] {
                                       const double seconds = seconds_of([&] {
                                         for (std::uint32_t k = 0; k < calls; ++k) {
                                           std::memcpy(copy.data(), gradient.data(), d * sizeof(float));
                                           asm volatile("" : : "r"(copy.data()) : "memory");
                                         }
                                       });
                                       bench.keep(copy.back());
                                       return seconds;
                                     }});
  bench.keep(static_cast<double>(line.bytes) + line.last);
  const double to_us = 1e6 / calls / (static_cast<double>(d * sizeof(float)) / 1e6);
  const char* what[] = {"encode", "decode"};
  for (std::size_t k = 0; k < std::size(what); ++k) {
    Row row;
    row.name = "wire/codec dense 1 MB " + std::string(what[k]);
    row.value = series[k].times(to_us);
    row.unit = "us/MB";
    row.versus = {"memcpy", series[2].times(to_us)};
    if (k == 1) row.target = {Target::Of::kRatio, 2};
    if (k == 1)
      row.note = "including the copy from the sender's buffer to the receiver's, as a socket would make it";
    bench.row(row);
  }
}

}  // namespace

void wire_codec(Bench& bench) {
  small_message_rows(bench);
  dense_message_rows(bench);
}

void wire_zstd(Bench& bench) {
  const std::uint32_t hidden = bench.size(1024u, 8u);
  const std::size_t d = bench.size<std::size_t>(100000, 1000);
  const std::vector<float> network = digits_gradient<float>(hidden);
  zstd_rows(bench, "normal fp32", normal_vector<float>(d, 21), "identity");
  zstd_rows(bench, "normal fp64", normal_vector<double>(d, 22), "identity");
  zstd_rows(bench, "mlp fp32", network, "identity");
  zstd_rows(bench, "mlp fp64", digits_gradient<double>(hidden), "identity");
  zstd_rows(bench, "mlp fp32 topk:k=1%", network, "topk:k=1%");
  zstd_rows(bench, "mlp fp32 topk:k=10%", network, "topk:k=10%");
  zstd_rows(bench, "mlp fp32 randk:k=10%", network, "randk:k=10%");
  zstd_rows(bench, "mlp fp32 natural", network, "natural");
  zstd_rows(bench, "0.5 % nonzero fp32", mostly_zero_gradient(d), "identity");
}

}  // namespace gradwire::bench
