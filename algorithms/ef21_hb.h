// EF21-HB — Fatkhullin, Sokolov, Gorbunov, Li, Richtárik, arXiv:2110.03294, Algorithm 6: EF21 (ef21.h) with
// heavy-ball momentum at the server.
//
//   v ← η v + g^t,  x^{t+1} = x^t − γ v                   server; v starts at 0
//
// Theory: γ < 1/((1+η) L/(2 (1−η)²) + (L~/(1−η)) √((2 β/θ) (1 + 2 η²/(1−η)²))).
#pragma once

#include "algorithms/support/ef21_core.h"

namespace gradwire {

struct Ef21HbParams : Ef21CoreParams {
  static constexpr AlgorithmTraits traits{
      .name = "ef21_hb",
      .summary = "EF21 with heavy-ball momentum at the server",
      .reference = "Fatkhullin et al., arXiv:2110.03294",
      .compressor_class = CompressorClass::kContractive,
      .strict = true,
      .client_state = ClientState::kMirrored,
      .adds_replies = true,
  };
  double eta = 0.9;

  static void fields(auto& self, auto&& visit) {
    Ef21CoreParams::fields(self, visit);
    visit("eta", self.eta, "momentum, at least 0 and below 1");
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    if (!(eta >= 0 && eta < 1)) throw ConfigError("algorithm.eta", "must be at least 0 and below 1");
    resolve_step(theory, warnings, [&] {
      const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
      const ErrorFeedback c(theory.compressor.alpha);
      const double rest = 1 - eta, spread = 1 + 2 * eta * eta / (rest * rest);
      return 1 / ((1 + eta) * s.L / (2 * rest * rest) +
                  s.L_tilde() / rest * std::sqrt(2 * c.beta / c.theta * spread));
    });
  }
};

template <class Real>
struct Ef21Hb {
  using Params = Ef21HbParams;
  using Client = Ef21CoreClient<Real>;

  struct Server : Ef21CoreServer<Real> {
    using Base = Ef21CoreServer<Real>;
    Real eta;
    Vec<Real> v;

    Server(const RunContext<Real>& s, const Params& p) : Base(s, p), eta(Real(p.eta)), v(s.d) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.v);
    }
    void apply(Replies<Real> uplinks) {
      this->average(uplinks);
      for (std::size_t j = 0; j < v.size(); ++j) v[j] = eta * v[j] + this->g[j];
      axpy<Real>(-this->gamma_now(), v, this->x);
      ++this->t;
    }
  };
};

}  // namespace gradwire
