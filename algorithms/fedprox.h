// FedProx — Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, arXiv:1812.06127.
//
//   y = x^t;  K times:  y ← y − γ_l (∇f_i(y) + μ (y − x^t))    client i, sends y − x^t
//   x^{t+1} = x^t + γ mean_{i∈S} (y_i − x^t)                   server, sends x^{t+1}
//
// The local steps minimize f_i(y) + (μ/2) ‖y − x^t‖². Client drift is smaller than in FedAvg (μ = 0), but not
// zero. Theory: γ_l = 1/(K (L_max+μ)).
#pragma once

#include "algorithms/fedavg.h"

namespace gradwire {

struct FedProxParams {
  static constexpr AlgorithmTraits traits{
      .name = "fedprox",
      .summary = "federated averaging with a proximal term that keeps local models near x",
      .reference = "Li et al., arXiv:1812.06127",
      .compressor_class = CompressorClass::kIdentity,
      .stochastic = true,
      .adds_replies = true,
  };
  StepSize step_size{.value = 1.0};
  double mu = 0.1;
  LocalSteps local;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step along the mean of the changes");
    visit("mu", self.mu, "weight of the proximal term (mu/2) ||y - x||^2; 0 is fedavg");
    LocalSteps::fields(self.local, visit);
  }
  void needs(NeededConstants& constants) const { local.needs(constants); }
  void resolve(const Theory& theory, Warnings& warnings) {
    if (!(mu >= 0)) throw ConfigError("algorithm.mu", "must not be negative");
    step_size.resolve(1);
    local.resolve(theory, warnings, [&](double K) {
      return 1 / (K * (need_smoothness(theory, "algorithm.local_step_size").L_max() + mu));
    });
  }
};

template <class Real>
struct FedProx {
  using Params = FedProxParams;

  struct Client : LocalTrainer<Real> {
    Client(const RunContext<Real>& s, const Params& p) : LocalTrainer<Real>(s, p.local, p.mu) {}
  };
  struct Server : AveragingServer<Real> {
    Server(const RunContext<Real>& s, const Params& p) : AveragingServer<Real>(s, p.step_size) {}
  };
};

}  // namespace gradwire
