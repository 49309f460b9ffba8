// EF21-PP — Fatkhullin, Sokolov, Gorbunov, Li, Richtárik, arXiv:2110.03294, Algorithm 4: EF21 (ef21.h) where
// each client takes part in a round with probability p, independently; an absent one keeps its g_i.
//
// Theory: γ = 1/(L + L~ √(B/θ_p)) with θ = 1 − (1+s)(1−α), β = (1+1/s)(1−α), θ_p = θ p − ρ(1−p),
// B = β p + (1+1/ρ)(1−p), and the s, ρ > 0 that make it largest.
#pragma once

#include <algorithm>
#include <limits>

#include "algorithms/ef21_core.h"

namespace gradwire {

// The smallest B/θ_p over s and ρ. For fixed s the best ρ solves a quadratic equation; s by golden section.
double ef21_pp_ratio(double alpha, double p);

struct Ef21PpParams : Ef21CoreParams {
  static constexpr Facts facts{
      .name = "ef21_pp",
      .summary = "EF21 where each client takes part with probability p",
      .reference = "Fatkhullin et al., arXiv:2110.03294",
      .takes = Takes::kContractive,
      .strict = true,
      .client_state = ClientState::kMirrored,
      .theory_knows_sampling = true,
      .adds_replies = true,
  };
  std::optional<double> p;

  static void fields(auto& self, auto&& visit) {
    Ef21CoreParams::fields(self, visit);
    visit("p", self.p, "probability that a client takes part; theory: clients.participation");
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    if (!p) p = theory.participation;
    check_probability(*p, "p");
    resolve_step(theory, warnings, [&] {
      const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
      return 1 / (s.L + s.L_tilde() * std::sqrt(ef21_pp_ratio(theory.compressor.alpha, *p)));
    });
  }
};

template <class Real>
struct Ef21Pp {
  using Params = Ef21PpParams;
  using Client = Ef21CoreClient<Real>;

  struct Server : Ef21CoreServer<Real> {
    using Base = Ef21CoreServer<Real>;
    double p;

    Server(const Setup<Real>& s, const Params& params) : Base(s, params), p(*params.p) {}

    void cohort(std::vector<ClientId>& out) const {
      if (!this->first_cohort(out)) toss_cohort(this->setup.seed, this->t, this->setup.n, p, out);
    }
  };
};

}  // namespace gradwire
