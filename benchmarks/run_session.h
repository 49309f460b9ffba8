// `gradwire run` in a process of its own with an experiment file, as users start it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace gradwire::bench {

struct RunFigures {
  double process_seconds = 0;  // from start to end of the process
  double seconds = 0;          // for rounds and evaluations, from the run's summary
  std::uint64_t peak_bytes = 0;
};

// Returns the path of the program `gradwire` in the folder `given`, or in the folder of this program if
// `given` is empty. Returns an empty path if the program is missing.
std::filesystem::path find_gradwire(const std::filesystem::path& given);

// Runs the experiment `toml`. Throws std::runtime_error with the last line that the program printed.
RunFigures run_alone(const std::filesystem::path& gradwire, const std::string& toml, unsigned threads = 1);

}  // namespace gradwire::bench
