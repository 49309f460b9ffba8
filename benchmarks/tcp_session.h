// A server and its clients as processes of their own on loopback, started as an operator would.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gradwire::bench {

struct TcpFigures {
  double seconds = 0;                   // of all rounds, by the server's summary
  std::uint64_t server_peak_bytes = 0;  // largest resident memory (VmHWM); only with Watch::kMemory
  std::vector<std::uint64_t> client_peak_bytes;
};

// Reading the memory of all processes frequently slows them down.
enum class Watch : std::uint8_t { kTime, kMemory };

// Runs the experiment `toml` with `clients` client processes, client i with part i of the data `source`.
// `programs`: folder of the two programs. link_bytes_per_second: of each client to the server; 0: as fast as
// loopback is. Throws std::runtime_error with the last line that the process at fault printed.
TcpFigures run_session(const std::filesystem::path& programs, const std::string& toml, std::uint32_t clients,
                       Watch watch, const std::string& source = "", double link_bytes_per_second = 0);

// The folder of gradwire-server and gradwire-client, `given` or that of this program; empty when they are not
// there.
std::filesystem::path find_programs(const std::filesystem::path& given);

}  // namespace gradwire::bench
