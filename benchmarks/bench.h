// `gradwire bench`: how fast the parts are, each beside something known that is measured in the same run
// (docs/benchmarks.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mpi/ranks.h"

namespace gradwire {

struct BenchOptions {
  bool json = false;          // one JSON object instead of a table
  bool small = false;         // tiny sizes, only to see that it runs; ignores targets
  std::uint32_t repeats = 0;  // of each measurement; 0: each benchmark's own number
  std::filesystem::path
      programs;                  // folder of gradwire-server and gradwire-client; empty: that of this program
  std::filesystem::path beside;  // folder of programs from outside to compare with; empty: none
  std::ostream* out = nullptr;   // null: std::cout
  std::shared_ptr<Ranks> ranks;  // that measure together what "cluster" measures; null: one process
};

// Runs the benchmarks of these names: groups ("rounds") or single ones ("rounds/a9a"); none: all. Returns the
// exit code: 0, 2 for an unknown name, 1 when a benchmark could not run. A missed target is reported and
// changes no exit code.
int run_bench(std::span<const std::string> names, const BenchOptions& options);

struct BenchHelp {
  std::string name, summary;
};
std::vector<BenchHelp> bench_help();

}  // namespace gradwire
