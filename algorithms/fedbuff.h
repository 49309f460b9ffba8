// FedBuff — Nguyen, Malik, Zhan, Yousefpour, Rabbat, Malek, Huba, arXiv:2106.06639: buffered asynchronous
// aggregation, Algorithms 1 and 2.
//
//   y = x^s;  K times:  y ← y − γ_l ∇f_i(y)           client i, sends Δ = y − x^s
//   Δ̄ ← Δ̄ + Δ / √(1 + t − s)                          server, when Δ arrives; sends x^t to i
//   after every `buffer` replies:  x^{t+1} = x^t + γ Δ̄ / buffer,  Δ̄ ← 0
//
// K = local_steps (or local_epochs passes), γ_l = local_step_size (1/(K L_max) by default, as in FedAvg),
// γ = step_size (1 by default). Faster clients have more weight, so the fixed point is not x* unless all
// clients have similar data.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/core/params.h"
#include "algorithms/core/vector_ops.h"
#include "algorithms/fedavg.h"
#include "algorithms/support/local_steps.h"
#include "algorithms/support/server_base.h"
#include "base/config_error.h"

namespace gradwire {

struct FedBuffParams {
  static constexpr AlgorithmTraits traits{
      .name = "fedbuff",
      .summary = "asynchronous local steps; the server averages every `buffer` changes of any clients",
      .reference = "Nguyen et al., arXiv:2106.06639",
      .compressor_class = CompressorClass::kEither,
      .partial = false,
      .stochastic = true,
      .asynchronous = true,
  };
  StepSize step_size{.value = 1.0};
  std::uint32_t buffer = 10;
  LocalSteps local;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step along the mean of the buffer");
    visit("buffer", self.buffer, "replies per step of the server");
    LocalSteps::fields(self.local, visit);
  }
  void needs(NeededConstants& constants) const { local.needs(constants); }
  void resolve(const Theory& theory, Warnings& warnings) {
    if (buffer == 0) throw ConfigError("algorithm.buffer", "a step needs replies; give at least 1");
    step_size.resolve(1);
    Theory of_steps = theory;  // the schedule counts the server's steps
    of_steps.rounds = theory.rounds / buffer + (theory.rounds % buffer != 0);
    const auto step = [&](double K) {
      return 1 / (K * need_smoothness(theory, "algorithm.local_step_size").L_max());
    };
    local.resolve(of_steps, warnings, step, "steps of the server");
  }
};

template <class Real>
struct FedBuff {
  using Params = FedBuffParams;

  struct Client : LocalTrainer<Real> {
    Client(const RunContext<Real>& s, const Params& p) : LocalTrainer<Real>(s, p.local) {}
  };

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::t, Base::x;
    Real gamma;
    std::uint32_t size, count = 0;  // capacity and current size of the buffer
    Vec<Real> sum;                  // Δ̄

    Server(const RunContext<Real>& s, const Params& p)
        : Base(s), gamma(Real(*p.step_size.value)), size(p.buffer), sum(s.d) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.sum);
      visit(self.count);
    }

    void apply(Replies<Real> uplinks) {  // one reply
      const Real staleness = Real(t - uplinks[0].round);
      add_decoded<Real>(uplinks[0].parts[0], 1 / std::sqrt(1 + staleness), sum);
      if (++count < size) return;
      axpy<Real>(gamma / Real(size), sum, x);
      std::fill(sum.begin(), sum.end(), Real(0));
      count = 0;
      ++t;
    }
  };
};

}  // namespace gradwire
