// [algorithm] of an experiment, as written in the file and as resolved by theory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/client_dataset.h"
#include "engine/smoothness/smoothness.h"
#include "gradwire/compressor.h"

namespace gradwire {

class CompressorInterface;  // compressors/custom_compressor.h

// Parameters of one algorithm, e.g. {"p", "0.1"}; values are spelled as in the file.
using Options = std::vector<std::pair<std::string, std::string>>;

struct AlgorithmSpec {
  std::string name;
  std::string compressor = "identity";
  std::string step_size;     // "theory", "theory*8" or a number; empty means the algorithm's default
  std::uint32_t batch = 0;   // samples per stochastic gradient; 0 means full gradients
  double participation = 1;  // share of the clients asked per round
  Options parameters;
  // The compressor of a program; `compressor` is then "custom:NAME". Null if the compressor is in the list.
  std::shared_ptr<const CompressorInterface> custom_compressor = nullptr;
};

// The constants of the problem that theory needs for parameters without a number. `smoothness` is the key of
// the first parameter that needs L_i and related constants; `convexity` the key of the first that needs mu.
// Empty if no parameter does.
struct NeededConstants {
  std::string smoothness, convexity;
  bool any() const { return !smoothness.empty() || !convexity.empty(); }
};

// The inputs of step-size theory. Views the objects that it was made from.
struct Theory {
  std::uint32_t n = 0;
  std::size_t d = 0;
  CompressorConstants compressor;
  const Smoothness* smoothness = nullptr;  // null if unknown
  std::uint64_t samples = 0;               // number of samples of all clients; 0 if unknown
  std::uint32_t rounds = 0;                // number of rounds; 0 if unknown
  std::span<const double> weights = {};    // w_i of the clients in f, shape (n), sum 1; empty if all are 1/n
  double quorum = 1;                       // share of the asked clients whose replies end a round
  DataReplication replication = {};        // replication of the data among clients
  bool has_equal_clients = true;           // f_i = f for all i
  std::uint32_t batch = 0;                 // AlgorithmSpec::batch; 0 means full gradients
  double participation = 1;                // AlgorithmSpec::participation

  // Returns m, the average number of samples of a client.
  double m() const { return samples == 0 || n == 0 ? 1 : static_cast<double>(samples) / n; }
  // Returns n max w_i >= 1. With equal weights, the mean of n independent errors has 1/n of their variance.
  // With unequal weights, the variance is larger by at most this factor.
  double skew() const {
    if (weights.empty()) return 1;
    return *std::max_element(weights.begin(), weights.end()) / (1 / static_cast<double>(n));
  }
};

}  // namespace gradwire
