// Benchmarks of server and client processes on loopback.
#include <atomic>
#include <fstream>

#include "benchmarks/benchmarks.h"
#include "benchmarks/tasks.h"
#include "benchmarks/tcp_session.h"
#include "experiments/cli/support/scratch_folder.h"
#include "simulation/simulate.h"

namespace gradwire::bench {
namespace {

constexpr const char* kNoPrograms = "gradwire-server and gradwire-client are not next to this program";

std::string rounds_experiment(std::uint32_t clients, std::uint32_t rounds) {
  constexpr std::uint32_t kSamplesEach = 100;
  return R"(name = "bench"
[problem]
kind = "logistic"
data = "synthetic"
dim = 123
classes = 2
samples = )" +
         std::to_string(kSamplesEach * clients) + R"(
[clients]
count = )" +
         std::to_string(clients) + R"(
[algorithm]
name = "ef21"
compressor = "topk:k=1"
step_size = 0.01
[run]
evaluate_every = 0
rounds = )" +
         std::to_string(rounds) + "\n";
}

// Returns an experiment that starts from a normal x0, so that the messages do not contain zeros.
std::string memory_experiment(std::uint32_t clients, std::size_t d, std::uint32_t rounds,
                              const std::string& zstd) {
  return R"(name = "bench"
precision = "fp32"
[problem]
kind = "quadratic"
dim = )" +
         std::to_string(d) +
         R"(
[clients]
count = )" +
         std::to_string(clients) + R"(
[algorithm]
name = "gd"
step_size = 0.1
[run]
x0 = "normal"
evaluate_every = 0
rounds = )" +
         std::to_string(rounds) + R"(
[server]
zstd = ")" +
         zstd + "\"\n";
}

std::string overlap_experiment(const std::filesystem::path& text, const std::string& algorithm,
                               std::uint32_t width, std::uint32_t rounds, bool overlap) {
  return R"(name = "bench"
precision = "fp32"
[problem]
kind = "gpt"
data = "text:)" +
         text.string() + R"("
context = 256
width = )" +
         std::to_string(width) + R"(
[clients]
count = 1
[run]
evaluate_every = 0
rounds = )" +
         std::to_string(rounds) + R"(
[server]
zstd = "off"
overlap = )" +
         (overlap ? "true" : "false") + R"(
[algorithm]
step_size = 0.01
batch = 1
)" + algorithm;
}

void memory_rows(Bench& bench, const std::filesystem::path& programs, const std::string& zstd) {
  const std::size_t d = bench.size<std::size_t>(16000000, 10000);
  constexpr std::uint32_t kClients = 2, kRounds = 5;
  const std::string toml = memory_experiment(kClients, d, kRounds, zstd);
  Series client, server, needed;
  needed.add(2 * static_cast<double>(d * sizeof(float)) / 1e6);
  double seconds = 0;
  for (std::uint32_t r = 0; r < bench.repeats(2); ++r) {
    const TcpFigures figures = run_session(programs, toml, kClients, Watch::kMemory);
    for (const std::uint64_t bytes : figures.client_peak_bytes) client.add(static_cast<double>(bytes) / 1e6);
    server.add(static_cast<double>(figures.server_peak_bytes) / 1e6);
    seconds = figures.seconds;
  }
  Row row;
  row.name = "tcp/memory client, zstd " + zstd;
  row.value = client;
  row.unit = "MB";
  row.versus = {"parameters + gradient", needed};
  row.target = {Target::Of::kRatio, 2.2};
  row.note = "peak resident memory; gd, identity, fp32, d = " + std::to_string(d) + ", " +
             std::to_string(kClients) + " clients, " + std::to_string(kRounds) + " rounds in " +
             std::to_string(seconds) + " s";
  bench.row(row);
  row.name = "tcp/memory server, zstd " + zstd;
  row.value = server;
  row.target = {Target::Of::kRatio, 3};
  row.note.clear();
  bench.row(row);
}

}  // namespace

void tcp_rounds(Bench& bench) {
  const std::filesystem::path programs = find_programs(bench.options().programs);
  if (programs.empty()) return bench.skip("tcp/rounds", kNoPrograms);
  const std::uint32_t clients = bench.size(20u, 3u), rounds = bench.size(2000u, 20u);
  const std::string toml = rounds_experiment(clients, rounds);
  const Prepared prepared = prepare(parse_experiment(toml, "bench.toml"));
  const std::atomic<bool> stop{false};
  const auto series = interleave(bench.repeats(5),
                                 {[&] { return run_session(programs, toml, clients, Watch::kTime).seconds; },
                                  [&] {
                                    const RunResult result =
                                        simulate(prepared, /*encoded=*/false, /*threads=*/1, {}, stop);
                                    bench.keep(result.model[0]);
                                    return result.seconds;
                                  }});
  Row row;
  row.name = "tcp/rounds";
  row.value = series[0].times(1e3 / rounds);
  row.unit = "ms/round";
  row.versus = {"the same run in memory", series[1].times(1e3 / rounds)};
  row.target = {Target::Of::kValue, 2};
  row.note = std::to_string(static_cast<int>(1e3 / row.value.median())) + " rounds/s; ef21, topk:k=1, " +
             std::to_string(clients) + " client processes on loopback, d = 123, 100 samples each, " +
             std::to_string(rounds) + " rounds, no evaluation";
  bench.row(row);
}

// Measures a single client. On a machine with few cores, several clients would wait for each other and not
// for the link.
void tcp_overlap(Bench& bench) {
  const std::filesystem::path programs = find_programs(bench.options().programs);
  if (programs.empty()) return bench.skip("tcp/overlap", kNoPrograms);
  const ScratchFolder folder;
  const std::filesystem::path text = folder.path() / "text.txt";
  std::ofstream(text) << shakespeare_text(bench.small()).text;
  const std::uint32_t width = bench.size(192u, 48u), rounds = bench.size(8u, 3u);
  const double bytes = 4e6 * bench.size(2.7, 0.2);     // approximate size of the parameters
  const double reply_seconds = bench.size(0.5, 0.05);  // time of a reply on the link
  for (const std::string compressor : {"identity", "randseqk:k=50%"}) {
    const std::string algorithm = "name = \"dcgd\"\ncompressor = \"" + compressor + "\"\n";
    const double link = bytes / (compressor == "identity" ? reply_seconds : 2 * reply_seconds);
    const auto seconds = [&](bool overlap) {
      return run_session(programs, overlap_experiment(text, algorithm, width, rounds, overlap), 1,
                         Watch::kTime, "text:" + text.string(), link)
          .seconds;
    };
    const auto series =
        interleave(bench.repeats(3), {[&] { return seconds(true); }, [&] { return seconds(false); }});
    Row row;
    row.name = "tcp/overlap " + compressor;
    row.value = series[0].times(1e3 / rounds);
    row.unit = "ms/round";
    row.versus = {"without overlap", series[1].times(1e3 / rounds)};
    row.target = {Target::Of::kRatio, 1};
    row.note = "gpt, 6 layers, width " + std::to_string(width) +
               ", context 256, batch 1, one client on a link of " +
               std::to_string(static_cast<int>(link / 1e6)) + " MB/s";
    bench.row(row);
  }
}

void tcp_memory(Bench& bench) {
  const std::filesystem::path programs = find_programs(bench.options().programs);
  if (programs.empty()) return bench.skip("tcp/memory", kNoPrograms);
  for (const char* zstd : {"auto", "off"}) memory_rows(bench, programs, zstd);
}

}  // namespace gradwire::bench
