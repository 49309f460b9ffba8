// A small federation in memory for tests of algorithms: dense random quadratics with known constants, and one
// call to run them.
#pragma once

#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "base/random.h"
#include "rounds/round_loop.h"
#include "simulation/fault_simulation.h"

namespace gradwire::testing {

// f_i(x) = ½ Σ_j a_j (x_j − b_j)², split into "samples". Sample s shifts b by offsets[s], so batches differ.
// If `slopes` is not empty, sample s has the curvatures slopes[s] a_j.
template <class Real>
class DiagonalQuadratic final : public Oracle<Real> {
 public:
  Vec<Real> a, b;
  std::vector<Real> offsets;  // one per sample, mean 0
  std::vector<Real> slopes;   // one per sample, mean 1, and mean of slope * offset is 0; empty if all are 1

  std::size_t dim() const override { return a.size(); }
  std::size_t sample_count() const override { return offsets.size(); }
  Real loss_and_gradient(View<Real> x, Batch batch, Out<Real> gradient) override {
    Real shift = 0, slope = 1;
    if (!batch.empty()) {
      for (const std::uint32_t s : batch) shift += slopes.empty() ? offsets[s] : slopes[s] * offsets[s];
      shift /= static_cast<Real>(batch.size());
    }
    if (!batch.empty() && !slopes.empty()) {
      slope = 0;
      for (const std::uint32_t s : batch) slope += slopes[s] / static_cast<Real>(batch.size());
    }
    double loss = 0;
    for (std::size_t j = 0; j < a.size(); ++j) {
      const Real r = slope * (x[j] - b[j]) - shift;
      gradient[j] = a[j] * r;
      loss += 0.5 * static_cast<double>(a[j]) * static_cast<double>(r) * static_cast<double>(r);
    }
    return static_cast<Real>(loss);
  }
  bool hessian(View<Real>, Out<Real> upper) override {
    std::fill(upper.begin(), upper.end(), Real(0));
    for (std::size_t j = 0, at = 0; j < a.size(); at += a.size() - j, ++j) upper[at] = a[j];
    return true;
  }
};

template <class Real>
struct Federation {
  std::vector<std::unique_ptr<DiagonalQuadratic<Real>>> oracles;
  Smoothness smoothness;
  Vec<Real> x0, optimum;

  // Makes n clients in R^d with curvatures in [mu, 1].
  Federation(std::uint32_t n, std::size_t d, std::uint64_t seed = 1, double mu = 0.1) {
    Random random(seed, "federation");
    Vec<Real> mean_a(d), mean_ab(d);
    for (std::uint32_t i = 0; i < n; ++i) {
      auto f = std::make_unique<DiagonalQuadratic<Real>>();
      double L_i = 0;
      for (std::size_t j = 0; j < d; ++j) {
        f->a.push_back(static_cast<Real>(mu + (1 - mu) * random.uniform()));
        f->b.push_back(static_cast<Real>(random.normal()));
        L_i = std::max(L_i, static_cast<double>(f->a.back()));
        mean_a[j] += f->a[j] / static_cast<Real>(n);
        mean_ab[j] += f->a[j] * f->b[j] / static_cast<Real>(n);
      }
      f->offsets = {Real(-0.5), Real(0.5), Real(-0.25), Real(0.25)};
      smoothness.L_i.push_back(L_i);
      oracles.push_back(std::move(f));
    }
    smoothness.mu = 1;
    for (std::size_t j = 0; j < d; ++j) {
      x0.push_back(static_cast<Real>(random.normal()));
      optimum.push_back(mean_ab[j] / mean_a[j]);
      smoothness.L = std::max(smoothness.L, static_cast<double>(mean_a[j]));
      smoothness.mu = std::min(smoothness.mu, static_cast<double>(mean_a[j]));
    }
    smoothness.convex = true;
  }

  std::uint32_t n() const { return static_cast<std::uint32_t>(oracles.size()); }
  std::size_t d() const { return x0.size(); }

  std::vector<Oracle<Real>*> oracle_pointers() const {
    std::vector<Oracle<Real>*> list;
    for (const auto& f : oracles) list.push_back(f.get());
    return list;
  }

  // Returns f(x) − f*.
  double gap(View<Real> x) const {
    Vec<Real> scratch(d());
    double total = 0;
    for (const auto& f : oracles) {
      total += f->loss_and_gradient(x, {}, scratch);
      total -= f->loss_and_gradient(optimum, {}, scratch);
    }
    return total / n();
  }

  std::shared_ptr<RunContext<Real>> run_context(AlgorithmSpec spec, std::uint64_t seed = 1) const {
    auto s = std::make_shared<RunContext<Real>>();
    s->seed = seed;
    s->n = n();
    s->d = d();
    s->x0 = x0;
    Theory theory;
    theory.n = n();
    theory.d = d();
    theory.smoothness = &smoothness;
    theory.samples = 4 * n();
    theory.rounds = 60;
    std::vector<std::string> warnings;
    s->algorithm = resolve(spec, theory, warnings);
    s->compressor = uplink_compressor(s->algorithm, d(), n());
    return s;
  }
};

template <class Real>
struct Trace {
  Vec<Real> model;
  std::string server_state;
  std::vector<std::string> client_states;
  std::vector<RoundRecord> records;
  std::vector<std::string> notes;
  Outcome outcome = Outcome::kFinished;
};

// Expects the same steps, counts and server state. Does not compare the states of the clients.
template <class Real>
void expect_same_steps(const Trace<Real>& a, const Trace<Real>& b) {
  EXPECT_EQ(a.outcome, b.outcome);
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.server_state, b.server_state);
  ASSERT_EQ(a.records.size(), b.records.size());
  for (std::size_t k = 0; k < a.records.size(); ++k) {
    EXPECT_EQ(a.records[k].loss, b.records[k].loss) << k;
    EXPECT_EQ(a.records[k].grad_norm_sq, b.records[k].grad_norm_sq) << k;
    EXPECT_EQ(a.records[k].grad_calls, b.records[k].grad_calls) << k;
    EXPECT_EQ(a.records[k].bits_up, b.records[k].bits_up) << k;
    EXPECT_EQ(a.records[k].bytes_up, b.records[k].bytes_up) << k;
    EXPECT_EQ(a.records[k].bytes_down, b.records[k].bytes_down) << k;
  }
}

inline AlgorithmSpec spec_of(std::string name, std::string compressor = "identity", Options parameters = {},
                             std::string step_size = "") {
  AlgorithmSpec spec;
  spec.name = std::move(name);
  spec.compressor = std::move(compressor);
  spec.parameters = std::move(parameters);
  spec.step_size = std::move(step_size);
  return spec;
}

template <class Real>
Trace<Real> run(const Federation<Real>& federation, std::shared_ptr<const RunContext<Real>> run_context,
                std::uint32_t rounds, const FaultSimulationOptions& options = {}, RoundLimits limits = {},
                const std::function<void(std::uint32_t, ServerAlgorithm<Real>&, FaultSimulation<Real>&,
                                         RunProgress&)>& after = {}) {
  limits.rounds = rounds;
  if (options.faults.any()) limits.attempts = 1000;
  Trace<Real> trace;
  FaultSimulation<Real> transport(run_context, federation.oracle_pointers(), options);
  const auto server = make_server<Real>(run_context);
  RunProgress progress;
  LoopHooks<Real> hooks;
  hooks.on_record = [&](const RoundRecord& record) { trace.records.push_back(record); };
  hooks.on_note = [&](const std::string& line) { trace.notes.push_back(line); };
  if (after) hooks.on_round = [&](std::uint32_t k) { after(k, *server, transport, progress); };
  const AlgorithmTraits traits = find_algorithm(run_context->algorithm.name).traits;
  trace.outcome = run_rounds<Real>(*server, traits, *run_context, transport, progress, limits, hooks);
  trace.model.assign(server->model().begin(), server->model().end());
  trace.server_state = server->save();
  for (ClientId c = 0; c < run_context->n; ++c)
    trace.client_states.push_back(transport.runtime(c).algorithm().save());
  return trace;
}

}  // namespace gradwire::testing
