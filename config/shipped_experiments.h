// The experiments of experiments/configs, which are parts of the programs.
#pragma once

#include <span>
#include <string_view>

namespace gradwire {

struct ShippedExperiment {
  std::string_view name;  // the name of the file without .toml
  std::string_view toml;
};

// Returns all shipped experiments in the order of their names. The build generates the definition.
std::span<const ShippedExperiment> shipped_experiments();

// Returns the shipped experiment of this name, or null.
const ShippedExperiment* find_shipped(std::string_view name);

}  // namespace gradwire
