// Clients of unequal weights for tests of theory. One client weighs more than all others together, and
// samples have their own curvatures. So a step size computed for equal weights violates the theorems.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/algorithms/theory.h"

namespace gradwire::testing {

// f_i is the mean of the samples ½ Σ_j a_j (1 + c_s) (x_j − b_j)². The c_s have mean 0, so they cancel in
// f_i.
class ScaledSamples final : public Oracle<double> {
 public:
  Vec<double> a, b;
  static constexpr std::array<double, 4> kScale = {0.1, 1.9, 0.5, 1.5};  // 1 + c_s

  std::size_t dim() const override { return a.size(); }
  std::size_t sample_count() const override { return kScale.size(); }
  double loss_and_gradient(View<double> x, Batch batch, Out<double> gradient) override {
    double scale = batch.empty() ? 1 : 0, loss = 0;
    for (const std::uint32_t s : batch) scale += kScale[s] / static_cast<double>(batch.size());
    for (std::size_t j = 0; j < a.size(); ++j) {
      gradient[j] = scale * a[j] * (x[j] - b[j]);
      loss += gradient[j] * (x[j] - b[j]) / 2;
    }
    return loss;
  }
};

enum class Curvatures { kDiffer, kAlike };

struct Skewed {
  static constexpr std::uint32_t kClients = 12;
  static constexpr std::size_t kDim = 15;
  std::vector<ScaledSamples> oracles{kClients};
  std::vector<double> weights;
  Smoothness smoothness;
  Vec<double> x0, optimum;

  explicit Skewed(Curvatures curvatures = Curvatures::kDiffer, double mu = 0.1) {
    Random random(1, "skewed");
    for (std::uint32_t i = 0; i < kClients; ++i) {
      weights.push_back(i == 0 ? 0.78 : 0.02);
      double& L_i = smoothness.L_i.emplace_back(0);
      for (std::size_t j = 0; j < kDim; ++j) {
        const double drawn = mu + (1 - mu) * random.uniform();
        const bool own = i == 0 || curvatures == Curvatures::kDiffer;
        oracles[i].a.push_back(own ? drawn : oracles[0].a[j]);
        oracles[i].b.push_back(random.normal());
        L_i = std::max(L_i, oracles[i].a[j]);
      }
    }
    smoothness.weights = weights;
    smoothness.convex = true;
    smoothness.mu = 1;
    double plus = 0, pm = 0;
    for (std::size_t j = 0; j < kDim; ++j) {
      double mean = 0, square = 0, mean_ab = 0;
      for (std::uint32_t i = 0; i < kClients; ++i) {
        mean += weights[i] * oracles[i].a[j];
        square += weights[i] * oracles[i].a[j] * oracles[i].a[j];
        mean_ab += weights[i] * oracles[i].a[j] * oracles[i].b[j];
      }
      x0.push_back(random.normal());
      optimum.push_back(mean_ab / mean);
      smoothness.L = std::max(smoothness.L, mean);
      smoothness.mu = std::min(smoothness.mu, mean);
      plus = std::max(plus, square);
      pm = std::max(pm, square - mean * mean);
    }
    smoothness.L_plus = std::sqrt(plus);
    smoothness.L_pm = std::sqrt(std::max(0.0, pm));
    double square = 0;
    for (const double scale : ScaledSamples::kScale) square += scale * scale / 4;
    smoothness.L_s = smoothness.L_tilde() * std::sqrt(square);
    smoothness.L_sample_max = 1.9 * smoothness.L_max();
  }

  Theory theory() const {
    return {.n = kClients,
            .d = kDim,
            .compressor = {},
            .smoothness = &smoothness,
            .samples = 4 * kClients,
            .rounds = 60,
            .weights = weights};
  }
  std::shared_ptr<RunContext<double>> run_context(const AlgorithmSpec& spec, std::uint64_t seed = 1) const {
    auto s = std::make_shared<RunContext<double>>();
    s->seed = seed;
    s->n = kClients;
    s->d = kDim;
    s->x0 = x0;
    s->weights = weights;
    std::vector<std::string> warnings;
    s->algorithm = resolve(spec, theory(), warnings);
    s->compressor = uplink_compressor(s->algorithm, kDim, kClients);
    return s;
  }
  Trace<double> run(std::shared_ptr<const RunContext<double>> run_context, std::uint32_t rounds,
                    std::uint32_t evaluate_every = 1) {
    std::vector<Oracle<double>*> pointers;
    for (auto& oracle : oracles) pointers.push_back(&oracle);
    FaultSimulation<double> transport(run_context, pointers, {});
    const auto server = make_server<double>(run_context);
    RunProgress progress;
    Trace<double> trace;
    LoopHooks<double> hooks;
    hooks.on_record = [&](const RoundRecord& record) { trace.records.push_back(record); };
    RoundLimits limits;
    limits.rounds = rounds;
    limits.evaluate_every = evaluate_every;
    trace.outcome = run_rounds<double>(*server, traits_of(*run_context), *run_context, transport, progress,
                                       limits, hooks);
    trace.model.assign(server->model().begin(), server->model().end());
    for (ClientId i = 0; i < kClients; ++i)
      trace.client_states.push_back(transport.runtime(i).algorithm().save());
    return trace;
  }

  Vec<double> gradient(std::uint32_t i, View<double> x) {
    Vec<double> g(kDim);
    oracles[i].loss_and_gradient(x, {}, g);
    return g;
  }
  double gap(View<double> x) {
    double total = 0;
    Vec<double> g(kDim);
    for (std::uint32_t i = 0; i < kClients; ++i)
      total += weights[i] *
               (oracles[i].loss_and_gradient(x, {}, g) - oracles[i].loss_and_gradient(optimum, {}, g));
    return total;
  }
  // Returns Σ w_i^power n^{power−1} ‖∇f_i(x)‖².
  double gradients_sq(View<double> x, int power = 1) {
    double sum = 0;
    for (std::uint32_t i = 0; i < kClients; ++i)
      sum += std::pow(weights[i], power) * std::pow(kClients, power - 1) *
             squared_distance(gradient(i, x), Vec<double>(kDim));
    return sum;
  }
  double grad_norm_sq(View<double> x) {
    Vec<double> sum(kDim);
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Vec<double> g = gradient(i, x);
      for (std::size_t j = 0; j < kDim; ++j) sum[j] += weights[i] * g[j];
    }
    return squared_distance(sum, Vec<double>(kDim));
  }
  // Returns the mean over the seeds of the average gradient norm over T rounds.
  double average(const AlgorithmSpec& spec, std::uint32_t rounds, int seeds = 10) {
    double mean = 0;
    for (int seed = 1; seed <= seeds; ++seed)
      mean += average_grad_norm_sq(run(run_context(spec, static_cast<std::uint64_t>(seed)), rounds)) / seeds;
    return mean;
  }
};

inline constexpr double kSkew = 12 * 0.78;  // n max w_i

}  // namespace gradwire::testing
