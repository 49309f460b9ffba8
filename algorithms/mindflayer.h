// MindFlayer SGD — Maranjyan, Omar, Richtárik, arXiv:2410.04285, Algorithm 2: Rennala SGD (rennala.h) for
// random computation times, possibly with heavy tails. A computation that takes too long is cut, and
// the client starts another one.
//
//   B_i times:  g = ∇f_i(x^t; ξ), cut after t_i seconds          client i
//               ḡ ← ḡ + g if it is in time                       server, when g arrives
//   after all trials of all clients:  x^{t+1} = x^t − (γ/B) ḡ,  ḡ ← 0,  where B = Σ p_i B_i
//
// B_i = trials, t_i = allotted_seconds, p_i = p: the probability that client i needs at most t_i. Theory (all
// f_i = f, L-smooth, E‖∇f(x; ξ) − ∇f(x)‖² ≤ σ²): for γ ≤ 1/(L (1 + V/B²)), V = Σ p_i (1 − p_i) B_i,
//   avg_t E‖∇f(x^t)‖² ≤ 2Δ⁰/(γT) + γLσ²/B,
// derived in tests/algorithms/theory_asynchronous_test.cpp; the paper's γ = min(1/(2L), εB/(2Lσ²)) is in that
// range. γ = 1/(2L), the step here, is the paper's for every ε ≥ σ²/B; without noise, γ = 1/(L (1 + V/B²)).
// If the p_i are unknown, use p = 1, which only makes the steps shorter.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "algorithms/support/one_gradient.h"
#include "algorithms/support/server_base.h"

namespace gradwire {

struct MindFlayerParams {
  static constexpr AlgorithmTraits traits = one_gradient_traits(
      "mindflayer", "asynchronous minibatches of trials that are cut after an allotted time",
      "Maranjyan, Omar, Richtarik, arXiv:2410.04285");
  StepSize step_size;
  std::vector<double> trials{1}, allotted_seconds{0}, p{1};  // one per client, or one for all
  GradientParams gradient;

  static void fields(auto& self, auto&& visit) {
    visit(
        "step_size", self.step_size,
        "gamma of a step along the mean of B gradients; theory: 1/(2 L), without batches 1/(L (1 + V/B^2))");
    visit(
        "trials", self.trials,
        "B_i: computations that a client starts at one x: one number for all, or n in one string, \"2 4 1\"");
    visit("allotted_seconds", self.allotted_seconds,
          "t_i: time after which a computation is cut; 0 means never; one number for all, or n");
    visit("p", self.p, "p_i: probability that a computation is in time; one number for all, or n");
    GradientParams::fields(self.gradient, visit);
  }
  static double of(const std::vector<double>& list, std::size_t i) { return list[list.size() == 1 ? 0 : i]; }
  // Returns Σ_i term(p_i, B_i).
  double sum(std::uint32_t n, auto&& term) const {
    double total = 0;
    for (std::uint32_t i = 0; i < n; ++i) total += term(of(p, i), of(trials, i));
    return total;
  }
  double B(std::uint32_t n) const {
    return sum(n, [](double p_i, double B_i) { return p_i * B_i; });
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    check(trials, "trials", theory.n, "a whole number from 1 to 1000000",
          [](double B_i) { return B_i >= 1 && B_i <= 1e6 && B_i == std::floor(B_i); });
    check(allotted_seconds, "allotted_seconds", theory.n, "a number of seconds, 0 or more",
          [](double t_i) { return t_i >= 0 && std::isfinite(t_i); });
    check(p, "p", theory.n, "a probability above 0 and at most 1",
          [](double p_i) { return p_i > 0 && p_i <= 1; });
    resolve_asynchronous_step(
        step_size, traits.name, theory, warnings, /*of_equal_clients=*/true, [&](const Smoothness& s) {
          if (theory.batch != 0) return 1 / (2 * s.L);
          const double V = sum(theory.n, [](double p_i, double B_i) { return p_i * (1 - p_i) * B_i; });
          return 1 / (s.L * (1 + V / std::pow(B(theory.n), 2)));
        });
  }

 private:
  // The server sends all of these numbers in the handshake, whose messages are small.
  static constexpr std::size_t kMaxNumbers = 1000;

  static void check(const std::vector<double>& list, const std::string& name, std::uint32_t n,
                    const std::string& needed, auto&& is_good) {
    const std::string key = "algorithm." + name;
    if (list.size() != 1 && list.size() != n)
      throw ConfigError(key, std::to_string(list.size()) + " numbers are given for " + std::to_string(n) +
                                 " clients; give one for each client, or one for all");
    if (list.size() > kMaxNumbers)
      throw ConfigError(key, "mindflayer takes separate numbers for at most " + std::to_string(kMaxNumbers) +
                                 " clients; give one for all");
    for (const double value : list)
      if (!is_good(value)) throw ConfigError(key, name + " needs " + needed + " for each client");
  }
};

template <class Real>
struct MindFlayer {
  using Params = MindFlayerParams;
  using Client = OneGradientClient<Real>;

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::t, Base::x, Base::run_context;
    const Params p;
    Real gamma, B;
    Vec<Real> sum;                     // ḡ
    std::vector<std::uint32_t> tried;  // finished trials at x^t, by client
    std::uint32_t active;              // number of clients with trials left

    Server(const RunContext<Real>& s, const Params& params)
        : Base(s),
          p(params),
          gamma(Real(*p.step_size.value)),
          B(Real(p.B(s.n))),
          sum(s.d),
          tried(s.n),
          active(s.n) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.sum);
      visit(self.tried);
      visit(self.active);
    }

    bool apply(Replies<Real> uplinks) {  // one reply; a cut trial has empty parts
      const ClientId i = uplinks[0].client;
      if (uplinks[0].round != t || rests(i)) return false;
      add_decoded<Real>(uplinks[0].parts[0], 1, sum);
      ++tried[i];
      if (rests(i)) --active;
      if (active > 0) return true;
      axpy<Real>(-gamma * (1 / B), sum, x);
      std::fill(sum.begin(), sum.end(), Real(0));
      std::fill(tried.begin(), tried.end(), 0u);
      active = run_context.n;
      ++t;
      return true;
    }
    double allotted_seconds(ClientId i) const {
      const double t_i = Params::of(p.allotted_seconds, i);
      return t_i > 0 ? t_i : std::numeric_limits<double>::infinity();
    }
    bool rests(ClientId i) const { return tried[i] >= Params::of(p.trials, i); }
  };
};

}  // namespace gradwire
