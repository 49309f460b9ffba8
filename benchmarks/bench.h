// `gradwire bench`: measures the speed of gradwire's parts. Each is compared with a reference that is
// measured in the same run (docs/reference/benchmarks.md).
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
  bool small = false;         // tiny sizes, only to check that it runs; targets are not judged
  std::uint32_t repeats = 0;  // number of repeats; 0 takes the default of each benchmark
  // Folder of gradwire-server and gradwire-client. If empty, the folder of this program.
  std::filesystem::path programs;
  std::filesystem::path other_programs;  // folder of other programs to compare with; empty if unused
  std::ostream* out = nullptr;           // destination of the output; std::cout if null
  std::shared_ptr<Ranks> ranks;          // ranks that measure "cluster" together; null for one process
};

// Runs the named benchmarks: groups ("rounds") or single ones ("rounds/a9a"). Runs all if there are no names.
// Returns the exit code: 0, 1 if a benchmark could not run, or 2 for an unknown name. A missed target is
// reported, but does not change the exit code.
int run_bench(std::span<const std::string> names, const BenchOptions& options);

struct BenchHelp {
  std::string name, summary;
};
std::vector<BenchHelp> bench_help();

}  // namespace gradwire
