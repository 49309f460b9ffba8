// What tests of theorems and of listings read off a resolved setup and off a run.
#pragma once

#include <gtest/gtest.h>
#include <string>

#include "tests/federation.h"

namespace gradwire::testing {

inline double gamma_of(const Setup<double>& setup) { return std::stod(setup.algorithm.step_size); }

inline double parameter(const Setup<double>& setup, const std::string& name) {
  for (const auto& [key, text] : setup.algorithm.parameters)
    if (key == name) return std::stod(text);
  ADD_FAILURE() << "no parameter " << name;
  return 0;
}

inline AlgorithmSpec changed(AlgorithmSpec spec, std::uint32_t batch, double participation = 1) {
  spec.batch = batch;
  spec.participation = participation;
  return spec;
}

inline double squared_distance(View<double> a, View<double> b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
  return sum;
}

// mean over t < T of ‖∇f(x^t)‖², which is E‖∇f(x̂)‖² for the uniformly random iterate x̂.
inline double average_grad_norm_sq(const Trace<double>& trace) {
  double sum = 0;
  for (std::size_t k = 0; k + 1 < trace.records.size(); ++k) sum += trace.records[k].grad_norm_sq;
  return sum / static_cast<double>(trace.records.size() - 1);
}

}  // namespace gradwire::testing
