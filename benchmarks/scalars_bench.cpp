// Benchmarks of conversions between 16-bit numbers and float, of tapes of types other than float and double,
// and of activations in 16 bits.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/half.h"
#include "base/value.h"
#include "benchmarks/benchmarks.h"
#include "benchmarks/tasks.h"
#include "engine/nn/executor.h"
#include "engine/tape/eager_tape.h"

namespace gradwire::bench {
namespace {

// Makes the optimiser believe that memory is read and written.
inline void use(void* a, void* b) { asm volatile("" : : "r"(a), "r"(b) : "memory"); }

template <class Half>
void conversion_rows(Bench& bench, const char* name) {
  constexpr std::size_t kCount = 4096;  // fits the second-level cache, like the activations of a layer
  const std::uint32_t calls = bench.size(1000u, 2u);
  std::vector<float> floats(kCount), back(kCount);
  for (std::size_t j = 0; j < kCount; ++j) floats[j] = std::sin(static_cast<float>(j));
  std::vector<Half> halves(kCount);
  const auto each = [&](auto call) {
    return [&, call] {
      return seconds_of([&] {
        for (std::uint32_t k = 0; k < calls; ++k) {
          call();
          use(halves.data(), back.data());
        }
      });
    };
  };
  const auto series = interleave(
      bench.repeats(15), {each([&] { convert(std::span<const float>(floats), std::span<Half>(halves)); }),
                          each([&] { convert(std::span<const Half>(halves), std::span<float>(back)); }),
                          each([&] { std::memcpy(back.data(), floats.data(), kCount * sizeof(float)); })});
  for (const bool to : {true, false}) {
    Row row;
    row.name = std::string("engine/scalars fp32 ") + (to ? "to " : "from ") + name;
    row.value = series[to ? 0 : 1].times(1e12 / (kCount * static_cast<double>(calls)));
    row.unit = "ps/number";
    row.versus = Versus{"copying them", series[2].times(1e12 / (kCount * static_cast<double>(calls)))};
    row.note = "4,096 numbers at a time";
    bench.row(row);
  }
}

// Computes gradients of ((a + b) - (a b + b^3))^2 / 2, the graph of engine/tape tiny.
template <class T>
[[gnu::noinline]] double gradients(EagerTape<T>& tape, std::uint32_t calls) {
  double sum = 0;
  const auto start = tape.checkpoint();
  for (std::uint32_t k = 0; k < calls; ++k) {
    const auto a = tape.variable(T(-4)), b = tape.variable(T(2));
    backward(sqr((a + b) - (a * b + pow3(b))) / T(2));
    sum += static_cast<double>(a.grad());
    tape.rewind(start);
  }
  return sum;
}

template <class T>
void tape_row(Bench& bench, const char* name) {
  const std::uint32_t calls = bench.size(20000u, 20u);
  EagerTape<T> tape;
  EagerTape<double> plain;
  const auto series =
      interleave(bench.repeats(9), {[&] { return seconds_of([&] { gradients(tape, calls); }); },
                                    [&] { return seconds_of([&] { gradients(plain, calls); }); }});
  Row row;
  row.name = std::string("engine/scalars tape of ") + name;
  row.value = series[0].times(1e9 / calls);
  row.unit = "ns/graph";
  row.versus = Versus{"fp64", series[1].times(1e9 / calls)};
  row.note = "the graph of engine/tape tiny, recorded again each time";
  bench.row(row);
}

// Compares gradients of a deep transformer whose activations are kept in bfloat16 with exact ones.
void kept_row(Bench& bench) {
  DeepTransformer deep(bench.size<std::size_t>(48, 2));
  std::vector<float> exact(deep.x.size()), kept(deep.x.size());
  Executor<float> plain(deep.network);
  deep.network.keep_activations(KeptActivations::kBFloat16);
  Executor<float> compact(deep.network);
  const auto series =
      interleave(bench.repeats(9), {[&] { return seconds_of([&] { deep.gradient(compact, kept); }); },
                                    [&] { return seconds_of([&] { deep.gradient(plain, exact); }); }});
  double error = 0, size = 0;
  for (std::size_t j = 0; j < exact.size(); ++j) {
    error += std::pow(static_cast<double>(kept[j]) - static_cast<double>(exact[j]), 2);
    size += std::pow(static_cast<double>(exact[j]), 2);
  }
  Row row;
  row.name = "engine/scalars activations in bfloat16";
  row.value = series[0].times(1e3);
  row.unit = "ms";
  row.versus = Versus{"exact ones", series[1].times(1e3)};
  row.note = deep.title() + "; arena " + std::to_string(compact.arena_bytes() / 1024) + " KB of " +
             std::to_string(plain.arena_bytes() / 1024) + ", gradient off by " +
             number_text(std::round(1e6 * std::sqrt(error / size)) / 1e6);
  bench.row(row);
}

}  // namespace

void engine_scalars(Bench& bench) {
  conversion_rows<Float16>(bench, "fp16");
  conversion_rows<BFloat16>(bench, "bfloat16");
  tape_row<Float16>(bench, "fp16");
  tape_row<BFloat16>(bench, "bfloat16");
#if GRADWIRE_HAS_FLOAT128
  tape_row<Float128>(bench, "fp128");
#endif
  kept_row(bench);
}

}  // namespace gradwire::bench
