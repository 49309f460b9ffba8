// Benchmarks of compressors on one large vector.
#include <cstring>

#include "benchmarks/benchmarks.h"
#include "benchmarks/workloads.h"
#include "compressors/compress_finite.h"
#include "compressors/compressor.h"

namespace gradwire::bench {
namespace {

constexpr RngKey kKey{1, 0, 0, RngDomain::kCompressor};

// A vector of d normal numbers in fp32, and the time that copying it takes.
struct Vectors {
  std::vector<float> source, copy;
  explicit Vectors(std::size_t d) : source(normal_vector<float>(d, 3)), copy(d) {}
  double seconds_of_memcpy() {
    return seconds_of([&] { std::memcpy(copy.data(), source.data(), source.size() * sizeof(float)); });
  }
};

// One spec of each compressor, for 20 clients.
constexpr const char* kSpecs[] = {"identity",
                                  "topk:k=1%",
                                  "toplek:k=1%",
                                  "randk:k=1%",
                                  "randseqk:k=1%",
                                  "permk",
                                  "bernoulli:p=1",
                                  "natural",
                                  "natural_dithering:s=8",
                                  "qsgd:s=4",
                                  "terngrad",
                                  "sign",
                                  "rankk:k=2,rows=8",
                                  "natural(randk:k=1%)",
                                  "natural(topk:k=1%)",
                                  "scaled(natural)",
                                  "induced(topk:k=1%,randk:k=1%)"};
constexpr std::uint32_t kClients = 20;

}  // namespace

void compressors_compress(Bench& bench) {
  const std::size_t d = bench.size<std::size_t>(1000000, 2000);
  const std::uint32_t calls = bench.size(5u, 1u);
  Vectors vectors(d);
  Scratch<float> scratch;
  PayloadBuffer<float> buffer;
  Vec<float> v(d);
  std::vector<BenchBody> bodies = {[&] {
    double seconds = 0;
    for (std::uint32_t k = 0; k < calls; ++k) seconds += vectors.seconds_of_memcpy();
    bench.keep(vectors.copy[d / 2]);
    return seconds;
  }};
  for (const char* spec : kSpecs) {
    bodies.push_back([&, compressor = parse_compressor(spec, d, kClients)] {
      double seconds = 0;
      for (std::uint32_t k = 0; k < calls; ++k) {
        v = vectors.source;
        const RngKey key{1, k % kClients, 0, RngDomain::kCompressor};
        seconds += seconds_of([&] { compress(compressor, v, key, scratch, buffer); });
        if (!buffer.view().values.empty()) bench.keep(buffer.view().values.back());
      }
      return seconds;
    });
  }
  const auto series = interleave(bench.repeats(15), bodies);
  const double to_ns = 1e9 / (static_cast<double>(d) * calls);
  for (std::size_t k = 0; k < std::size(kSpecs); ++k) {
    Row row;
    row.name = "compressors/compress " + std::string(kSpecs[k]);
    row.value = series[k + 1].times(to_ns);
    row.unit = "ns/element";
    row.versus = {"memcpy of the vector", series[0].times(to_ns)};
    bench.row(row);
  }
}

// The steps of EF21 and DIANA that make a message: v - shift, its check, and its compression. The time of v -
// shift alone is left out.
void compressors_check(Bench& bench) {
  const std::size_t d = bench.size<std::size_t>(1000000, 2000);
  const std::uint32_t calls = bench.size(5u, 1u);
  Vectors vectors(d);
  Scratch<float> scratch;
  PayloadBuffer<float> buffer;
  Vec<float> v(d);
  const std::vector<float> shift = normal_vector<float>(d, 4);
  const auto timed = [&](const auto& work) {
    return [&, work] {
      double seconds = 0;
      for (std::uint32_t k = 0; k < calls; ++k) {
        v = vectors.source;
        seconds += seconds_of([&] { work(RngKey{1, k % kClients, 0, RngDomain::kCompressor}); });
        bench.keep(v[d / 2]);
      }
      return seconds;
    };
  };
  std::vector<BenchBody> bodies = {timed([&](const RngKey&) { bench.keep(vectors.seconds_of_memcpy()); }),
                                   timed([&](const RngKey&) {
                                     for (std::size_t j = 0; j < d; ++j) v[j] -= shift[j];
                                   })};
  constexpr std::pair<const char*, double> kChecked[] = {{"randseqk:k=1%", 0.1}, {"randk:k=1%", 0.45}};
  for (const auto& [spec, target] : kChecked)
    bodies.push_back(timed([&, compressor = parse_compressor(spec, d, kClients)](const RngKey& key) {
      compress_shifted<float>(compressor, v, shift, key, scratch, buffer);
    }));
  const auto series = interleave(bench.repeats(25), bodies);
  const double to_ns = 1e9 / (static_cast<double>(d) * calls);
  for (std::size_t k = 0; k < std::size(kChecked); ++k) {
    Row row;
    row.name = "compressors/check " + std::string(kChecked[k].first);
    // The difference of the least times: pairs of single times differ by more than the check takes.
    row.value.add(to_ns * (series[k + 2].min() - series[1].min()));
    row.unit = "ns/element";
    row.versus.emplace().what = "memcpy of the vector";
    row.versus->value.add(to_ns * series[0].min());
    row.target = {Target::Of::kRatio, kChecked[k].second};
    bench.row(row);
  }
}

void compressors_decode(Bench& bench) {
  const std::size_t d = bench.size<std::size_t>(1000000, 2000);
  const std::uint32_t calls = bench.size(20u, 1u);
  Vectors vectors(d);
  Scratch<float> scratch;
  PayloadBuffer<float> sparse;
  Vec<float> v = vectors.source;
  compress(parse_compressor("topk:k=1%", d), v, kKey, scratch, sparse);
  const Payload<float> payload = sparse.view(), dense = Payload<float>::dense(vectors.source);
  std::vector<float> sum(d);
  const auto timed = [&](auto&& work) {
    return [&, work] {
      const double seconds = seconds_of([&] {
        for (std::uint32_t k = 0; k < calls; ++k) work();
      });
      bench.keep(sum[payload.indices.front()]);
      return seconds;
    };
  };
  const auto series =
      interleave(bench.repeats(15), {timed([&] { add_decoded<float>(payload, 0.5f, sum); }), timed([&] {
                                       for (std::size_t k = 0; k < payload.indices.size(); ++k)
                                         sum[payload.indices[k]] += 0.5f * payload.values[k];
                                     }),
                                     timed([&] { add_decoded<float>(dense, 0.5f, sum); }),
                                     timed([&] { bench.keep(vectors.seconds_of_memcpy()); })});
  const double per_entry = 1e9 / (static_cast<double>(payload.indices.size()) * calls);
  const double per_element = 1e9 / (static_cast<double>(d) * calls);
  Row row;
  row.name = "compressors/decode topk:k=1%";
  row.value = series[0].times(per_entry);
  row.unit = "ns/entry";
  row.versus = {"bare loop", series[1].times(per_entry)};
  bench.row(row);
  row.name = "compressors/decode identity";
  row.value = series[2].times(per_element);
  row.unit = "ns/element";
  row.versus = {"memcpy of the vector", series[3].times(per_element)};
  bench.row(row);
}

// Measures the server's work on the payload of one client: adding it to a sum.
void compressors_add(Bench& bench) {
  const std::size_t d = bench.size<std::size_t>(1000000, 2000);
  const std::uint32_t calls = bench.size(10u, 1u);
  Vectors vectors(d);
  std::vector<float> sum(d);
  std::vector<PayloadBuffer<float>> buffers(std::size(kSpecs));
  std::vector<BenchBody> bodies = {[&] {
    double seconds = 0;
    for (std::uint32_t k = 0; k < calls; ++k) seconds += vectors.seconds_of_memcpy();
    bench.keep(vectors.copy[d / 2]);
    return seconds;
  }};
  Scratch<float> scratch;
  for (std::size_t k = 0; k < std::size(kSpecs); ++k) {
    Vec<float> v = vectors.source;
    compress(parse_compressor(kSpecs[k], d, kClients), v, kKey, scratch, buffers[k]);
    bodies.push_back([&, k] {
      const double seconds = seconds_of([&] {
        for (std::uint32_t call = 0; call < calls; ++call) add_decoded<float>(buffers[k].view(), 0.5f, sum);
      });
      bench.keep(sum[d / 2]);
      return seconds;
    });
  }
  const auto series = interleave(bench.repeats(15), bodies);
  const double to_ns = 1e9 / (static_cast<double>(d) * calls);
  for (std::size_t k = 0; k < std::size(kSpecs); ++k) {
    Row row;
    row.name = "compressors/add " + std::string(kSpecs[k]);
    row.value = series[k + 1].times(to_ns);
    row.unit = "ns/element";
    row.versus = {"memcpy of the vector", series[0].times(to_ns)};
    bench.row(row);
  }
}

}  // namespace gradwire::bench
