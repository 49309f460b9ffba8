#include "benchmarks/bench.h"

#include <algorithm>
#include <exception>
#include <iostream>
#include <string_view>

#include "base/suggest.h"
#include "benchmarks/benchmarks.h"

namespace gradwire {
namespace {

struct Benchmark {
  std::string_view name;  // "group/benchmark"
  std::string_view summary;
  void (*run)(bench::Bench&);

  std::string_view group() const { return name.substr(0, name.find('/')); }
};

constexpr Benchmark kBenchmarks[] = {
    {"engine/logistic", "a gradient of logistic regression, per nonzero of a9a", bench::engine_logistic},
    {"engine/mlp", "a gradient of a 64-32-10 network, per sample", bench::engine_mlp},
    {"engine/first_layer", "a gradient of softmax regression on images, dense and sparse",
     bench::engine_first_layer},
    {"engine/dense", "a gradient of large dense networks, compared with products by hand",
     bench::engine_dense},
    {"engine/tape", "value and gradient of small graphs on the tape", bench::engine_tape},
    {"engine/letters", "SGD steps of a next-letter network on names, one sample and 64",
     bench::engine_letters},
    {"engine/batches", "the same with batches that do not fill a microbatch, per sample",
     bench::engine_batches},
    {"engine/gpt", "SGD steps of a small GPT, 1 to 64 samples", bench::engine_gpt},
    {"engine/shapes", "gradients of a GPT by context and width, per floating-point operation",
     bench::engine_shapes},
    {"engine/precision", "fp64 against fp32", bench::engine_precision},
    {"engine/kernels", "the kernels of each instruction set that this processor has", bench::engine_kernels},
    {"engine/powers", "partial gradients, stops, hooks, clipping, directions, against the plain gradient",
     bench::engine_capabilities},
    {"engine/process", "time and memory of a whole process that links only the engine",
     bench::engine_process},
    {"engine/files", "saving and loading a few numbers, 5,000 times", bench::engine_files},
    {"engine/scalars", "16-bit numbers to and from fp32, and tapes of them and of fp128",
     bench::engine_scalars},
    {"papers/burtorch", "the tasks of BurTorch's paper, compared with its authors' figures and PyTorch",
     bench::papers_burtorch},
    {"compressors/compress", "each compressor, per element of a million", bench::compressors_compress},
    {"compressors/check", "a difference that is checked and compressed, against the difference alone",
     bench::compressors_check},
    {"compressors/decode", "adding payloads to a vector, per entry", bench::compressors_decode},
    {"compressors/add", "adding payloads to a vector, per element of the vector", bench::compressors_add},
    {"rounds/overhead", "everything but the gradient, per simulated client update", bench::rounds_overhead},
    {"rounds/a9a", "EF21 on a9a, 20 clients, against bare passes over the data", bench::rounds_a9a},
    {"rounds/mnist_shaped", "FedAvg, softmax regression 784 x 10, 1,000 clients", bench::rounds_mnist_shaped},
    {"rounds/threads", "EF21 on a9a with one and two threads", bench::rounds_threads},
    {"rounds/sums", "adding up dense replies along the tree, against the order of clients",
     bench::rounds_sums},
    {"rounds/events", "replies of 1,000 asynchronous clients on the virtual clock", bench::rounds_events},
    {"scale/start", "start and memory of a run of a million clients", bench::scale_start},
    {"scale/rounds", "rounds in which 1,000 of a million clients take part, and the memory of their states",
     bench::scale_rounds},
    {"scale/ef21", "rounds in which a million clients take part", bench::scale_ef21},
    {"scale/evaluation", "evaluations of a million clients", bench::scale_evaluation},
    {"scale/serial", "the serial share of a round of a million tiny clients", bench::scale_serial},
    {"scale/threads", "whole runs with 1, 2, 4, ... threads", bench::scale_threads},
    {"methods/quadratic", "EF21 Top-1 on tridiagonal quadratics against a bare loop",
     bench::algorithms_quadratic},
    {"methods/permk", "MARINA with PermK, 10,000 clients", bench::algorithms_permk},
    {"methods/fednl", "FedNL with RandSeqK, 142 clients", bench::algorithms_fednl},
    {"wire/codec", "messages to bytes and back", bench::wire_codec},
    {"wire/zstd", "the gain of zstd for each kind of payload", bench::wire_zstd},
    {"durability/commit", "the cost of a round that survives a crash of its server",
     bench::durability_commit},
    {"durability/record", "50 large replies as a record of the journal", bench::durability_record},
    {"cluster/sums", "adding up the replies of 1,000 clients over the ranks of mpirun", bench::cluster_sums},
    {"cluster/fedavg", "FedAvg, 784 x 10, 1,000 clients asked, over the ranks of mpirun",
     bench::cluster_fedavg},
    {"sweep/hundred", "a hundred runs of a sweep, from its file to its table", bench::sweep_hundred},
    {"plot/fifty", "a figure from 50 runs of 10,000 rounds", bench::plot_fifty},
    {"tcp/payloads", "a server's time for a reply of 1 MB, against bare Asio", bench::tcp_payloads},
    {"tcp/load",
     "a server's time for replies of 4 KB, and for empty ones, of 1,000 clients, against bare Asio",
     bench::tcp_load},
    {"tcp/connections", "memory of a server with 9,500 connections", bench::tcp_connections},
    {"tcp/restart", "10,000 clients that return to a restarted server", bench::tcp_restart},
    {"tcp/rounds", "rounds over loopback with 20 client processes", bench::tcp_rounds},
    {"tcp/overlap", "rounds over a slow link, with and without server.overlap", bench::tcp_overlap},
    {"tcp/memory", "peak memory of a client with 16 million parameters", bench::tcp_memory},
};

bool matches(const Benchmark& benchmark, std::string_view name) {
  return name == "all" || name == benchmark.name || name == benchmark.group();
}

// Returns the first name that is not known, or an empty string.
std::string_view unknown_name(std::span<const std::string> names) {
  for (const std::string& name : names) {
    const bool known = std::any_of(std::begin(kBenchmarks), std::end(kBenchmarks),
                                   [&](const auto& b) { return matches(b, name); });
    if (!known) return name;
  }
  return {};
}

}  // namespace

int run_bench(std::span<const std::string> names, const BenchOptions& options) {
  if (const std::string_view unknown = unknown_name(names); !unknown.empty()) {
    std::vector<std::string> known = {"all"};
    for (const Benchmark& b : kBenchmarks) {
      if (known.back() != b.group()) known.emplace_back(b.group());
      if (unknown.find('/') != unknown.npos) known.emplace_back(b.name);
    }
    std::cerr << "gradwire: unknown benchmark '" << unknown << "'" << suggest(unknown, known) << "\n";
    return 2;
  }
  bench::Bench bench(options, options.out != nullptr ? *options.out : std::cout);
  bench.begin();
  int exit_code = 0;
  for (const Benchmark& benchmark : kBenchmarks) {
    const auto wanted = [&](const std::string& name) { return matches(benchmark, name); };
    if (!names.empty() && std::none_of(names.begin(), names.end(), wanted)) continue;
    try {
      benchmark.run(bench);
    } catch (const std::exception& error) {
      std::cerr << benchmark.name << ": " << error.what() << "\n";
      exit_code = 1;
    }
  }
  bench.end();
  return exit_code;
}

std::vector<BenchHelp> bench_help() {
  std::vector<BenchHelp> help;
  for (const Benchmark& b : kBenchmarks) help.push_back({std::string(b.name), std::string(b.summary)});
  return help;
}

}  // namespace gradwire
