// For each algorithm of the list, settings with which it sends every kind of message that it has.
#pragma once

#include <string>
#include <vector>

#include "tests/algorithms/federation.h"
#include "tests/support/local_optimizers.h"

namespace gradwire::testing {

// The algorithms whose runs do not depend on the order of replies: all except the asynchronous ones, which
// have separate tests.
inline std::vector<AlgorithmInfo> synchronous_algorithms() {
  std::vector<AlgorithmInfo> list;
  for (const AlgorithmInfo& algorithm : all_algorithms())
    if (!algorithm.traits.asynchronous) list.push_back(algorithm);
  return list;
}

// Returns a compressor that the algorithm accepts, a random one if possible.
inline std::string compressor_for(const AlgorithmTraits& traits) {
  switch (traits.compressor_class) {
    case CompressorClass::kIdentity: return "identity";
    case CompressorClass::kUnbiased:
    case CompressorClass::kEither: return "randk:k=3";
    case CompressorClass::kContractive: return "topk:k=2";
  }
  return "identity";
}

// Returns a spec with batches and compressed broadcasts where supported. Some algorithms get a local
// optimizer other than SGD.
inline AlgorithmSpec spec_for(const AlgorithmInfo& algorithm) {
  AlgorithmSpec spec =
      spec_of(std::string(algorithm.traits.name), compressor_for(algorithm.traits), {}, "0.1");
  if (algorithm.traits.stochastic) spec.batch = 2;
  if (algorithm.traits.name == "fwd_grad") spec.parameters.emplace_back("directions", "1");
  for (const auto& option : optimizer_for(algorithm.traits.name)) spec.parameters.push_back(option);
  for (const ParameterHelp& parameter : algorithm.parameters)
    if (parameter.name == "compressor_down") spec.parameters.emplace_back(parameter.name, "topk:k=3");
  return spec;
}

}  // namespace gradwire::testing
