// FedAvg — McMahan, Moore, Ramage, Hampson, Agüera y Arcas, arXiv:1602.05629 (local SGD).
//
//   y = x^t;  K times:  y ← y − γ_l ∇f_i(y)            client i, sends y − x^t
//   x^{t+1} = x^t + γ mean_{i∈S} (y_i − x^t)           server, sends x^{t+1}
//
// K = local_steps, γ_l = local_step_size (theory: 1/(K L_max)), γ = step_size (1 by default). The mean is
// over those who replied, by clients.weights. With heterogeneous data its fixed point is not x*: client drift
// of order γ_l K.
#pragma once

#include <algorithm>

#include "algorithms/params.h"
#include "algorithms/sampling.h"
#include "algorithms/vector_ops.h"
#include "compressors/config_error.h"

namespace gradwire {

struct FedAvgParams {
  static constexpr Facts facts{
      .name = "fedavg",
      .summary = "federated averaging: local steps, then a mean of the models",
      .reference = "McMahan et al., arXiv:1602.05629",
      .takes = Takes::kIdentity,
      .stochastic = true,
  };
  StepSize step_size{.value = 1.0};
  std::uint32_t local_steps = 1;
  StepSize local_step_size;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step along the mean of the changes");
    visit("local_steps", self.local_steps, "K: gradient steps of a client in one round");
    visit("local_step_size", self.local_step_size, "gamma_l of the client's steps; theory: 1/(K L_max)");
  }
  void resolve(const Theory& theory, Warnings&) {
    if (local_steps == 0)
      throw ConfigError("algorithm.local_steps", "0 local steps train nothing; give at least 1");
    step_size.resolve(1);
    if (!local_step_size.value)
      local_step_size.resolve(1 /
                              (local_steps * need_smoothness(theory, "algorithm.local_step_size").L_max()));
  }
};

template <class Real>
struct FedAvg {
  using Params = FedAvgParams;

  struct Client {
    const Setup<Real>& setup;
    std::uint32_t K;
    Real gamma_l;
    Store<Real> delta;

    Client(const Setup<Real>& s, const Params& p)
        : setup(s), K(p.local_steps), gamma_l(*p.local_step_size.value) {}
    static void fields(auto&, auto&&) {}

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      Vec<Real>& y = ctx.scratch.vec(0, x.size());
      Vec<Real>& grad = ctx.scratch.vec(1, x.size());
      std::copy(x.begin(), x.end(), y.begin());
      double loss_at_x = 0;
      for (std::uint32_t k = 0; k < K; ++k) {
        const Batch batch = draw_batch(ctx.seed, ctx.client, down.round, k, setup.algorithm.batch,
                                       ctx.oracle.sample_count(), ctx.scratch.order);
        const double loss = ctx.oracle.loss_and_gradient(y, batch, grad);
        if (k == 0) loss_at_x = loss;
        axpy<Real>(-gamma_l, grad, y);
      }
      axpy<Real>(Real(-1), x, y);
      return reply_of(down, loss_at_x,
                      compress(ctx.compressor, y, ctx.draw_key(down.round), ctx.scratch, delta));
    }
    void commit() {}
  };

  struct Server {
    const Setup<Real>& setup;
    Real gamma;
    Vec<Real> x;
    std::uint32_t t = 0;

    Server(const Setup<Real>& s, const Params& p) : setup(s), gamma(*p.step_size.value), x(s.x0) {}
    static void fields(auto& self, auto&& visit) {
      visit(self.x);
      visit(self.t);
    }

    void cohort(std::vector<ClientId>& out) const {
      sample_cohort(setup.seed, t, setup.n, setup.algorithm.participation, out);
    }
    Downlink<Real> broadcast() const { return {t, 0, {Payload<Real>::dense(x)}}; }
    void apply(std::span<const Uplink<Real>> uplinks) {
      add_mean_of_replies<Real>(setup, uplinks, 0, gamma, x);
      ++t;
    }
    View<Real> model() const { return x; }
  };
};

}  // namespace gradwire
