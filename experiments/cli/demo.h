// gradwire without arguments: compares a compressed algorithm with an uncompressed one. The data is part of
// the program.
#pragma once

#include <atomic>
#include <filesystem>

#include "experiments/cli/run/progress.h"
#include "report/logger.h"

namespace gradwire {

// Writes `results`/demo-gd, `results`/demo-ef21 and `results`/demo.svg; prints a table. Returns the exit
// code.
int run_demo(const std::filesystem::path& results, Verbosity verbosity, Logger& logger,
             const std::atomic<bool>& stop);

}  // namespace gradwire
