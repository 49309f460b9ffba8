// [algorithm] of an experiment, as it stands in the file and as theory resolves it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compressors/quality.h"
#include "engine/smoothness.h"

namespace gradwire {

// Parameters that belong to one method, e.g. {"p", "0.1"}; values are spelled as in the file.
using Options = std::vector<std::pair<std::string, std::string>>;

struct AlgorithmSpec {
  std::string name;
  std::string compressor = "identity";
  std::string step_size;     // empty: the method's default; "theory"; "theory*8"; a number
  std::uint32_t batch = 0;   // samples per stochastic gradient; 0: full gradients
  double participation = 1;  // share of the clients asked per round
  Options parameters;
};

// What step-size theory is computed from.
struct Theory {
  std::uint32_t n = 0;
  std::size_t d = 0;
  Quality compressor;
  const Smoothness* smoothness = nullptr;  // null: not known
  std::uint64_t samples = 0;               // of all clients; 0: not known
  std::uint32_t rounds = 0;                // of the run; 0: not known
  std::uint32_t batch = 0;                 // of the spec; 0: full gradients
  double participation = 1;                // of the spec

  // m: samples of one client on average.
  double m() const { return samples == 0 || n == 0 ? 1 : static_cast<double>(samples) / n; }
};

}  // namespace gradwire
