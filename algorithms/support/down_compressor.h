// The parameter `compressor_down` of algorithms that compress the server's messages.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/core/spec.h"
#include "base/config_error.h"
#include "compressors/compressor.h"

namespace gradwire {

inline constexpr std::string_view kDownKey = "algorithm.compressor_down";

// Reads the parameter for vectors of length d. Throws ConfigError(algorithm.compressor_down).
Compressor parse_down(const std::string& spec, std::size_t d);

// Returns how to turn `spec` with the constants `q`, which is not contractive, into a contractive compressor:
// "; write scaled(qsgd), or use topk".
std::string contractive_advice(const std::string& spec, const CompressorConstants& q);

// Spells the compressor out for the run's dimension and returns its constants. Throws ConfigError if the
// compressor is not contractive.
CompressorConstants resolve_contractive_down(std::string& spec, const Theory& theory);

}  // namespace gradwire
