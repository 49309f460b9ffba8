#include "gradwire/list.h"

#include <utility>

#include "algorithms/algorithms.h"
#include "compressors/compressor.h"
#include "config/experiment_spec.h"
#include "engine/problems/problem.h"

namespace gradwire {
namespace {

std::string class_name(CompressorClass compressors) {
  switch (compressors) {
    case CompressorClass::kIdentity: return "none";
    case CompressorClass::kUnbiased: return "unbiased";
    case CompressorClass::kContractive: return "contractive";
    case CompressorClass::kEither: return "all";
  }
  return "";
}

}  // namespace

std::vector<AlgorithmEntry> list_algorithms() {
  std::vector<AlgorithmEntry> all;
  for (const AlgorithmInfo& algorithm : all_algorithms()) {
    const AlgorithmTraits& traits = algorithm.traits;
    AlgorithmEntry entry{.name = std::string(traits.name),
                         .summary = std::string(traits.summary),
                         .reference = std::string(traits.reference),
                         .compressors = class_name(traits.compressor_class),
                         .participation = traits.partial,
                         .batch = traits.stochastic,
                         .asynchronous = traits.asynchronous};
    for (const ParameterHelp& parameter : algorithm.parameters)
      entry.parameters.push_back({parameter.name, "", parameter.fallback, parameter.meaning});
    all.push_back(std::move(entry));
  }
  return all;
}

std::vector<CompressorEntry> list_compressors() {
  std::vector<CompressorEntry> all;
  for (CompressorHelp& help : compressor_help())
    all.push_back({std::move(help.name), std::move(help.parameters), std::move(help.summary),
                   std::move(help.constants)});
  return all;
}

std::vector<ProblemEntry> list_problems() {
  std::vector<ProblemEntry> all;
  for (const ProblemInfo& kind : problem_types())
    all.push_back({.name = std::string(kind.name),
                   .summary = std::string(kind.summary),
                   .reads = std::string(name_of(kind.data)),
                   .exact_constants = kind.has_smoothness});
  return all;
}

std::vector<KeyEntry> list_keys() {
  std::vector<KeyEntry> all;
  for (KeyHelp& help : experiment_keys())
    all.push_back(
        {std::move(help.key), std::move(help.type), std::move(help.fallback), std::move(help.meaning)});
  return all;
}

}  // namespace gradwire
