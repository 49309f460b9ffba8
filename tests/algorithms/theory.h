// Helpers for tests of theorems and listings: values of a resolved run context and of a run.
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/serialize.h"
#include "tests/algorithms/federation.h"

namespace gradwire::testing {

inline constexpr int kSeeds = 20;  // number of runs over which a mean is taken

inline double gamma_of(const RunContext<double>& run_context) {
  return std::stod(run_context.algorithm.step_size);
}

inline double parameter(const RunContext<double>& run_context, const std::string& name) {
  for (const auto& [key, text] : run_context.algorithm.parameters)
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

// Returns the mean over t < T of ‖∇f(x^t)‖², which is E‖∇f(x̂)‖² for the uniformly random iterate x̂.
inline double average_grad_norm_sq(const Trace<double>& trace) {
  double sum = 0;
  for (std::size_t k = 0; k + 1 < trace.records.size(); ++k) sum += *trace.records[k].grad_norm_sq;
  return sum / static_cast<double>(trace.records.size() - 1);
}

// Makes six clients in R^15 whose samples also differ in curvature.
inline Federation<double> sampled_federation() {
  Federation<double> f(6, 15);
  double square = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    f.oracles[i]->slopes = {1.5, 1.5, 0.5, 0.5};  // mean square 1.25
    square += 1.25 * f.smoothness.L_i[i] * f.smoothness.L_i[i] / 6;
  }
  f.smoothness.L_s = std::sqrt(square);
  f.smoothness.L_sample_max = 1.5 * f.smoothness.L_max();
  return f;
}

// Returns ∇f_i at x, on all samples or on a batch.
inline Vec<double> gradient(const Federation<double>& f, std::size_t i, View<double> x, Batch batch = {}) {
  Vec<double> out(x.size());
  f.oracles[i]->loss_and_gradient(x, batch, out);
  return out;
}

// Returns mean_i of term(i).
inline double mean_of_clients(const Federation<double>& f, const std::function<double(std::size_t)>& term) {
  double sum = 0;
  for (std::size_t i = 0; i < f.n(); ++i) sum += term(i) / f.n();
  return sum;
}

inline double norm_sq(View<double> v) { return squared_distance(v, Vec<double>(v.size())); }

// Returns the mean of `measure` over runs with different seeds. The servers keep replicas of client state.
inline double mean_over_seeds(
    const Federation<double>& f, const AlgorithmSpec& spec, std::uint32_t rounds, int seeds,
    const std::function<double(const Trace<double>&, const RunContext<double>&)>& measure) {
  double mean = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto run_context = f.run_context(spec, static_cast<std::uint64_t>(seed));
    run_context->keep_client_state_replicas = true;
    mean += measure(run<double>(f, run_context, rounds), *run_context) / seeds;
  }
  return mean;
}

// Expects that the bound of a theorem holds, and that the bound is at most 1/`share` times the value. A
// looser bound would hold for almost any algorithm.
inline void expect_bound(double value, double bound, double share, const std::string& what) {
  EXPECT_LE(value, bound) << what;
  EXPECT_GE(value, share * bound) << what << ": the bound is too loose to test anything";
}

// The saved state of a server: x, t, one vector, one mirrored vector per client, further vectors.
struct SavedServer {
  Vec<double> x, h;
  std::vector<Vec<double>> h_of;
  std::vector<Vec<double>> further;
  SavedServer(const Trace<double>& trace, std::size_t count) : further(count) {
    Loader load(trace.server_state);
    std::uint32_t t = 0;
    load(x), load(t), load(h), load(h_of);
    for (Vec<double>& v : further) load(v);
    for (Vec<double>& h_i : h_of) h_i.resize(x.size());
  }
};

}  // namespace gradwire::testing
