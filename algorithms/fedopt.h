// FedAdagrad, FedYogi, FedAdam — Reddi, Charles, Zaheer, Garrett, Rush, Konečný, Kumar, McMahan,
// arXiv:2003.00295, Algorithm 2.
//
//   y = x^t;  K times:  y ← y − γ_l ∇f_i(y)               client i, sends y − x^t (fedavg.h)
//   Δ = mean_{i∈S} (y_i − x^t),  m ← β1 m + (1−β1) Δ      server; m starts at 0, v at τ²
//   v ← v + Δ²                        (FedAdagrad)
//   v ← v − (1−β2) Δ² sign(v − Δ²)    (FedYogi)
//   v ← β2 v + (1−β2) Δ²              (FedAdam)
//   x^{t+1} = x^t + γ m / (√v + τ)
//
// As in the paper, m and v have no bias correction.
#pragma once

#include <cmath>

#include "algorithms/fedavg.h"

namespace gradwire {

// The parameters of the three algorithms. FedAdagrad does not have β2.
struct FedOptParams {
  StepSize step_size{.value = 1.0};
  double beta1 = 0.9, beta2 = 0.99, tau = 1e-3;
  LocalSteps local;

  static void shared_fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    visit("beta1", self.beta1, "decay of the momentum m");
    visit("tau", self.tau, "added to the square root of v; smaller values make the step more adaptive");
    LocalSteps::fields(self.local, visit);
  }
  static void fields(auto& self, auto&& visit) {
    shared_fields(self, visit);
    visit("beta2", self.beta2, "decay of the second moments v");
  }
  void needs(NeededConstants& constants) const { local.needs(constants); }
  void resolve(const Theory& theory, Warnings& warnings) {
    for (const auto& [value, key] : {std::pair{beta1, "algorithm.beta1"}, {beta2, "algorithm.beta2"}})
      if (!(value >= 0 && value < 1)) throw ConfigError(key, "must be at least 0 and below 1");
    check_positive(tau, "tau");
    step_size.resolve(1);
    local.resolve(theory, warnings, [&](double K) {
      return 1 / (K * need_smoothness(theory, "algorithm.local_step_size").L_max());
    });
  }
};

// The updates of v. next() returns the new v of one coordinate, for the coordinate `delta` of Δ.
template <class Real>
struct AdagradRule {
  static Real next(Real v, Real delta, Real) { return v + delta * delta; }
};
template <class Real>
struct YogiRule {
  static Real next(Real v, Real delta, Real beta2) {
    const Real square = delta * delta;
    const Real sign = v > square ? Real(1) : v < square ? Real(-1) : Real(0);
    return v - (1 - beta2) * square * sign;
  }
};
template <class Real>
struct AdamRule {
  static Real next(Real v, Real delta, Real beta2) { return beta2 * v + (1 - beta2) * (delta * delta); }
};

template <class Real, class P, template <class> class Rule>
struct FedOpt {
  using Params = P;

  struct Client : LocalTrainer<Real> {
    Client(const RunContext<Real>& s, const Params& p) : LocalTrainer<Real>(s, p.local) {}
  };

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::t, Base::x;
    Real gamma, beta1, beta2, tau;
    Vec<Real> m, v, delta;  // delta is work space

    Server(const RunContext<Real>& s, const Params& p)
        : Base(s),
          gamma(Real(*p.step_size.value)),
          beta1(Real(p.beta1)),
          beta2(Real(p.beta2)),
          tau(Real(p.tau)),
          m(s.d),
          v(s.d, Real(p.tau * p.tau)),
          delta(s.d) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.m);
      visit(self.v);
    }

    void apply(Replies<Real> uplinks) {
      std::fill(delta.begin(), delta.end(), Real(0));
      add_average_of_replies<Real>(this->run_context, uplinks, 0, Real(1), delta);
      for (std::size_t j = 0; j < x.size(); ++j) {
        m[j] = beta1 * m[j] + (1 - beta1) * delta[j];
        v[j] = Rule<Real>::next(v[j], delta[j], beta2);
        x[j] += gamma * m[j] / (std::sqrt(v[j]) + tau);
      }
      ++t;
    }
  };
};

struct FedAdagradParams : FedOptParams {
  static constexpr AlgorithmTraits traits{
      .name = "fedadagrad",
      .summary = "federated averaging with Adagrad at the server",
      .reference = "Reddi et al., arXiv:2003.00295",
      .compressor_class = CompressorClass::kIdentity,
      .stochastic = true,
      .adds_replies = true,
  };
  static void fields(auto& self, auto&& visit) { shared_fields(self, visit); }
};
struct FedYogiParams : FedOptParams {
  static constexpr AlgorithmTraits traits{
      .name = "fedyogi",
      .summary = "federated averaging with Yogi at the server",
      .reference = "Reddi et al., arXiv:2003.00295",
      .compressor_class = CompressorClass::kIdentity,
      .stochastic = true,
      .adds_replies = true,
  };
};
struct FedAdamParams : FedOptParams {
  static constexpr AlgorithmTraits traits{
      .name = "fedadam",
      .summary = "federated averaging with Adam at the server, without bias correction",
      .reference = "Reddi et al., arXiv:2003.00295",
      .compressor_class = CompressorClass::kIdentity,
      .stochastic = true,
      .adds_replies = true,
  };
};

template <class Real>
struct FedAdagrad : FedOpt<Real, FedAdagradParams, AdagradRule> {};
template <class Real>
struct FedYogi : FedOpt<Real, FedYogiParams, YogiRule> {};
template <class Real>
struct FedAdam : FedOpt<Real, FedAdamParams, AdamRule> {};

}  // namespace gradwire
