// A setting for each method of the list, in which the method sends all of its messages.
#pragma once

#include <string>
#include <vector>

#include "tests/algorithms/federation.h"
#include "tests/support/local_optimizers.h"

namespace gradwire::testing {

// Those whose runs do not depend on who answers first: all but the asynchronous ones, which have tests of
// their own.
inline std::vector<MethodInfo> synchronous_methods() {
  std::vector<MethodInfo> list;
  for (const MethodInfo& method : methods())
    if (!method.facts.asynchronous) list.push_back(method);
  return list;
}

// One compressor that the method accepts and that is random where possible.
inline std::string compressor_for(const Facts& facts) {
  switch (facts.takes) {
    case Takes::kIdentity: return "identity";
    case Takes::kUnbiased:
    case Takes::kEither: return "randk:k=3";
    case Takes::kContractive: return "topk:k=2";
  }
  return "identity";
}

// With batches where there are any, both directions compressed, and other local steps than gradient steps for
// some methods.
inline AlgorithmSpec spec_for(const MethodInfo& method) {
  AlgorithmSpec spec = spec_of(std::string(method.facts.name), compressor_for(method.facts), {}, "0.1");
  if (method.facts.stochastic) spec.batch = 2;
  if (method.facts.name == "fwd_grad") spec.parameters.emplace_back("directions", "1");
  for (const auto& option : optimizer_for(method.facts.name)) spec.parameters.push_back(option);
  for (const ParameterHelp& parameter : method.parameters)
    if (parameter.name == "compressor_down") spec.parameters.emplace_back(parameter.name, "topk:k=3");
  return spec;
}

}  // namespace gradwire::testing
