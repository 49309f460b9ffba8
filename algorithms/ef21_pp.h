// EF21-PP — Fatkhullin, Sokolov, Gorbunov, Li, Richtárik, arXiv:2110.03294, Algorithm 4: EF21 (ef21.h) in
// which client i takes part in a round with probability p_i, independently. An absent client keeps its g_i.
//
// Theory: γ = 1/(L + √(Σ w_i L_i² r_i)), where r_i is the minimum of B_i/θ_i over s > 0 and ρ > 0 with
//   θ = 1 − (1+s)(1−α),     θ_i = θ p_i − ρ(1−p_i),
//   β = (1+1/s)(1−α),       B_i = β p_i + (1+1/ρ)(1−p_i).
// With one p for all clients this is the paper's 1/(L + L~ √(B/θ_p)). With different p_i, each client has its
// own s and ρ here; the paper has one pair for all. This is valid because for each client separately
//   E‖g_i⁺ − ∇f_i(x⁺)‖² ≤ (1−θ_i) ‖g_i − ∇f_i(x)‖² + B_i L_i² ‖x⁺ − x‖².
// The Lyapunov function f − f* + (γ/2) Σ (w_i/θ_i) ‖g_i − ∇f_i(x)‖² adds these bounds up.
#pragma once

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/support/ef21_core.h"
#include "base/value.h"

namespace gradwire {

// Returns the smallest B/θ_p over s and ρ. For fixed s, the best ρ solves a quadratic equation; s is found by
// golden-section search.
double ef21_pp_ratio(double alpha, double p);

struct Ef21PpParams : Ef21CoreParams {
  static constexpr AlgorithmTraits traits{
      .name = "ef21_pp",
      .summary = "EF21 where each client takes part with probability p",
      .reference = "Fatkhullin et al., arXiv:2110.03294",
      .compressor_class = CompressorClass::kContractive,
      .strict = true,
      .client_state = ClientState::kMirrored,
      .theory_knows_sampling = true,
      .adds_replies = true,
  };
  std::vector<double> p;  // one per client, or one for all

  static void fields(auto& self, auto&& visit) {
    Ef21CoreParams::fields(self, visit);
    visit("p", self.p,
          "probability that a client takes part: one for all, or n in one string, \"0.2 1 0.5\"; theory: "
          "clients.participation");
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    if (p.empty()) {
      p = {theory.participation};
    } else if (theory.participation < 1 && p != std::vector{theory.participation}) {
      warnings.push_back("participation has no effect with p = " +
                         toml_literal(value_of(TextCodec<std::vector<double>>::write(p))));
    }
    if (p.size() > 1 && theory.n > kMaxClients)
      throw ConfigError("algorithm.p", "ef21_pp takes separate probabilities for at most " +
                                           std::to_string(kMaxClients) + " clients; give one for all");
    if (p.size() > 1 && p.size() != theory.n)
      throw ConfigError("algorithm.p", std::to_string(p.size()) + " probabilities are given for " +
                                           std::to_string(theory.n) +
                                           " clients; give one for each client, or one for all");
    for (const double p_i : p) check_probability(p_i, "p");
    resolve_step(theory, warnings, [&] {
      const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
      return 1 / (s.L + spread(s, theory.compressor.alpha));
    });
  }
  // The server sends all probabilities in the handshake, whose messages are small.
  static constexpr std::uint32_t kMaxClients = 2000;

 private:
  // Returns √(Σ w_i L_i² r_i).
  double spread(const Smoothness& s, double alpha) const {
    if (p.size() == 1) return s.L_tilde() * std::sqrt(ef21_pp_ratio(alpha, p[0]));
    if (s.L_i.size() != p.size()) throw std::logic_error("ef21_pp: L_i and p have different lengths");
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double w_i = s.weights.empty() ? 1 / static_cast<double>(p.size()) : s.weights[i];
      sum += w_i * s.L_i[i] * s.L_i[i] * ef21_pp_ratio(alpha, p[i]);
    }
    return std::sqrt(sum);
  }
};

template <class Real>
struct Ef21Pp {
  using Params = Ef21PpParams;
  using Client = Ef21CoreClient<Real>;

  struct Server : Ef21CoreServer<Real> {
    using Base = Ef21CoreServer<Real>;
    std::vector<double> p;

    Server(const RunContext<Real>& s, const Params& params) : Base(s, params), p(params.p) {}

    void cohort(std::vector<ClientId>& out) const {
      if (!this->first_cohort(out)) toss_cohort(this->run_context.seed, this->t, this->run_context.n, p, out);
    }
  };
};

}  // namespace gradwire
