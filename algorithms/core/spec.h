// [algorithm] of an experiment, as it stands in the file and as theory resolves it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compressors/compressor_constants.h"
#include "engine/data/client_dataset.h"
#include "engine/smoothness/smoothness.h"

namespace gradwire {

// Parameters that belong to one algorithm, e.g. {"p", "0.1"}; values are spelled as in the file.
using Options = std::vector<std::pair<std::string, std::string>>;

struct AlgorithmSpec {
  std::string name;
  std::string compressor = "identity";
  std::string step_size;     // empty: the algorithm's default; "theory"; "theory*8"; a number
  std::uint32_t batch = 0;   // samples per stochastic gradient; 0: full gradients
  double participation = 1;  // share of the clients asked per round
  Options parameters;
};

// Which constants of the problem the parameters need that are left to theory: the key of the first parameter
// that needs the smoothness of the f_i (L_i and related constants), or the strong convexity. Empty: no
// parameter does.
struct NeededConstants {
  std::string smoothness, convexity;
  bool any() const { return !smoothness.empty() || !convexity.empty(); }
};

// The inputs of step-size theory. Holds views of the objects that it was made from.
struct Theory {
  std::uint32_t n = 0;
  std::size_t d = 0;
  CompressorConstants compressor;
  const Smoothness* smoothness = nullptr;  // null: not known
  std::uint64_t samples = 0;               // of all clients; 0: not known
  std::uint32_t rounds = 0;                // of the run; 0: not known
  std::span<const double> weights = {};    // w_i of the clients in f, shape (n), sum 1; empty: 1/n each
  double quorum = 1;                       // share of the asked clients whose replies end a round
  DataReplication replication = {};        // of the parts of the data
  bool has_equal_clients = true;           // f_i = f for all i
  std::uint32_t batch = 0;                 // of the spec; 0: full gradients
  double participation = 1;                // of the spec

  // m: samples of one client on average.
  double m() const { return samples == 0 || n == 0 ? 1 : static_cast<double>(samples) / n; }
  // n max w_i >= 1: the factor that unequal weights cost where independent errors of n clients would average
  // to 1/n.
  double skew() const {
    if (weights.empty()) return 1;
    return *std::max_element(weights.begin(), weights.end()) / (1 / static_cast<double>(n));
  }
};

}  // namespace gradwire
