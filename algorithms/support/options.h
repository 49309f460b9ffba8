// From an AlgorithmSpec's texts to a method's Params and back, by the method's list of fields.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/support/params.h"
#include "algorithms/support/spec.h"
#include "base/config_error.h"
#include "base/nearest.h"

namespace gradwire {

inline std::string algorithm_key(std::string_view field) { return "algorithm." + std::string(field); }

// Throws ConfigError for an unknown key or an unreadable value.
template <class Params>
Params parse_params(const AlgorithmSpec& spec) {
  Params params;
  std::vector<std::string> known;
  Params::fields(params, [&](std::string_view field, auto& member, std::string_view) {
    known.emplace_back(field);
    if (field == "step_size") {
      if (!spec.step_size.empty()) read_parameter(spec.step_size, algorithm_key(field), member);
      return;
    }
    for (const auto& [key, text] : spec.parameters)
      if (key == field) read_parameter(text, algorithm_key(field), member);
  });
  known.insert(known.end(), {"name", "compressor", "batch"});
  for (const auto& [key, text] : spec.parameters)
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw ConfigError(algorithm_key(key),
                        spec.name + " has no parameter '" + key + "'" + suggest(key, known));
  return params;
}

// Writes all resolved params into the spec.
template <class Params>
void store_params(const Params& params, AlgorithmSpec& spec) {
  spec.parameters.clear();
  Params::fields(params, [&](std::string_view field, const auto& member, std::string_view) {
    if (field == "step_size") {
      spec.step_size = write_parameter(member);
    } else {
      spec.parameters.emplace_back(field, write_parameter(member));
    }
  });
}

}  // namespace gradwire
