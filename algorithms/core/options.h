// Conversion between the texts of an AlgorithmSpec and an algorithm's Params, by the algorithm's list of
// fields.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "algorithms/core/params.h"
#include "algorithms/core/spec.h"
#include "base/field.h"

namespace gradwire {

// Reads the parameters into `fields`. Throws ConfigError for an unknown key or an invalid value.
void read_parameters(const AlgorithmSpec& spec, std::span<const Field> fields);
// Writes all fields into the spec.
void write_parameters(std::span<const Field> fields, AlgorithmSpec& spec);

template <class Params>
Params parse_params(const AlgorithmSpec& spec) {
  Params params;
  read_parameters(spec, fields_of(params));
  return params;
}

template <class Params>
void store_params(Params params, AlgorithmSpec& spec) {
  write_parameters(fields_of(params), spec);
}

}  // namespace gradwire
