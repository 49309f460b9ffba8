// Names of algorithms and compressors as papers write them, for labels.
#pragma once

#include <string>
#include <string_view>

namespace gradwire {

// Returns "EF21-SGDM" for "ef21_sgdm", "FedAvg" for "fedavg". Returns other names than those of
// all_algorithms() unchanged.
std::string algorithm_title(std::string_view name);

// Returns "Top-1%" for "topk:k=1%", "natural(Rand-5)" for "natural(randk:k=5)".
std::string compressor_title(std::string_view spec);

}  // namespace gradwire
