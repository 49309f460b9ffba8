// Benchmarks of adding up the dense replies of a round along the tree.
#include <cstring>

#include "algorithms/core/tree_sum.h"
#include "algorithms/core/vector_ops.h"
#include "benchmarks/benchmarks.h"
#include "benchmarks/workloads.h"
#include "parallel/range_threads.h"

namespace gradwire::bench {
namespace {

// Measures the sum of `replies` vectors of length d.
void sums_of(Bench& bench, std::uint32_t replies, std::size_t d) {
  RunContext<float> run_context;
  run_context.n = replies;
  run_context.d = d;
  std::vector<std::vector<float>> vectors;
  std::vector<Uplink<float>> sent(replies);
  for (std::uint32_t i = 0; i < replies; ++i) vectors.push_back(normal_vector<float>(d, i + 1));
  for (std::uint32_t i = 0; i < replies; ++i) {
    sent[i].client = i;
    sent[i].parts = {Payload<float>::dense(vectors[i])};
  }
  const std::vector<UplinkView<float>> uplinks(sent.begin(), sent.end());
  std::vector<float> out(d);
  const auto timed = [&](auto&& work) {
    return [&, work] {
      const double seconds = seconds_of(work);
      bench.keep(out[d / 2]);
      return seconds;
    };
  };
  TreeSum<float> tree;
  const std::vector<float> gradient = vectors[0];
  const auto series = interleave(
      bench.repeats(25), {timed([&] {
                            for_ranges_serial(d, [&](std::size_t lo, std::size_t hi) {
                              for (const auto& up : uplinks)
                                add_decoded<float>(up.parts[0], run_context.weight(0), out, lo, hi);
                            });
                          }),
                          timed([&] { add_weighted<float>(run_context, uplinks, 0, 1.0f, out); }), timed([&] {
                            // Adds each vector as a thread would after computing it, so that none is stored.
                            tree.begin(d);
                            for (std::uint32_t i = 0; i < replies; ++i) tree.add(i, 1.0f, gradient.data());
                            axpy<float>(run_context.weight(0), tree.sum(), out);
                          })});
  const auto row = [&](const std::string& what, const Series& of, double target) {
    Row row;
    row.name = "rounds/sums " + what + " " + std::to_string(replies) + " x " + std::to_string(d);
    row.value = of.times(1e3);
    row.unit = "ms";
    row.versus = {"in the order of clients", series[0].times(1e3)};
    row.target = {Target::Of::kRatio, target};
    bench.row(row);
  };
  row("stored", series[1], 1.25);
  row("after each gradient", series[2], 0.5);
}

// Measures how fast a server adds up dense replies that do not fit the cache. The reference is memcpy with as
// many threads, per byte that is read or written.
void bandwidth_of(Bench& bench, std::uint32_t replies, std::size_t d, unsigned threads) {
  RunContext<float> run_context;
  run_context.n = replies;
  run_context.d = d;
  run_context.ranges = ranges_of(d, threads);
  const std::vector<std::vector<float>> vectors(replies, std::vector<float>(d, 0.5F));
  std::vector<Uplink<float>> sent(replies);
  for (std::uint32_t i = 0; i < replies; ++i) {
    sent[i].client = i;
    sent[i].parts = {Payload<float>::dense(vectors[i])};
  }
  const std::vector<UplinkView<float>> uplinks(sent.begin(), sent.end());
  std::vector<float> out(d), copy(d);
  std::uint32_t turn = 0;
  const auto series = interleave(
      bench.repeats(15), {[&] {
                            return seconds_of([&] {
                              add_weighted<float>(run_context, uplinks, 0, 1e-3F, out);
                              bench.keep(out[d / 2]);
                            });
                          },
                          [&] {
                            const std::vector<float>& from = vectors[turn++ % replies];
                            return seconds_of([&] {
                              run_context.ranges(d, [&](std::size_t lo, std::size_t hi) {
                                std::memcpy(copy.data() + lo, from.data() + lo, (hi - lo) * sizeof(float));
                              });
                              bench.keep(copy[d / 2]);
                            });
                          }});
  // The sum reads each reply, and reads and writes the result; a copy reads and writes.
  const double numbers = static_cast<double>(d) * sizeof(float) / 1e9;
  Row row;
  row.name = "rounds/sums bandwidth " + std::to_string(replies) + " x " + std::to_string(d) + ", threads " +
             std::to_string(threads);
  row.value = series[0].times(1e3 / (numbers * (replies + 2)));
  row.unit = "ms/GB";
  row.versus = {"memcpy", series[1].times(1e3 / (numbers * 2))};
  row.target = {Target::Of::kRatio, 1 / 0.6};
  row.note = "per GB that is read or written; at least 60 % of the bandwidth of memcpy";
  bench.row(row);
}

}  // namespace

void rounds_sums(Bench& bench) {
  sums_of(bench, bench.size(1000u, 40u), bench.size<std::size_t>(7850, 100));
  sums_of(bench, bench.size(100u, 20u), bench.size<std::size_t>(101770, 100));
  for (const unsigned threads : {1u, 2u})
    bandwidth_of(bench, 8, bench.size<std::size_t>(16'000'000, 1000), threads);
}

}  // namespace gradwire::bench
