// The speeds of the clients of a simulation: clients.seconds of the experiment file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

// What one request takes a client on the virtual clock: scale * of_client * drawn, or, from a trace, scale *
// what is written there; with probability `failure` it takes for ever.
struct ClientSeconds {
  enum class OfClient : std::uint8_t { kEqual, kSqrt, kLinear };
  enum class Drawn : std::uint8_t { kNothing, kLogNormal, kPareto };
  double scale = 1;  // seconds
  OfClient of_client = OfClient::kEqual;
  Drawn drawn = Drawn::kNothing;
  double shape = 0;    // kLogNormal: standard deviation of the logarithm; kPareto: alpha, above 1
  double failure = 0;  // a probability, below 1
  std::string trace;   // path; empty: none
  std::vector<std::vector<double>> traces;  // by client; of read_traces()

  // Of client i = 0, 1, ... for the request of a request id, which is the client's `request`-th, from 0;
  // equal on all machines. Infinity: it never answers.
  double of(std::uint64_t seed, std::uint32_t i, std::uint64_t request_id, std::uint64_t request = 0) const;
};

// Reads "2.5", "sqrt", "linear", "lognormal:0.5", "pareto:1.5", "0.1*sqrt*pareto:1.5", "file:PATH",
// "1*file:PATH+fail:0.1"; "" is "1". Opens no file. Throws ConfigError(clients.seconds).
ClientSeconds parse_client_seconds(std::string_view text);

// Reads the file of `trace`, where there is one: a line of numbers above 0 (or inf: it never answers) for
// each of n clients; more lines are left alone. `base`: of a relative path. Throws
// ConfigError(clients.seconds) with FILE:LINE.
void read_traces(ClientSeconds& seconds, const std::filesystem::path& base, std::uint32_t n);

}  // namespace gradwire
