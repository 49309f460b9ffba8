// A server and its clients as processes on loopback, started as an operator would start them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gradwire::bench {

struct TcpFigures {
  double seconds = 0;                   // for all rounds, from the server's summary
  std::uint64_t server_peak_bytes = 0;  // largest resident memory (VmHWM); only with Watch::kMemory
  std::vector<std::uint64_t> client_peak_bytes;
};

// The measured quantity. kMemory slows the processes down, because their memory is read frequently.
enum class Watch : std::uint8_t { kTime, kMemory };

// Runs the experiment `toml` with `clients` client processes; client i has part i of the data `source`.
// `programs` is the folder of the two programs. `link_bytes_per_second` limits what each client sends; 0 sets
// no limit. Throws std::runtime_error with the last line that the failed process printed.
TcpFigures run_session(const std::filesystem::path& programs, const std::string& toml, std::uint32_t clients,
                       Watch watch, const std::string& source = "", double link_bytes_per_second = 0);

// Returns the folder of gradwire-server and gradwire-client: `given`, or the folder of this program if
// `given` is empty. Empty if one of them is missing.
std::filesystem::path find_programs(const std::filesystem::path& given);

}  // namespace gradwire::bench
