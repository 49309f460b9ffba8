// `gradwire run` as a user has it: an experiment file, a process of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace gradwire::bench {

struct RunFigures {
  double process_seconds = 0;  // from the start of the process to its end
  double seconds = 0;          // of rounds and evaluations, by the run's summary
  std::uint64_t peak_bytes = 0;
};

// The program `gradwire` in the folder `given`, or else beside this one; empty when it is not there.
std::filesystem::path find_gradwire(const std::filesystem::path& given);

// Runs the experiment `toml`. Throws std::runtime_error with the last line that the program printed.
RunFigures run_alone(const std::filesystem::path& gradwire, const std::string& toml, unsigned threads = 1);

}  // namespace gradwire::bench
