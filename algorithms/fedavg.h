// FedAvg — McMahan, Moore, Ramage, Hampson, Agüera y Arcas, arXiv:1602.05629 (local SGD).
//
//   y = x^t;  K times:  y ← y − γ_l ∇f_i(y)            client i, sends y − x^t
//   x^{t+1} = x^t + γ mean_{i∈S} (y_i − x^t)           server, sends x^{t+1}
//
// K = local_steps (or local_epochs passes), γ_l = local_step_size (theory: 1/(K L_max)), γ = step_size (1 by
// default). local_optimizer selects other steps along the same gradient (optimizers/optimizer.h), as in all
// algorithms with LocalSteps. The mean is Σ_S w_i Δ_i / Σ_S w_i over the clients that replied, with w_i from
// clients.weights. This is the paper's ratio; it is biased. With heterogeneous data the fixed point is not
// x*: client drift is of order γ_l K. An oracle may train in its own way (Oracle::train).
#pragma once

#include <algorithm>
#include <optional>

#include "algorithms/core/params.h"
#include "algorithms/core/vector_ops.h"
#include "algorithms/support/local_steps.h"
#include "algorithms/support/server_base.h"
#include "base/rng_stream.h"

namespace gradwire {

struct FedAvgParams {
  static constexpr AlgorithmTraits traits{
      .name = "fedavg",
      .summary = "federated averaging: local steps, then a mean of the models",
      .reference = "McMahan et al., arXiv:1602.05629",
      .compressor_class = CompressorClass::kIdentity,
      .stochastic = true,
      .adds_replies = true,
  };
  StepSize step_size{.value = 1.0};
  LocalSteps local;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step along the mean of the changes");
    LocalSteps::fields(self.local, visit);
  }
  void needs(NeededConstants& constants) const { local.needs(constants); }
  void resolve(const Theory& theory, Warnings& warnings) {
    step_size.resolve(1);
    local.resolve(theory, warnings, [&](double K) {
      return 1 / (K * need_smoothness(theory, "algorithm.local_step_size").L_max());
    });
  }
};

// A client that sends the change of the model by its local training, for synchronous and asynchronous
// algorithms. mu = 0 except in FedProx.
template <class Real>
struct LocalTrainer {
  const RunContext<Real>& run_context;
  LocalSteps local;
  LocalOptimizer optimizer;
  bool is_plain;  // the oracle may train by itself
  double mu;
  PayloadBuffer<Real> delta;

  LocalTrainer(const RunContext<Real>& s, const LocalSteps& l, double proximal = 0)
      : run_context(s),
        local(l),
        optimizer(l.optimizer, s.d),
        is_plain(l.optimizer.is_plain()),
        mu(proximal) {}
  static void fields(auto&, auto&&) {}

  Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
    const View<Real> x = down.parts[0].values;
    const Real gamma_l = Real(*local.step_size.value * local.schedule.factor(down.round));
    Vec<Real>& y = ctx.scratch.vec(0, x.size());
    Vec<Real>& grad = ctx.scratch.vec(1, x.size());
    std::copy(x.begin(), x.end(), y.begin());
    std::optional<Real> loss_at_x;
    if (is_plain) loss_at_x = ctx.oracle.train(y, training(down.round, gamma_l, ctx));
    if (!loss_at_x) {
      each_local_step(local, run_context.algorithm.batch, ctx.draw, ctx, [&](std::uint32_t k, Batch batch) {
        const Real loss = ctx.oracle.loss_and_gradient(y, batch, grad);
        if (k == 0) loss_at_x = loss;
        if (mu > 0) {
          for (std::size_t j = 0; j < x.size(); ++j) grad[j] += Real(mu) * (y[j] - x[j]);
        }
        optimizer.step(k, gamma_l, grad, y, ctx.scratch);
      });
    }
    return reply_of(down, static_cast<double>(*loss_at_x),
                    compress_shifted(ctx.compressor, y, x, ctx.draw_key(ctx.draw), ctx.scratch, delta));
  }
  void commit() {}

  LocalTraining training(std::uint32_t round, Real gamma_l, const ClientContext<Real>& ctx) const {
    return {.round = round,
            .steps = local.steps,
            .epochs = local.epochs,
            .batch = run_context.algorithm.batch,
            .step_size = static_cast<double>(gamma_l),
            .proximal = mu,
            .seed = RngStream({ctx.seed, ctx.client, ctx.draw, RngDomain::kTraining}).next()};
  }
};

// A server that computes x^{t+1} = x^t + γ mean_{i∈S} Δ_i.
template <class Real>
struct AveragingServer : ModelServer<Real> {
  Real gamma;
  AveragingServer(const RunContext<Real>& s, const StepSize& step)
      : ModelServer<Real>(s), gamma(Real(*step.value)) {}

  void apply(Replies<Real> uplinks) {
    add_average_of_replies<Real>(this->run_context, uplinks, 0, gamma, this->x);
    ++this->t;
  }
};

template <class Real>
struct FedAvg {
  using Params = FedAvgParams;

  struct Client : LocalTrainer<Real> {
    Client(const RunContext<Real>& s, const Params& p) : LocalTrainer<Real>(s, p.local) {}
  };
  struct Server : AveragingServer<Real> {
    Server(const RunContext<Real>& s, const Params& p) : AveragingServer<Real>(s, p.step_size) {}
  };
};

}  // namespace gradwire
