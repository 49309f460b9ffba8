#include "experiments/cli/support/fitting_algorithm.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "base/config_error.h"

namespace gradwire {
namespace {

constexpr const char* kUsualShare = "k=1%";

bool covers(const AlgorithmTraits& algorithm, const Compressor& compressor, std::size_t length,
            std::uint32_t n) {
  if (std::holds_alternative<RankR>(compressor) && !algorithm.needs_hessian) return false;
  if (std::holds_alternative<PermK>(compressor) && algorithm.asynchronous) return false;
  const CompressorConstants of = constants(compressor, length, n);
  switch (algorithm.compressor_class) {
    case CompressorClass::kIdentity: return is_identity(compressor);
    case CompressorClass::kUnbiased: return of.unbiased;
    case CompressorClass::kContractive: return of.alpha > 0;
    case CompressorClass::kEither: return of.unbiased || of.alpha > 0;
  }
  return false;
}

}  // namespace

std::string fitting_compressor(const AlgorithmTraits& algorithm, const std::string& wished, std::size_t d,
                               std::uint32_t n) {
  const std::string none = "identity";
  if (algorithm.compressor_class == CompressorClass::kIdentity) return none;
  const std::size_t length = compressed_dim(algorithm.name, d);
  const Compressor compressor = parse_compressor(wished, length, n);
  if (!is_identity(compressor) && covers(algorithm, compressor, length, n)) return wished;
  // Counts such as "k=1%" stay as the user wrote them.
  const std::size_t at = wished.find("k=");
  std::string count = kUsualShare;
  if (wished.find('(') == std::string::npos && at != std::string::npos && at > 0 && wished[at - 1] == ':') {
    count = wished.substr(at, wished.find(',', at) - at);
  } else if (const double sent = constants(compressor, length, n).zeta;
             sent > 0 && sent < static_cast<double>(length)) {
    count = "k=" + std::to_string(std::max<long>(1, std::lround(sent)));
  }
  return (algorithm.compressor_class == CompressorClass::kUnbiased ? "randk:" : "topk:") + count;
}

std::string why_compressor(const AlgorithmTraits& algorithm, const std::string& wished,
                           const std::string& chosen) {
  if (algorithm.compressor_class == CompressorClass::kIdentity) return "compresses nothing";
  if (chosen == wished) return "the experiment's compressor";
  if (chosen == "identity") return "the theorem of its step covers no compressor";
  if (wished == "identity") return "the experiment names no compressor";
  switch (algorithm.compressor_class) {
    case CompressorClass::kUnbiased: return wished + " is biased";
    case CompressorClass::kContractive: return wished + " is not contractive";
    default: return wished + " does not fit";
  }
}

std::string theory_step_key(const AlgorithmInfo& algorithm) {
  for (const ParameterHelp& help : algorithm.parameters)
    if (help.name.ends_with("step_size") && help.fallback.starts_with("theory")) return help.name;
  return "";
}

bool has_theory_step(const AlgorithmInfo& algorithm) { return theory_step_key(algorithm) == "step_size"; }

AlgorithmSpec fitting_spec(const AlgorithmInfo& algorithm, const AlgorithmSpec& own, std::size_t d,
                           std::uint32_t n) {
  AlgorithmSpec spec;
  spec.name = algorithm.traits.name;
  const bool is_own = spec.name == own.name;
  spec.compressor = is_own && own.compressor != "identity"
                        ? own.compressor
                        : fitting_compressor(algorithm.traits, own.compressor, d, n);
  if (has_theory_step(algorithm))
    spec.step_size = "theory";
  else if (is_own)
    spec.step_size = own.step_size;
  if (algorithm.traits.stochastic) spec.batch = own.batch;
  if (algorithm.traits.partial) spec.participation = own.participation;
  if (is_own) spec.parameters = own.parameters;
  return spec;
}

}  // namespace gradwire
