// Benchmarks of the value and gradient of two small graphs on the scalar tapes. The times include the leaves,
// the recording, the backward pass, reading the results and rewinding.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/benchmarks.h"
#include "benchmarks/graph_times.h"
#include "engine/tape/eager_tape.h"
#include "engine/tape/fixed_tape.h"

namespace gradwire::bench {
namespace {

struct Derivatives {
  double g = 0, da = 0, db = 0;
};

// Hides a value from the optimiser, which can then neither evaluate nor remove the code that uses it.
inline double hidden(double value) {
  asm volatile("" : "+m"(value));
  return value;
}
inline void use(const Derivatives& result) { asm volatile("" : : "r"(&result) : "memory"); }
inline double relu(double a) { return a > 0 ? a : 0; }

// g = (a + b - (a b + b^3))^2 / 2: ten nodes, including constants.
struct Tiny {
  static constexpr const char* kName = "tiny";
  static constexpr double kA = -41, kB = 2;
  static constexpr std::size_t kNodes = 10;
  struct TimeTargets {
    double eager = 32, lanes = 9, fixed = 4.5, chain = 16;
  };

  template <class V>
  static V graph(const V& a, const V& b) {
    const V c = a + b;
    const V d = a * b + pow3(b);
    return sqr(c - d) / 2;
  }

  static Derivatives by_hand(double a, double b) {
    const double square = b * b, e = a + b - (a * b + square * b);
    return {e * e * 0.5, e - e * b, e - e * (a + 3 * square)};
  }

  // Writes the value and the gradient of every node to memory, as a tape must.
  static Derivatives stored(double a, double b, double* v, double* d) {
    v[0] = a, v[1] = b;
    v[2] = a + b;
    v[3] = a * b;
    v[4] = b * b * b;
    v[5] = v[3] + v[4];
    v[6] = v[2] - v[5];
    v[7] = v[6] * v[6];
    v[8] = 2;
    v[9] = v[7] / v[8];
    d[9] = 1;
    d[8] = -v[7] * 0.25;
    d[7] = 0.5;
    d[6] = d[7] * 2 * v[6];
    d[5] = d[4] = d[3] = -d[6];
    d[2] = d[6];
    d[0] = d[2] + d[3] * b;
    d[1] = d[2] + d[3] * a + d[4] * 3 * b * b;
    return {v[9], d[0], d[1]};
  }
};

// The example of micrograd: 32 nodes, including constants.
struct Small {
  static constexpr const char* kName = "small";
  static constexpr double kA = -4, kB = 2;
  static constexpr std::size_t kNodes = 32;
  struct TimeTargets {
    double eager = 90, lanes = 22, fixed = 16, chain = 40;
  };

  template <class V>
  static V graph(const V& a, const V& b) {
    V c = a + b;
    V d = a * b + pow3(b);
    c += c + 1;
    c += 1 + c - a;
    d += d * 2 + relu(b + a);
    d += 3 * d + relu(b - a);
    const V f = sqr(c - d);
    return f / 2 + 10 / f;
  }

  static Derivatives by_hand(double a, double b) {
    const double sum = a + b > 0, difference = b - a > 0;  // slopes of the two relu
    const double d1 = 3 * (a * b + b * b * b) + bench::relu(b + a);
    const double e = 2 * (2 * (a + b) + 1) + 1 - a - (4 * d1 + bench::relu(b - a));
    const double f = e * e, inverse = 1 / f, slope = e - 20 * inverse * inverse * e;
    const double e_a = 3 - (4 * (3 * b + sum) - difference);
    const double e_b = 4 - (4 * (3 * (a + 3 * b * b) + sum) + difference);
    return {f * 0.5 + 10 * inverse, slope * e_a, slope * e_b};
  }

  static Derivatives stored(double a, double b, double* v, double* d) {
    v[0] = a, v[1] = b;
    v[2] = a + b;  // c
    v[3] = a * b;
    v[4] = b * b * b;
    v[5] = v[3] + v[4];  // d
    v[6] = 1, v[7] = v[2] + 1;
    v[8] = v[2] + v[7];  // c
    v[9] = 1, v[10] = 1 + v[8];
    v[11] = v[10] - a;
    v[12] = v[8] + v[11];  // c
    v[13] = 2, v[14] = v[5] * 2;
    v[15] = b + a;
    v[16] = bench::relu(v[15]);
    v[17] = v[14] + v[16];
    v[18] = v[5] + v[17];  // d
    v[19] = 3, v[20] = 3 * v[18];
    v[21] = b - a;
    v[22] = bench::relu(v[21]);
    v[23] = v[20] + v[22];
    v[24] = v[18] + v[23];  // d
    v[25] = v[12] - v[24];  // e
    v[26] = v[25] * v[25];  // f
    v[27] = 2, v[28] = v[26] / 2;
    v[29] = 10, v[30] = 10 / v[26];
    v[31] = v[28] + v[30];
    const double inverse = v[30] * 0.1;
    d[31] = d[30] = d[28] = 1;
    d[29] = inverse;
    d[27] = -v[26] * 0.25;
    d[26] = 0.5 - v[30] * inverse;
    d[25] = d[26] * 2 * v[25];
    d[24] = d[23] = d[22] = d[20] = -d[25];
    d[21] = v[21] > 0 ? d[22] : 0;
    d[19] = d[20] * v[18];
    d[18] = d[17] = d[16] = d[14] = 4 * d[24];
    d[15] = v[15] > 0 ? d[16] : 0;
    d[13] = d[14] * v[5];
    d[5] = d[4] = d[3] = 3 * d[18];
    d[12] = d[11] = d[10] = d[9] = d[25];
    d[8] = d[7] = d[6] = 2 * d[12];
    d[2] = 2 * d[8];
    d[0] = d[2] - d[11] + d[3] * b + d[15] - d[21];
    d[1] = d[2] + d[3] * a + d[4] * 3 * b * b + d[15] + d[21];
    return {v[31], d[0], d[1]};
  }
};

// Each timed loop is a separate function. Inside a longer function, the surrounding code would change the
// compiler's choices.

template <class Graph, class T>
[[gnu::noinline]] Derivatives eager(EagerTape<T>& tape, std::uint32_t calls) {
  Derivatives result;
  const auto start = tape.checkpoint();
  for (std::uint32_t k = 0; k < calls; ++k) {
    const Var a = tape.variable(T(hidden(Graph::kA))), b = tape.variable(T(hidden(Graph::kB)));
    const Var g = Graph::graph(a, b);
    backward(g);
    const T value = g.value(), da = a.grad(), db = b.grad();
    if constexpr (std::is_arithmetic_v<T>) {
      result = {value, da, db};
    } else {
      const std::size_t last = T::size() - 1;
      asm volatile("" : : "m"(value), "m"(da), "m"(db));
      result = {value[0], da[last], db[last]};
    }
    use(result);
    tape.rewind(start);
  }
  return result;
}

// Computes one gradient of f after another. In a chain, each point depends on the previous gradient.
template <class Graph, bool kChain, class F>
[[gnu::noinline]] Derivatives repeat(std::uint32_t calls, F f) {
  Derivatives result;
  double zero = 0;
  asm volatile("" : "+x"(zero));
  for (std::uint32_t k = 0; k < calls; ++k) {
    double a = Graph::kA, b = Graph::kB;
    if constexpr (kChain) {
      a += zero * result.da;
      b += zero * result.db;
    }
    asm volatile("" : "+x"(a), "+x"(b));
    result = f(a, b);
    asm volatile("" : : "x"(result.g), "x"(result.da), "x"(result.db));
  }
  return result;
}

template <class Graph>
Derivatives fixed(double a, double b) {
  const auto graph = [](const auto& x, const auto& y) { return Graph::graph(x, y); };
  const auto [value, gradient] = value_and_gradient<Graph::kNodes>(graph, a, b);
  return {value, gradient[0], gradient[1]};
}

template <class Graph>
Derivatives stored(double a, double b) {
  static thread_local double value[Graph::kNodes], gradient[Graph::kNodes];
  const Derivatives result = Graph::stored(a, b, value, gradient);
  asm volatile("" : : "r"(value), "r"(gradient) : "memory");
  return result;
}

template <class Graph>
GraphTimes times_of(Bench& bench) {
  const std::uint32_t calls = bench.size(100000u, 100u);
  EagerTape<double> tape;
  // tape_size() would call the graph a second time and keep the compiler from inlining the timed call.
  const TapeSize size{.scalars = Graph::kNodes};
  std::vector<std::byte> buffer(EagerTape<double>::bytes(size));
  EagerTape<double> in_buffer(size, buffer);
  EagerTape<Lanes<double, 8>> lanes;
  const Derivatives expected = Graph::by_hand(Graph::kA, Graph::kB);
  const auto timed = [&](auto run) {
    return [&, run] {
      Derivatives d;
      const double seconds = seconds_of([&] { d = run(); });
      const auto differ = [](double p, double q) { return std::abs(p - q) > 1e-9 * std::abs(q); };
      if (differ(d.g, expected.g) || differ(d.da, expected.da) || differ(d.db, expected.db))
        throw std::logic_error(std::string("the formula and a tape disagree on the graph ") + Graph::kName);
      bench.keep(d.g + d.da + d.db);
      return seconds;
    };
  };
  const auto series =
      interleave(bench.repeats(31), {timed([&] { return eager<Graph>(tape, calls); }),
                                     timed([&] { return eager<Graph>(lanes, calls / 8); }),
                                     timed([&] { return repeat<Graph, false>(calls, fixed<Graph>); }),
                                     timed([&] { return repeat<Graph, true>(calls, fixed<Graph>); }),
                                     timed([&] { return repeat<Graph, false>(calls, stored<Graph>); }),
                                     timed([&] { return repeat<Graph, false>(calls, Graph::by_hand); }),
                                     timed([&] { return repeat<Graph, true>(calls, Graph::by_hand); }),
                                     timed([&] { return eager<Graph>(in_buffer, calls); })});
  const auto each = [&](std::size_t of, std::uint32_t graphs) { return series[of].times(1e9 / graphs); };
  return {each(0, calls), each(7, calls), each(1, calls / 8 * 8), each(2, calls),
          each(3, calls), each(4, calls), each(5, calls),         each(6, calls)};
}

template <class Graph>
void rows_of(Bench& bench) {
  constexpr typename Graph::TimeTargets kTargets;
  const GraphTimes times = times_of<Graph>(bench);
  const auto row = [&](const std::string& kind, const Series& value, Target target, const std::string& what,
                       const Series& rival, const std::string& note) {
    Row row;
    row.name = std::string("engine/tape ") + Graph::kName + " " + kind;
    row.value = value;
    row.unit = "ns/graph";
    row.versus = {what, rival};
    row.target = target;
    row.note = note;
    bench.row(row);
  };
  const auto at_most = [](double ns) { return Target{Target::Of::kValue, ns}; };
  row("eager", times.eager, at_most(kTargets.eager), "by hand, all nodes stored", times.stored,
      "fp64; recorded, computed and differentiated again each time");
  row("in a buffer", times.in_buffer, {Target::Of::kRatio, 1.02}, "eager, with its own memory", times.eager,
      "fp64; all memory is one buffer of the caller, without allocations");
  row("8 lanes", times.lanes, at_most(kTargets.lanes), "by hand, in registers", times.by_hand,
      "fp64; eight points at once");
  row("fixed", times.fixed, at_most(kTargets.fixed), "by hand, in registers", times.by_hand,
      "fp64; one point after another");
  row("fixed chain", times.fixed_chain, at_most(kTargets.chain), "by hand, in a chain", times.by_hand_chain,
      "fp64; each point waits for the previous one");
}

}  // namespace

GraphTimes tiny_times(Bench& bench) { return times_of<Tiny>(bench); }
GraphTimes small_times(Bench& bench) { return times_of<Small>(bench); }

void engine_tape(Bench& bench) {
  rows_of<Tiny>(bench);
  rows_of<Small>(bench);
}

}  // namespace gradwire::bench
