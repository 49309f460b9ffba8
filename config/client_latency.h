// The speeds of the clients of a simulation: clients.latency of the experiment file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

// The time of one request on the virtual clock: scale * of_client * drawn, or scale * the number in the
// trace. With probability `failure` the client never answers.
struct ClientLatency {
  enum class OfClient : std::uint8_t { kEqual, kSqrt, kLinear };
  enum class Drawn : std::uint8_t { kNothing, kLogNormal, kPareto };
  double scale = 1;  // seconds
  OfClient of_client = OfClient::kEqual;
  Drawn drawn = Drawn::kNothing;
  double shape = 0;    // kLogNormal: standard deviation of the logarithm; kPareto: alpha, above 1
  double failure = 0;  // a probability, below 1
  std::string trace;   // path; empty if there is no trace
  std::vector<std::vector<double>> traces;  // by client; read_traces() sets it

  // Returns the seconds that client i = 0, 1, ... takes for `request_id`, its request number `request`,
  // counted from 0. The result is the same on all machines. It is infinite if the client never answers.
  double of(std::uint64_t seed, std::uint32_t i, std::uint64_t request_id, std::uint64_t request = 0) const;
};

// Reads "2.5", "sqrt", "linear", "lognormal:0.5", "pareto:1.5", "0.1*sqrt*pareto:1.5", "file:PATH",
// "1*file:PATH+fail:0.1"; "" is "1". Opens no file. Throws ConfigError(clients.latency).
ClientLatency parse_client_latency(std::string_view text);

// Reads a number of seconds above 0 and below 1e12, so that the sum of many is exact enough. Returns false if
// the text is not such a number.
bool read_seconds(std::string_view text, double& value);

// Reads the file `trace`, if there is one. Each of the n clients has a line of numbers above 0, with inf for
// a request that it never answers. Further lines are ignored. A relative path is relative to `base`. Throws
// ConfigError(clients.latency) with FILE:LINE.
void read_traces(ClientLatency& seconds, const std::filesystem::path& base, std::uint32_t n);

}  // namespace gradwire
